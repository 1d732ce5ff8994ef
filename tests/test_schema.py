"""A node is held against the constructor it will call."""

import math
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from omegaconf import OmegaConf

from zhen.errors import UserError
from zhen.schema import check, check_complete, describe, keys


@dataclass(frozen=True)
class Inner:
    size: int = 1


class Thing:
    """A parameter for each kind of annotation; one that cannot be read spoils no other."""

    def __init__(
        self,
        *,
        whole: int = 0,
        real: float = 0.0,
        flag: bool = False,
        text: str = "",
        maybe: int | None = None,
        choice: Literal["red", "green"] = "red",
        mixed: bool | Literal["warn"] | None = None,
        several: list[str] | None = None,
        pair: tuple[float, float] = (0.0, 0.0),
        table: dict[str, str] | str = "",
        path: str | Path = "",
        time: str | timedelta | None = None,
        inner: Inner = Inner(),
        anything: Any = None,
        bare=None,
        unknown: "NotImported" = None,  # type: ignore  # noqa: F821
    ) -> None: ...


def needs(required: int, optional: int = 0) -> None: ...


def takes_any(first: int = 0, **rest: Any) -> None: ...


def node(target: str, **values: Any) -> dict[str, Any]:
    return {"_target_": f"{__name__}.{target}", **values}


def refused(supplied: Any = None, **nodes: Any) -> str:
    with pytest.raises(UserError) as error:
        check(OmegaConf.create(nodes), supplied=supplied or {})
    return str(error.value)


@pytest.mark.parametrize(
    "values",
    [
        {"whole": 3},
        {"real": 1},
        {"real": 0.5},
        {"real": math.inf},
        {"flag": True},
        {"maybe": None},
        {"maybe": 3},
        {"choice": "green"},
        {"mixed": "warn"},
        {"mixed": False},
        {"several": []},
        {"several": ["a", "b"]},
        {"pair": [0.9, 1]},
        {"table": {"a": "b"}},
        {"table": "a"},
        {"path": "a/b"},
        {"time": "00:00:01:00"},
        {"inner": {"_target_": f"{__name__}.Inner", "size": 2}},
        {"anything": [1, "a"]},
        {"bare": 1},
        {"unknown": "x"},
    ],
    ids=str,
)
def test_a_value_that_fits(values: dict[str, Any]) -> None:
    check(OmegaConf.create({"model": node("Thing", **values)}))


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("whole", 3.0, "an int, but is 3.0"),
        ("whole", True, "an int, but is true"),
        ("whole", "3", "an int, but is '3'"),
        ("whole", None, "an int, but is null"),
        ("real", "1e-3x", "a float, but is '1e-3x'"),
        ("real", False, "a float, but is false"),
        ("flag", 1, "true or false, but is 1"),
        ("flag", "yes", "true or false, but is 'yes'"),
        ("text", 3, "a string, but is 3; as text it is written model.text='\"3\"'"),
        ("maybe", "x", "an int or null, but is 'x'"),
        ("choice", "rde", "one of 'red', 'green', but is 'rde'; did you mean `red`?"),
        ("mixed", "wran", "one of 'warn' or true or false or null, but is 'wran'; did you mean"),
        ("several", "a", "a list, each value a string or null, but is 'a'"),
        ("several", ["a", 1], "a list, each value a string or null, but is ['a', 1]"),
        ("pair", [0.9], "a list of 2 values, each a float, but is [0.9]"),
        ("table", ["a"], "a mapping or a string, but is ['a']"),
        ("inner", 3, "a mapping, but is 3"),
        ("inner", node("Inner", size="x"), None),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit(name: str, value: Any, allowed: str | None) -> None:
    message = refused(model=node("Thing", **{name: value}))
    if allowed is None:
        assert message == "`model.inner.size` must be an int, but is 'x'"
    else:
        assert message.startswith(f"`model.{name}` must be {allowed}")


def test_an_unknown_parameter_names_the_nearest() -> None:
    message = refused(model=node("Thing", hwole=1))
    assert message == (
        f"`model.hwole` is not a parameter of {__name__}.Thing; did you mean `model.whole`?"
    )
    check(OmegaConf.create({"model": node("takes_any", anything=1)}))


def test_a_required_parameter_is_given_supplied_or_left_to_a_partial() -> None:
    assert refused(model=node("needs")) == f"`model.required` is missing: {__name__}.needs needs it"
    check(OmegaConf.create({"model": node("needs", required=1)}))
    check(OmegaConf.create({"model": node("needs")}), supplied={"model": ["required"]})
    check(OmegaConf.create({"model": node("needs", _partial_=True)}))
    message = refused(supplied={"model": ["required"]}, model=node("needs", required=1))
    assert message == "`model.required` is set by zhen at run time: take it out"


def test_a_value_that_is_still_missing_at_any_depth() -> None:
    values = node("Thing", table={"a": "???"})
    assert refused(model=values) == "`model.table.a` has no value: give one, as model.table.a=VALUE"
    assert refused(seed="???") == "`seed` has no value: give one, as seed=VALUE"


def test_what_is_no_target() -> None:
    assert "`model._target_`: 'zhen.nowhere' cannot be imported" in refused(
        model={"_target_": "zhen.nowhere"}
    )
    assert "must name something to call" in refused(model={"_target_": "math.pi"})


def test_plain_keys_come_before_anything_is_imported() -> None:
    assert "`seed`" in refused(model={"_target_": "zhen.nowhere"}, seed="x")


def test_children_of_callbacks_are_nodes_or_null() -> None:
    check(OmegaConf.create({"callbacks": {"one": node("Thing"), "two": None}}))
    assert refused(callbacks={"one": {"whole": 1}}).startswith("nothing reads `callbacks.one`")
    assert refused(callbacks={"one": 3}).startswith("nothing reads `callbacks.one`")
    assert refused(model={"d_model": 3}).startswith("nothing reads `model`")


def test_what_a_command_reads_must_be_there() -> None:
    defaults = ["seed", "paths", "paths.runs", "model", "model.whole"]
    check_complete(OmegaConf.create({"seed": 1, "paths": {"runs": "b"}, "model": {}}), defaults)
    for cfg, key in [({"seed": 1, "paths": {"runs": "b"}}, "model"), ({"model": {}}, "paths")]:
        with pytest.raises(UserError, match=f"`{key}` is missing"):
            check_complete(OmegaConf.create(cfg), defaults)


def test_keys_are_dotted_and_without_hydras_own() -> None:
    nested = {"model": node("Thing", inner={"_partial_": True, "size": 1}), "list": [{"a": 1}]}
    assert list(keys(nested)) == ["model", "model.inner", "model.inner.size", "list"]


def test_descriptions() -> None:
    assert describe(int | None) == "an int or null"
    assert describe(float | Path) == "a float"
    assert describe(Literal[1, "a"]) == "one of 1, 'a'"
    assert describe(tuple[int, ...]) == "a list, each value an int"
