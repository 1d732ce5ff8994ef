"""A run made again: what must be as it was, where it goes, and whether it ended the same."""

import importlib.metadata
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from zhen.compose import ROOT
from zhen.errors import UserError
from zhen.files import make_directory, write_atomic, write_json
from zhen.runs.directory import RunDirectory
from zhen.runs.identity import claim, run_id
from zhen.runs.provenance import code, git, packages
from zhen.runs.resume import moved, stored_configuration

Scores = dict[str, dict[str, Any]]  # by test part, by name


def provenance_of(run: RunDirectory) -> dict[str, Any]:
    """Its provenance.json.

    Raises:
        UserError: it has none that can be read.
    """
    try:
        about = json.loads(run.provenance.read_text(encoding="utf-8"))
        assert isinstance(about["packages"], dict) and isinstance(about["corpus"], dict)
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise UserError(f"run: {run.provenance} is missing or damaged: restore it") from error
    assert isinstance(about, dict)
    return about


def differences(run: RunDirectory, about: Mapping[str, Any]) -> list[str]:
    """What is not as it was when `run` was made, and the command that gets it back.

    The pairs are missing here: training reads them, and `Resumed.check_corpus` compares.

    Args:
        about: the run's provenance.
    """
    found = []
    if about.get("code") != code():
        found.append(f"the code is not that of {_commit(about)}{_get_code_back(run, about)}")
    direct = [
        re.split(r"[^\w.-]", line)[0]
        for line in importlib.metadata.requires("zhen") or []
        if "extra ==" not in line
    ]
    here = packages()
    others = {
        name: version
        for name, version in about["packages"].items()
        if name in direct and here.get(name) != version
    }
    if others:
        shown = ", ".join(
            f"{name} was {version} and is {here.get(name, 'not here')}"
            for name, version in others.items()
        )
        wanted = shlex.join(f"{name}=={version}" for name, version in others.items())
        found.append(f"{shown} (pip install {wanted})")
    for part in about.get("resumed", []):
        if part.get("changed"):
            changes = ", ".join(f"{key}: {change}" for key, change in part["changed"].items())
            found.append(
                f"after update {part['update']} it went on with other settings ({changes})"
            )
        if part.get("code") != about.get("code"):
            found.append(
                f"after update {part['update']} it went on with the code of {_commit(part)}"
            )
    return found


def prepare(run: RunDirectory, about: Mapping[str, Any], paths: Mapping[str, str]) -> RunDirectory:
    """A run directory that holds what `run` was begun with, for `zhen.train` to begin there.

    The configuration is the stored one, not its overrides composed anew: defaults may have changed.

    Args:
        about: the run's provenance; training refuses pairs that are not those of its `corpus`.
        paths: `runs` and `cache`, which are those of this checkout, as the embedded corpus is.

    Raises:
        UserError: the configuration cannot be read, or the directory cannot be made.
    """
    stored = OmegaConf.to_container(stored_configuration(run, key="run"))
    assert isinstance(stored, dict)
    if "root" in about:
        stored = moved(stored, about["root"], ROOT)
    stored = moved(stored, stored["paths"]["cache"], Path(paths["cache"]))
    name = str(stored["name"])
    claim(lambda: Path(paths["runs"], name, run_id()))
    new = RunDirectory(Path(paths["runs"], name, run_id()))
    RunDirectory.check_new(new.path)
    make_directory(new.path, key="paths.runs")
    stored = moved(stored, stored["paths"]["run_dir"], new.path)
    stored["paths"]["runs"] = paths["runs"]
    if wandb := (stored.get("logger") or {}).get("wandb"):
        wandb["name"] = f"{name}/{new.path.name}"
    write_atomic(new.config, OmegaConf.to_yaml(OmegaConf.create(stored)))
    if run.overrides.exists():
        write_atomic(new.overrides, run.overrides.read_bytes())
    write_json(
        new.provenance, {"reproduces": {"run": str(run.path), "corpus": dict(about["corpus"])}}
    )
    return new


def scores(run: RunDirectory) -> Scores | None:
    """What its test found; None where it was not tested."""
    try:
        tests = json.loads(run.results.read_text(encoding="utf-8"))["test"]
    except (OSError, ValueError, KeyError):
        return None
    assert isinstance(tests, dict)
    return tests


def translations(run: RunDirectory) -> dict[str, bytes]:
    """What its test translated, by the name of the file."""
    return {file.name: file.read_bytes() for file in sorted(run.path.glob("test*.hyp"))}


def other_pairs(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The splits of both whose pairs are not the same, by their fingerprints."""
    return [split for split, pairs in now.items() if before.get(split, pairs) != pairs]


def other_scores(before: Scores, now: Scores) -> Iterator[tuple[str, str, Any, Any]]:
    """Test part, name of the score, and both values, wherever they differ."""
    for part in dict.fromkeys([*before, *now]):
        one, other = before.get(part, {}), now.get(part, {})
        for name in dict.fromkeys([*one, *other]):
            if one.get(name) != other.get(name):
                yield part, name, one.get(name), other.get(name)


def other_machine(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of the machine is another, where it may be the reason for other numbers."""
    kinds = {"device": ("device",), "processor": ("cpu", "name"), "threads": ("threads",)}
    found = []
    for name, path in kinds.items():
        was, is_now = _at(before, path), _at(now, path)
        if was != is_now:
            found.append(f"{name}: {was} and {is_now}")
    return found


def _at(about: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        about = about.get(key) if isinstance(about, Mapping) else None
    return about


def _commit(about: Mapping[str, Any]) -> str:
    known = about.get("git")
    if not known:
        return f"the run, which knows of no commit (it was in {about.get('root', 'no checkout')})"
    changed = " with uncommitted changes" if known["dirty"] else ""
    return f"commit {known['commit'][:10]}{changed}"


def _get_code_back(run: RunDirectory, about: Mapping[str, Any]) -> str:
    known = about.get("git")
    if not known:
        return ""
    here = git(ROOT)
    steps = []
    if here is None or here["commit"] != known["commit"]:
        steps.append(f"git checkout {known['commit'][:10]}")
    if here is not None and here["dirty"]:
        steps.insert(0, "git stash push -u -- src configs")
    if run.patch.exists():
        steps.append(shlex.join(["git", "apply", str(run.patch)]))
    return f" ({' && '.join(steps)})" if steps else ""
