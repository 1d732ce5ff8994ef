"""From a command line to a checked configuration to a function's call.

Hydra only composes: the run directory, logging and errors are ours.
"""

import argparse
import contextlib
import functools
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from zhen.compose import (
    ROOT,
    CompositionError,
    absolute_paths,
    compose,
    config_directory,
    explain,
    known_keys,
)
from zhen.errors import UserError, one_line
from zhen.runs import identity
from zhen.runs.directory import rank
from zhen.schema import check, check_complete, resolve

__all__ = [
    "ROOT",
    "UserError",
    "build",
    "build_all",
    "check",
    "checked",
    "compose",
    "current_choices",
    "current_overrides",
    "resolve",
    "run_command",
]

Command = Callable[[DictConfig], Any]
_overrides: list[str] = []
_choices: dict[str, str | None] = {}


def run_command(command: Command, config_name: str) -> None:
    """Composes `configs/<config_name>.yaml` with the command line, checks it, calls `command`.

    A `UserError` becomes one line on stderr and exit status 1, unless HYDRA_FULL_ERROR=1 asks for
    the traceback, and so does what the system refuses, such as a full disk. An interrupt exits
    with 130, SIGTERM with 143, a closed pipe with 141; any other exception is a bug and passes.

    Args:
        command: gets the checked configuration; must import what is heavy inside.
        config_name: the primary configuration, without `.yaml`.
    """
    # OpenMP threads that wait by spinning lose nearly all speed as soon as anything else wants a
    # core: measured on 2 busy cores, 276 tokens/s against 2,530. Read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # In bfloat16 the CPU compiles a kernel for each new shape of a product, and an epoch's batches
    # have thousands. The 1024 that are kept by default made each epoch compile them all again.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
    # Lightning's remarks on hardware and products; its warnings stay.
    for name in ("pytorch.utilities.rank_zero", "fabric.utilities.distributed"):
        logging.getLogger(f"lightning.{name}").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*LeafSpec.* is deprecated")  # Lightning's own use
    # Lightning's, on every machine with Slurm, of a training that it did not start.
    warnings.filterwarnings("ignore", message="The `srun` command is available on your system")
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller, as `>&-` does
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    full_error, argv = os.environ.get("HYDRA_FULL_ERROR"), sys.argv
    try:
        _run(command, config_name, full_error)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    except SystemExit as stop:
        # Lightning ends after an interrupt with the status of an error, after SIGTERM with that of
        # success.
        if isinstance(stop.__context__, KeyboardInterrupt):
            _leave("interrupted", 130)
        if type(stop).__name__ == "SIGTERMException":
            _leave("terminated", 143)
        raise
    except BrokenPipeError:  # whoever read the output has left, as `head` does
        _let_go_of_output()
        sys.exit(141)
    except (UserError, OSError) as error:
        if full_error == "1":
            raise
        _let_go_of_output()
        who = f"rank {rank()}: " if rank() else ""
        _leave(f"error: {who}{one_line(error)}", 1)
    finally:
        sys.argv = argv


def checked(config_name: str, words: Sequence[str]) -> DictConfig:
    """The configuration that a command would get with these words, checked as it would be.

    Raises:
        UserError: the words do not compose, or a key or value is refused.
    """
    try:
        cfg = compose(config_name, words)
    except CompositionError as error:
        raise UserError(explain(error, config_name, words)) from error
    check_complete(cfg, known_keys(config_name))
    check(cfg)
    return cfg


def _let_go_of_output() -> None:
    """What cannot be written must go somewhere, or Python complains of it when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(message: str, status: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(status)


def current_overrides() -> list[str]:
    """The overrides, as given on the command line."""
    return list(_overrides)


def current_choices() -> dict[str, str | None]:
    """The option of each configuration group in the job that runs now, as {"model": "tiny"}."""
    return dict(_choices)


def build(node: DictConfig, key: str, **extra: Any) -> Any:
    """Calls the `_target_` of a node with its other keys and `extra`.

    A node with `_partial_: true` and no `extra` gives the call that is still to be made; it
    reports errors in the same way.

    Raises:
        UserError: the target refuses a value; the message begins with the node's key.
    """
    try:
        # What is passed in `extra` must not go through OmegaConf, which copies it: hence a partial.
        make = instantiate(node, _partial_=True, _convert_="all")
    except InstantiationException as error:
        inner = re.search(r"full_key: (\S+)", str(error))
        _refuse(inner[1] if inner else key, error.__cause__ or error)
    if node.get("_partial_", False) and not extra:
        return functools.partial(_call, make, key)
    return _call(make, key, **extra)


def build_all(
    nodes: DictConfig, key: str, supplied: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Any]:
    """`build` for each child of a group such as `callbacks`, without those that are null.

    Args:
        supplied: what is known at run time only, by the child's name.
    """
    return [
        build(node, f"{key}.{name!s}", **(supplied or {}).get(str(name), {}))
        for name, node in nodes.items()
        if node is not None
    ]


@contextlib.contextmanager
def settings_refused_late() -> Iterator[None]:
    """Inside, what Lightning refuses only as it runs is reported as the user's error.

    Raises:
        UserError: a MisconfigurationException, or a ValueError that Lightning itself raised.
    """
    try:
        yield
    except Exception as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        module = last.tb_frame.f_globals.get("__name__", "") if last is not None else ""
        by_lightning = isinstance(error, ValueError) and module.startswith("lightning.")
        if by_lightning or type(error).__name__ == "MisconfigurationException":
            raise UserError(f"trainer: {one_line(error)}") from error
        raise


def _call(make: Callable[..., Any], key: str, /, *args: Any, **extra: Any) -> Any:
    try:
        return make(*args, **extra)
    except Exception as error:
        _refuse(key, error)


def _refuse(key: str, error: BaseException) -> NoReturn:
    # Lightning's class by name: importing it would cost every command a second.
    legal = (ValueError, TypeError, ImportError)
    if isinstance(error, legal) or type(error).__name__ == "MisconfigurationException":
        raise UserError(f"`{key}`: {one_line(error)}") from error
    raise error


def _run(
    command: Command,
    config_name: str,
    full_error: str | None,
) -> None:
    arguments = _parse_arguments()
    name = arguments.config_name or config_name
    started = False
    failures: list[UserError | OSError] = []

    @functools.wraps(command)
    def job(cfg: DictConfig) -> Any:
        nonlocal started
        started = True
        with _variable("HYDRA_FULL_ERROR", full_error), _outside_hydra():
            try:
                return _run_job(command, cfg, name)
            except (UserError, OSError) as error:
                failures.append(error)  # raised below, where Hydra adds no line of its own

    directory = str(config_directory())
    try:
        # Hydra would print its own errors and exit, unless it is asked to let them pass.
        with _variable("HYDRA_FULL_ERROR", "1"):
            hydra.main(version_base="1.3", config_path=directory, config_name=config_name)(job)()
    except CompositionError as error:
        if started:
            raise
        raise UserError(explain(error, name, arguments.overrides)) from error
    if failures:
        raise failures[0]


def _run_job(command: Command, cfg: DictConfig, config_name: str) -> Any:
    absolute_paths(cfg)
    with identity.fixed():
        check_complete(cfg, known_keys(config_name))
        check(cfg)
        made, before = None, None
        if "run_dir" in cfg.paths and cfg.resume in (None, "auto"):
            # Whoever submits is no rank, but alone.
            nodes = 1 if "cluster" in cfg else OmegaConf.select(cfg, "trainer.num_nodes", default=1)
            before = next(path for path in Path(cfg.paths.run_dir).parents if path.exists())
            made = identity.claim(lambda: Path(cfg.paths.run_dir), nodes)
        try:
            return command(cfg)
        finally:
            if made is not None:  # a run that failed before it wrote anything leaves nothing
                with contextlib.suppress(OSError):
                    while made != before:
                        made.rmdir()
                        made = made.parent


@contextlib.contextmanager
def _outside_hydra() -> Iterator[None]:
    """Hides Hydra from the command, and the command's environment from whoever called it.

    Lightning starts the other ranks with this process's own command line, and adds overrides of its
    own where it sees Hydra.
    """
    here = HydraConfig.get()
    words = OmegaConf.to_container(here.overrides.task)
    assert isinstance(words, list)
    _choices.clear()
    _choices.update(
        (str(group), option)
        for group, option in here.runtime.choices.items()
        if not str(group).startswith("hydra")
    )
    hydra_config, loader = HydraConfig.instance().cfg, GlobalHydra.instance().hydra
    HydraConfig.instance().cfg = GlobalHydra.instance().hydra = None
    _overrides[:] = words
    environment = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        HydraConfig.instance().cfg, GlobalHydra.instance().hydra = hydra_config, loader


@contextlib.contextmanager
def _variable(name: str, value: str | None) -> Iterator[None]:
    """Sets or removes an environment variable for a while."""
    before = os.environ.get(name)
    _set_variable(name, value)
    try:
        yield
    finally:
        _set_variable(name, before)


def _set_variable(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


def _parse_arguments() -> argparse.Namespace:
    """Hydra's own options, with its usage message replaced by one line."""
    parser = get_args_parser()

    def refuse(message: str) -> NoReturn:
        raise UserError(
            f"{message}: settings are written key=value, as optimizer.lr=0.001; --help lists them"
        )

    parser.error = refuse  # type: ignore[method-assign]
    arguments = parser.parse_intermixed_args()
    if arguments.multirun:
        raise UserError(
            "-m: Hydra would run all jobs in one process, where they get into each other's way;"
            " `make sweep` (python -m zhen.sweep) gives each training one of its own"
        )
    # Hydra's parser takes overrides in one stretch only: `a=1 --cfg job b=1` would be refused.
    options = [each for each in sys.argv[1:] if each not in arguments.overrides]
    sys.argv = [sys.argv[0], *options, *arguments.overrides]
    return arguments
