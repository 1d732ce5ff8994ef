"""Composes configurations from `configs/`, and explains in one line why one cannot be composed."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from zhen.errors import UserError, did_you_mean, one_line
from zhen.runs.identity import run_id
from zhen.schema import keys

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"

# Hydra's `group=null` is a plain ValueError.
CompositionError = (HydraException, OmegaConfBaseException, ValueError)

# `${root:data/x.tsv}`: a path below the repository, unless it is absolute.
OmegaConf.register_new_resolver("root", lambda path: str(ROOT / path), replace=True)
# `${run_id:}`: read anew each time, since another run may have it already (`claim`).
OmegaConf.register_new_resolver("run_id", run_id, replace=True)


def compose(config_name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration a command would get with these overrides, paths absolute, not yet checked.

    Raises:
        UserError: `configs/` is not where it belongs.
        hydra.errors.HydraException: it cannot be composed; `explain` says why.
    """
    directory = str(config_directory())
    with initialize_config_dir(version_base="1.3", config_dir=directory, job_name=config_name):
        return absolute_paths(hydra_compose(config_name, overrides=list(overrides)))


def config_directory() -> Path:
    """The repository's `configs/`.

    Raises:
        UserError: the package is not where its repository is.
    """
    if not CONFIGS.is_dir():
        raise UserError(
            f"no configuration directory {CONFIGS}: run from a clone of the repository, with the"
            " package installed by `make setup` (or `pip install -e .`)"
        )
    return CONFIGS


def absolute_paths(cfg: DictConfig) -> DictConfig:
    """Makes `paths.runs` and `paths.cache` absolute, in place: relative ones lie below ROOT."""
    for key in ("paths.runs", "paths.cache"):
        path = OmegaConf.select(cfg, key, throw_on_missing=False)
        if isinstance(path, str):
            OmegaConf.update(cfg, key, str(ROOT / Path(path).expanduser()))
    return cfg


def groups(config_name: str) -> dict[str, list[str]]:
    """The groups of a command's configuration and the options of each."""
    config = OmegaConf.load(config_directory() / f"{config_name}.yaml")
    assert isinstance(config, DictConfig)
    defaults = OmegaConf.to_container(config.defaults)
    assert isinstance(defaults, list)
    chosen = [str(name) for entry in defaults if isinstance(entry, Mapping) for name in entry]
    root = config_directory()
    whole = [name for name in defaults if isinstance(name, str) and name != "_self_"]
    names = [name for name in chosen if "@" not in name]
    # A group inside of a group, as data/clean.
    inner = [
        str(path.relative_to(root))
        for name in names
        for path in (root / name).iterdir()
        if path.is_dir()
    ]
    found = {
        name: sorted(path.stem for path in (root / name).glob("*.yaml"))
        for name in [*names, *sorted(inner)]
    }
    for name in whole:  # another command's configuration, as submit has that of train
        found |= groups(name)
    return found


@cache
def known_keys(config_name: str, *overrides: str) -> frozenset[str]:
    """All dotted keys of a command's configuration, inner nodes too."""
    cfg = compose(config_name, overrides)
    return frozenset(keys(OmegaConf.to_container(cfg, resolve=False)))


def explain(error: Exception, config_name: str, overrides: Sequence[str]) -> str:
    """One line on why `overrides` do not compose: the first wrong one, and what would be right.

    Overrides are added one at a time until composition fails.
    """
    accepted: list[str] = []
    try:
        known_keys(config_name)
        for text in overrides:
            try:
                if read_word(text).is_sweep_override():
                    return _several(text)
                known_keys(config_name, *accepted, text)
            except UserError as grammar:
                return str(grammar)
            except CompositionError as refused:
                return _refusal(text, refused, config_name, accepted)
            accepted.append(text)
    except CompositionError as broken:
        error = broken
    return f"the configuration cannot be composed: {_reason(error)}"


def read_word(text: str) -> Override:
    """A word of a command line, in the grammar of Hydra's overrides.

    Raises:
        UserError: it cannot be read; says how it would be written.
    """
    try:
        return OverridesParser.create().parse_overrides([text])[0]
    except HydraException as error:
        raise UserError(_grammar(text, error)) from error


def key_of(word: str) -> str:
    """`model.d_model` of `+model.d_model=64`, `model` of `model@package=tiny`."""
    return re.split("[=@]", word.lstrip("+~"))[0]


def group_of(word: str) -> str:
    """The first part of a word's key: `model` of `model.d_model=64`, `data` of `data/clean=x`."""
    return re.split("[./]", key_of(word))[0]


def _several(text: str) -> str:
    key, _, value = text.partition("=")
    return (
        f"`{text}` gives several values: a list is written {key}=[{value}], a text with a comma"
        f" {key}='\"{value}\"', and `make sweep` starts a training for each of several"
    )


def _reason(error: Exception) -> str:
    return one_line(error) or one_line(error.__cause__ or type(error).__name__)


def _grammar(text: str, error: Exception) -> str:
    if "=" not in text and not text.startswith("~"):
        return f"`{text}` is not a setting: write key=value, as trainer.max_epochs=3"
    return (
        f"`{text}` cannot be read ({one_line(str(error).splitlines()[0])}): a value with spaces,"
        " letters beyond ASCII or any of ~,=:{}[]()'\"$ is quoted for Hydra, inside the shell's"
        " quotes: key='\"a, b\"'"
    )


def _refusal(text: str, error: Exception, config_name: str, accepted: Sequence[str]) -> str:
    """Why this one override is refused, when all before it compose."""
    override = read_word(text)
    key, value, options = override.key_or_group, override.value(), groups(config_name)
    known = known_keys(config_name, *accepted)
    if key in options and isinstance(value, str) and value not in options[key]:
        near = did_you_mean(value, options[key]) or ";"
        return f"`{key}={value}`: no such {key}{near} the options are {', '.join(options[key])}"
    if key in options and value is None and not override.is_delete():
        return f"`{text}`: choose one; the options are {', '.join(options[key])}"
    if re.match(r"hydra\b", key):
        return f"`{text}` is refused by Hydra: {_reason(error)}"
    if key in known and override.is_delete():
        return f"`{text}`: `{key}` is null already"
    if key not in known and override.is_delete():
        return f"`{text}`: there is no `{key}` to take out{did_you_mean(key, known)}"
    if key not in known and not override.is_add():
        parents = {key[: dot.start()] for dot in re.finditer(r"\.", key)}
        owners = _owners(key, config_name, accepted, options)
        if owners:
            return f"`{key}` is a key of {' and '.join(owners)}, which is not chosen"
        near = did_you_mean(key, (known | set(options)) - parents) or "; --cfg job lists them."
        return f"`{key}` is not a key{near} A key that is meant to be new gets a plus: '+{text}'"
    if key in known and override.is_add():
        return f"`{text}`: `{key}` is there already: without the `+` it is set"
    return f"`{text}` is refused: {_reason(error)}"


def _owners(
    key: str, config_name: str, accepted: Sequence[str], options: dict[str, list[str]]
) -> list[str]:
    """Options of the key's group that have the key, as `scheduler=cosine`."""
    group, owners = key.partition(".")[0], []
    for option in options.get(group, []):
        try:
            if key in known_keys(config_name, *accepted, f"{group}={option}"):
                owners.append(f"{group}={option}")
        except CompositionError:
            continue
    return owners
