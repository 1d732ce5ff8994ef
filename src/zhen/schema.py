"""Checks a composed configuration before any work.

A node with `_target_` is held against the signature and type hints of what it will call, so that
a constructor's own annotations are the schema. The few keys outside such nodes are in `PLAIN`.
Ranges are the constructors' business (`zhen.config.build` reports them); `LIMITS` has those that a
library's constructor does not check.
"""

import contextlib
import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union

from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from zhen.errors import UserError, did_you_mean, one_line
from zhen.files import SAFE_NAME

# What code passes at run time, by node: a configuration neither needs nor may give it.
SUPPLIED: Mapping[str, Sequence[str]] = {
    "model": ("vocab_size", "source_vocab_size", "pad_id"),
    "data": ("tokenizer", "seed", "dropout"),
    "optimizer": ("params",),
    "logger.wandb": ("config",),
    "logger.tensorboard": ("config", "start"),
    "trainer": ("callbacks", "logger", "enable_checkpointing", "plugins"),
}

_AT_LEAST_0 = Annotated[int, Field(ge=0)]
_AT_LEAST_1 = Annotated[int, Field(ge=1)]
_OR_NO_LIMIT = Annotated[int, Field(ge=-1)]
_POSITIVE = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_NOT_NEGATIVE = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_BELOW_1 = Annotated[float, Field(ge=0, lt=1)]
_PATHS = str | list[str]
_PART = Annotated[float, Field(gt=0, le=1)]
_PART_OR_NONE = Annotated[float, Field(ge=0, le=1)]

# Keys outside nodes with `_target_`: type and, where the type does not say it, what is allowed.
PLAIN: Mapping[str, tuple[Any, str]] = {
    "name": (
        Annotated[str, StringConstraints(pattern=f"^{SAFE_NAME.pattern}$")],
        "letters, digits, `.`, `_` and `-`, the first a letter or digit",
    ),
    "seed": (Annotated[int, Field(ge=0, le=2**32 - 1)], "an int from 0 to 4294967295"),
    "tf32": (bool, ""),
    "compile": (bool, ""),
    "nonfinite_loss": (Literal["stop", "skip"], ""),
    "resume": (str | None, ""),
    "init_from": (str | None, ""),
    "label_smoothing": (_BELOW_1, "a float, at least 0 and below 1"),
    "paths.runs": (str, ""),
    "paths.cache": (str, ""),
    "paths.run_dir": (str, ""),
    "ckpt": (str | None, ""),
    "run": (str, ""),
    "force": (bool, ""),
    "weights": (Literal["raw", "ema", "average"] | None, ""),
    "test": (
        _PATHS | dict[str, _PATHS | dict[str, _PATHS]] | None,
        "paths, or paths by name, or null",
    ),
    "languages": (list[str] | None, "a list of two language codes, or null"),
    "runs": (str | None, ""),
    "where": (str | None, ""),
    "sort": (str, ""),
    "base": (str | None, ""),
    "input": (str | None, ""),
    "text": (str | None, ""),
    "target": (str | None, ""),
    "layer": (_AT_LEAST_1 | None, "an int of at least 1, or null"),
    "head": (_AT_LEAST_1 | None, "an int of at least 1, or null"),
    "output": (str | None, ""),
    "vocabulary": (bool, ""),
    "dry": (bool, ""),
    "device": (
        Annotated[str, StringConstraints(pattern=r"^(auto|cpu|gpu|mps)$")],
        "auto, cpu, gpu or mps",
    ),
    "batch.tokens": (_AT_LEAST_1, "an int, at least 1"),
}

_BATCHES = (
    _AT_LEAST_0 | _PART_OR_NONE | None,
    "an int of at least 0, a share of the batches from 0.0 to 1.0, or null",
)

# Keys of library classes that accept what makes no sense, or fail on it after the training.
LIMITS: Mapping[str, tuple[Any, str]] = {
    "optimizer.lr": (_POSITIVE, "a number above 0"),
    "optimizer.eps": (_POSITIVE, "a number above 0"),
    "optimizer.betas": (tuple[_BELOW_1, _BELOW_1], "two numbers, each at least 0 and below 1"),
    "optimizer.weight_decay": (_NOT_NEGATIVE, "a number, at least 0"),
    "trainer.accelerator": (Literal["auto", "cpu", "gpu", "cuda", "mps"], ""),
    "trainer.precision": (Literal["32-true", "bf16-mixed", "16-mixed", "64-true"], ""),
    "trainer.num_nodes": (_AT_LEAST_1, "an int, at least 1"),
    "trainer.max_epochs": (_OR_NO_LIMIT, "an int, at least 0, or -1 for no limit"),
    "trainer.max_steps": (_OR_NO_LIMIT, "an int, at least 0, or -1 for no limit"),
    "trainer.gradient_clip_val": (_POSITIVE | None, "a number above 0, or null"),
    "trainer.accumulate_grad_batches": (_AT_LEAST_1, "an int, at least 1"),
    "trainer.val_check_interval": (
        _AT_LEAST_1 | _PART | None,
        "an int of at least 1, a share of an epoch above 0 and at most 1.0, or null",
    ),
    "trainer.check_val_every_n_epoch": (_AT_LEAST_1 | None, "an int of at least 1, or null"),
    "trainer.num_sanity_val_steps": (_OR_NO_LIMIT, "an int, at least 0, or -1 for all"),
    "trainer.log_every_n_steps": (_AT_LEAST_1, "an int, at least 1"),
    "trainer.limit_train_batches": _BATCHES,
    "trainer.limit_val_batches": _BATCHES,
    "trainer.limit_test_batches": (
        _AT_LEAST_1 | _PART | None,
        "an int of at least 1, a share above 0 and at most 1.0, or null",
    ),
    "trainer.overfit_batches": (
        Literal[0],
        "0, since it would undo the batches of similar length (trainer.limit_train_batches=1 trains"
        " on little)",
    ),
}

# Groups whose children are nodes, each of which may be null: left out.
NODE_GROUPS = ("callbacks", "logger")
_WORDS: Mapping[Any, str] = {
    int: "an int",
    float: "a float",
    str: "a string",
    bool: "true or false",
    type(None): "null",
}
_HYDRA_KEYS = ("_target_", "_partial_", "_convert_", "_recursive_", "_args_")


def check(cfg: DictConfig, supplied: Mapping[str, Sequence[str]] = SUPPLIED) -> None:
    """Refuses unknown keys, missing values and values of the wrong type.

    Args:
        cfg: the composed configuration; interpolations are resolved here.
        supplied: parameters that code passes to a node's target, by the node's key.

    Raises:
        UserError: names the key, the value, what is allowed and the nearest legal name.
    """
    targets: dict[str, dict[str, Any]] = {}
    _check_node(resolve(cfg), "", targets)
    for key, node in targets.items():  # last, because it imports what the node names
        _check_target(node, key, supplied)


def check_complete(cfg: DictConfig, defaults: Iterable[str]) -> None:
    """Refuses a configuration from which `~key` or `group=null` took what a command reads.

    Args:
        cfg: the composed configuration.
        defaults: the keys it would have without overrides.

    Raises:
        UserError: a whole node or a plain key is gone.
    """
    there = set(keys(OmegaConf.to_container(cfg, resolve=False)))
    for key in sorted(set(defaults) - there):
        if key in PLAIN or "." not in key:
            raise UserError(f"`{key}` is missing, and the command needs it: do not take it out")


def resolve(cfg: DictConfig) -> dict[str, Any]:
    """`cfg` as plain containers, interpolations resolved, `???` left where a value is missing.

    Raises:
        UserError: an interpolation names a key or resolver that does not exist.
    """
    try:
        values = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)
    except OmegaConfBaseException as error:
        reason = one_line(str(error).splitlines()[0])
        raise UserError(f"`{error.full_key}` cannot be resolved: {reason}") from error
    assert isinstance(values, dict)
    return typing.cast(dict[str, Any], values)


def keys(node: Any, prefix: str = "") -> Iterator[str]:
    """All dotted keys of nested mappings, inner nodes too, without Hydra's `_target_` and such."""
    if not isinstance(node, Mapping):
        return
    for name, value in node.items():
        if name not in _HYDRA_KEYS:
            yield f"{prefix}{name}"
            yield from keys(value, f"{prefix}{name}.")


def leaves(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values in nested mappings, and empty mappings, each with the names that lead to it."""
    if isinstance(node, Mapping) and node:
        for name, value in node.items():
            yield from leaves(value, (*path, str(name)))
    else:
        yield path, node


def within(key: str, parents: Iterable[str]) -> bool:
    """Whether a dotted key is one of `parents`, or lies below one; all lie below `""`."""
    return any(not each or f"{key}.".startswith(f"{each}.") for each in parents)


def _check_node(node: dict[str, Any], prefix: str, targets: dict[str, dict[str, Any]]) -> None:
    """Checks a mapping without `_target_` and what lies below; collects the nodes that have one."""
    in_group = prefix.rstrip(".") in NODE_GROUPS
    for name, value in node.items():
        key = f"{prefix}{name}"
        if key in PLAIN:
            _check_given(value, key)
            _check_value(key, value, *PLAIN[key])
        elif isinstance(value, dict) and "_target_" in value:
            _check_given(value, key)
            targets[key] = value
        elif isinstance(value, dict) and not in_group and _has_place(key):
            _check_node(value, f"{key}.", targets)
        elif value is not None or not in_group:
            near = did_you_mean(key, {*PLAIN, *keys(node, prefix)} - {key}) or ": take it out"
            raise UserError(f"nothing reads `{key}`{near}")


def _has_place(key: str) -> bool:
    """Whether a mapping without `_target_` may stand here."""
    return key in NODE_GROUPS or any(each.startswith(f"{key}.") for each in PLAIN)


def _check_given(value: Any, key: str) -> None:
    """Raises UserError if a value, or one inside it, is still `???`."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_given(inner, f"{key}.{name}")
    elif value == "???":
        raise UserError(f"`{key}` has no value: give one, as {key}=VALUE")


def _check_target(node: dict[str, Any], key: str, supplied: Mapping[str, Sequence[str]]) -> None:
    """Holds a node with `_target_` against the signature of its target."""
    target = _locate(node["_target_"], key)
    parameters, hints = _signature(target)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    passed = supplied.get(key, ())
    for name, value in node.items():
        full = f"{key}.{name}"
        if name in _HYDRA_KEYS:
            continue
        if name in passed:
            raise UserError(f"`{full}` is set by zhen at run time: take it out")
        if name not in parameters:
            if takes_any:
                continue
            known = [f"{key}.{each}" for each in parameters if each not in passed]
            raise UserError(
                f"`{full}` is not a parameter of {node['_target_']}{did_you_mean(full, known)}"
            )
        if isinstance(value, dict) and "_target_" in value:
            _check_target(value, full, supplied)
        elif full in LIMITS:
            _check_value(full, value, *LIMITS[full])
        elif name in hints:
            _check_value(full, value, hints[name])
    if node.get("_partial_"):
        return
    for name, parameter in parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind in (
            parameter.KEYWORD_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        )
        if needed and name not in node and name not in passed:
            raise UserError(f"`{key}.{name}` is missing: {node['_target_']} needs it")


def _check_value(key: str, value: Any, annotation: Any, allowed: str = "") -> None:
    """Raises UserError unless `value` fits `annotation`; an annotation nobody can read fits all."""
    adapter = _adapter(annotation)
    if adapter is None:
        return
    try:
        # As JSON, a strict check takes a list for a tuple and an int for a float, but no bool.
        adapter.validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError:
        if isinstance(value, str) and not is_utf8(value):
            allowed = "text in UTF-8"
        message = f"`{key}` must be {allowed or describe(annotation)}, but is {show(value)}"
        if isinstance(value, str):
            message += did_you_mean(
                value, [each for each in _literals(annotation) if isinstance(each, str)]
            )
        elif isinstance(value, (bool, int, float)) and _accepts(adapter, str(value)):
            message += f"; as text it is written {key}='\"{show(value)}\"'"
        raise UserError(message) from None


def _accepts(adapter: TypeAdapter[Any], value: str) -> bool:
    try:
        adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return False
    return True


def is_utf8(text: str) -> bool:
    """False for what Python makes of a command line's bytes that are not UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def describe(annotation: Any) -> str:
    """An annotation in words: `an int or null`, `one of 'pre', 'post'`."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if inspect.isclass(annotation) and annotation in _WORDS:
        return _WORDS[annotation]
    if origin is Annotated:
        return describe(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(show(each) for each in arguments)
    if origin in (Union, types.UnionType):
        # Classes such as Tensor cannot be written in a configuration: not worth naming.
        plain = [each for each in arguments if typing.get_origin(each) or each in _WORDS]
        literal = [each for each in plain if typing.get_origin(each) is Literal]
        if literal:  # several Literals read better as one
            values = tuple(value for each in literal for value in typing.get_args(each))
            plain = [Literal[values], *(each for each in plain if each not in literal)]
        return " or ".join(dict.fromkeys(describe(each) for each in plain or arguments))
    if origin is tuple and Ellipsis not in arguments:
        return f"a list of {len(arguments)} values, each {describe(arguments[0])}"
    if origin is dict or annotation is dict:
        return "a mapping"
    if origin in (list, tuple):
        return f"a list, each value {describe(arguments[0])}"
    if dataclasses.is_dataclass(annotation):
        return "a mapping"
    return getattr(annotation, "__name__", str(annotation))


def show(value: Any) -> str:
    """A value as it is written in YAML, a string in quotes."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return repr(value)


def _literals(annotation: Any) -> list[Any]:
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        return list(arguments)
    return [value for each in arguments for value in _literals(each)]


def _locate(target: Any, key: str) -> Callable[..., Any]:
    try:
        found = get_object(target)
    except Exception as error:
        raise UserError(
            f"`{key}._target_`: {target!r} cannot be imported: {one_line(error)}"
        ) from error
    if not callable(found):
        raise UserError(f"`{key}._target_` must name something to call, but {target!r} is not")
    return typing.cast(Callable[..., Any], found)


def _signature(
    target: Callable[..., Any],
) -> tuple[Mapping[str, inspect.Parameter], dict[str, Any]]:
    """The parameters of a class or function, and those of its type hints that can be read."""
    parameters = inspect.signature(target).parameters
    function = inspect.unwrap(target.__init__ if inspect.isclass(target) else target)
    names = getattr(function, "__globals__", {})
    hints = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        # One by one: a name imported for type checkers alone costs its own parameter's check only.
        with contextlib.suppress(Exception):
            holder = types.SimpleNamespace(__annotations__={name: annotation})
            hints.update(typing.get_type_hints(holder, globalns=names))
    return parameters, hints


@cache
def _cached_adapter(annotation: Any) -> TypeAdapter[Any] | None:
    for config in (ConfigDict(arbitrary_types_allowed=True), None):
        try:
            return TypeAdapter(annotation, config=config)
        except Exception:  # pydantic cannot read it, or it brings its own config: try without
            continue
    return None


def _adapter(annotation: Any) -> TypeAdapter[Any] | None:
    try:
        return _cached_adapter(annotation)
    except TypeError:  # not hashable
        return None
