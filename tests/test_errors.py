"""The nearest key: a typo of one letter finds the key that was meant."""

import string

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from zhen.compose import groups, known_keys
from zhen.errors import did_you_mean, nearest, one_line

KNOWN = {
    command: known_keys(command) | set(groups(command))
    for command in ("train", "sweep", "submit", "evaluate", "translate", "attention", "data_check")
}


@st.composite
def typos(draw: st.DrawFn) -> tuple[str, str, set[str]]:
    """A key of four letters or more, one of them left out, added, changed or swapped; all keys."""
    known = KNOWN[draw(st.sampled_from(sorted(KNOWN)))]
    key = draw(st.sampled_from(sorted(each for each in known if len(each) > 3)))
    at, letter = draw(st.integers(0, len(key) - 1)), draw(st.sampled_from(string.ascii_lowercase))
    head, tail = key[:at], key[at:]
    kind = draw(st.sampled_from(["left out", "added", "changed", "swapped"]))
    typo = {
        "left out": head + tail[1:],
        "added": head + letter + tail,
        "changed": head + letter + tail[1:],
        "swapped": head + tail[1:2] + tail[:1] + tail[2:],
    }[kind]
    return key, typo, known


@given(typos())
@settings(max_examples=300, deadline=None)
def test_a_typo_of_one_letter_names_the_key(case: tuple[str, str, set[str]]) -> None:
    key, typo, known = case
    # Nor the last part of another key, which it then names: `seen` is not taken for `seed`.
    assume(typo not in {each.rpartition(".")[2] for each in known} | known)
    assert key in nearest(typo, known)[:3]


def test_a_tie_names_both() -> None:
    known = ["model.num_encoder_layers", "model.num_decoder_layers", "model.norm"]
    assert did_you_mean("model.num_ecoder_layers", known) == (
        "; did you mean `model.num_decoder_layers` or `model.num_encoder_layers`?"
    )


def test_nothing_is_near() -> None:
    assert nearest("qqqqqq", ["seed", "name"]) == []
    assert nearest("seed", []) == []
    assert did_you_mean("qqqqqq", ["seed", "name"]) == ""


def test_one_line_joins_lines() -> None:
    assert one_line("a\n\n  b;\nc  ") == "a; b; c"
