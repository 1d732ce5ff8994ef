"""`make data-check`: what it finds in malformed files of every kind, and its exit status."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zhen.compose import compose
from zhen.config import build, check
from zhen.data_check import data_check
from zhen.errors import UserError
from zhen.runs.parts import make_data
from zhen.viewer import template

GOOD = "".join(f"我喜欢第{i}杯茶。\tI like tea number {i}.\n" for i in range(100, 140))
VAL = "这是一只猫。\tThis is a cat.\n"
TEST = "那是一条狗。\tThat is a dog.\n"

Findings = list[tuple[str, ...]]


class Place:
    """A folder with files, and the checks of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("train", GOOD), ("val", VAL), ("test", TEST)):
            self.write(f"{name}.tsv", text)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def overrides(self, *overrides: str) -> list[str]:
        files = [f"data.{each}={self.folder}/{each}.tsv" for each in ("train", "val", "test")]
        paths = [f"paths.{each}={self.folder / each}" for each in ("runs", "cache")]
        return ["data=files", "tokenizer.vocab_size=400", *files, *paths, *overrides]

    def check(self, *overrides: str) -> str | None:
        """Run the check in this process; gives why training would refuse, or None."""
        cfg = compose("data_check", self.overrides(*overrides))
        check(cfg)
        try:
            data_check(cfg)
        except UserError as error:
            return str(error).replace(f"{self.folder}/", "")
        return None

    @property
    def output(self) -> Path:
        return self.folder / "runs" / "data-check"

    def rows(self, name: str = "findings.tsv") -> Findings:
        """The lines of a listing, without the folder and the head."""
        text = (self.output / name).read_text(encoding="utf-8").replace(f"{self.folder}/", "")
        return [tuple(line.split("\t")) for line in text.splitlines()[1:]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(template, "cut_font", lambda texts: b"")  # it takes its time
    return Place(tmp_path)


def in_train(place: Place, content: str | bytes, name: str = "train.tsv") -> list[str]:
    path = place.write(name, content)
    return [f"data.train={path}"]


def tsv(line: str | bytes) -> Callable[[Place], list[str]]:
    """The good pairs and one line more."""
    return lambda place: in_train(
        place, GOOD.encode() + (line.encode() if isinstance(line, str) else line)
    )


def aligned(place: Place) -> list[str]:
    place.write("a.zh", "茶\n花\n")
    place.write("a.en", "tea\n")
    return [
        "data.languages=[zh,en]",
        f"data.train={{zh:{place.folder}/a.zh,en:{place.folder}/a.en}}",
    ]


def json_lines(place: Place) -> list[str]:
    good = json.dumps({"zh": "茶", "en": "tea"}, ensure_ascii=False)
    line_inside = json.dumps({"zh": "茶", "en": "tea\ntime"})
    return in_train(place, f"{good}\n{line_inside}\n{{\n", "a.jsonl")


L = "41"  # the line after the good ones
# What is written, and what is found: line, kind, refused or not, and message.
MALFORMED: dict[str, tuple[Callable[[Place], list[str]], list[tuple[str, str, str, str]]]] = {
    "undecodable": (
        tsv(b"\xb2\xe8\ttea\n"),
        [(L, "encoding", "yes", "byte 0xB2 is not UTF-8; convert the file to UTF-8")],
    ),
    "one column": (
        tsv("no tab\n"),
        [
            (
                *(L, "columns", "yes"),
                "expected 2 sentences separated by a tab (zh TAB en), but found 1: 'no tab'",
            )
        ],
    ),
    "three columns": (
        tsv("a\tb\tc\n"),
        [
            (
                *(L, "columns", "yes"),
                "expected 2 sentences separated by a tab (zh TAB en), but found 3: 'a\\tb\\tc'",
            )
        ],
    ),
    "empty side": (tsv("\ttea\n"), [(L, "empty", "yes", "the zh side is empty")]),
    "side of space": (tsv("茶\t \u3000\n"), [(L, "empty", "yes", "the en side is empty")]),
    "byte-order mark": (
        lambda place: in_train(place, b"\xef\xbb\xbf" + GOOD.encode()),
        [("1", "bom", "no", "a byte-order mark stands before the text; it is left out")],
    ),
    "CRLF": (
        tsv("茶水\ttea\r\n"),
        [(L, "crlf", "no", "1 of 41 lines end with CR LF; the CR is left out")],
    ),
    "NUL": (
        tsv("茶\x00水\ttea\n"),
        [(L, "controls", "no", "the zh side has U+0000, which shows nothing, at character 2")],
    ),
    "escape": (
        tsv("茶水\tte\x1b[31ma\n"),
        [(L, "controls", "no", "the en side has U+001B, which shows nothing, at character 3")],
    ),
    **{
        named: (
            tsv(f"茶{character}水\ttea\n"),
            [
                (
                    *(L, "separators", "no"),
                    f"the zh side has {named}, which ends a line for some programs, at character 2",
                )
            ],
        )
        for character, named in (
            ("\u2028", "U+2028 (LINE SEPARATOR)"),
            ("\u2029", "U+2029 (PARAGRAPH SEPARATOR)"),
            ("\x85", "U+0085"),
            ("\x0b", "U+000B"),
            ("\x0c", "U+000C"),
            ("\x1c", "U+001C"),
            ("\r", "U+000D"),
        )
    },
    "identical": (
        tsv("2024\t2024\n"),
        [(L, "identical", "no", "both sides are the same text")],
    ),
    "English on the Chinese side": (
        tsv("I like tea\tI like it\n"),
        [(L, "script", "no", "of 8 letters on the zh side, 0 are Han")],
    ),
    "Chinese on the English side": (
        tsv("我喜欢茶\t我喜欢它\n"),
        [(L, "script", "no", "of 4 letters on the en side, 0 are Latin")],
    ),
    "traditional mixed with simplified": (
        tsv("他們说话\tthey talk\n"),
        [
            (
                *(L, "mixed", "no"),
                "the zh side mixes traditional (們) with simplified (说话) characters",
            )
        ],
    ),
    "traditional among simplified": (
        tsv("他們說話\tthey talk\n"),
        [
            (
                *(L, "writing", "no"),
                "the zh side is traditional: of the corpus 1 are, 42 are simplified",
            )
        ],
    ),
    "odd ratio": (
        tsv("你好你好你好你好你好\thi\n"),
        [
            (
                *(L, "max_ratio", "no"),
                "the zh side has length 10, the en side 1: ratio 10.0, above 9",
            )
        ],
    ),
    "over-long": (
        tsv("好" * 201 + "\t" + "good " * 100 + "\n"),
        [(L, "max_words", "no", "the zh side has length 201, above 200")],
    ),
    "duplicate": (
        tsv(GOOD.splitlines()[2]),
        [(L, "duplicates", "no", "the same pair as train.tsv:3")],
    ),
    "unequal line counts": (
        aligned,
        [
            (
                *("", "lines", "yes"),
                "has 2 lines, but a.en has 1: where a line is missing, the pairs after it are"
                " wrong; find it and put it back",
            )
        ],
    ),
    "JSON": (
        json_lines,
        [
            (
                *("3", "json", "yes"),
                "no JSON (Expecting property name enclosed in double quotes): '{'",
            ),
            (
                *("2", "separators", "no"),
                "the en side has U+000A, which ends a line for some programs, at character 4",
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(place: Place, name: str) -> None:
    write, expected = MALFORMED[name]
    reason = place.check(*write(place), "vocabulary=false")
    found = [row for row in place.rows() if row[0] == "data.train"]
    assert [row[2:] for row in found] == expected
    refused = [row for row in found if row[4] == "yes"]
    assert (reason is not None) == bool(refused)
    if reason is not None:
        _, file, line, _, _, message = refused[0]
        assert reason == (
            f"training would refuse this corpus: data.train: {file}{line and ':'}{line}: {message}"
        )
    html = (place.output / "report.html").read_text(encoding="utf-8")
    assert ("would accept" in html) == (reason is None)


@pytest.mark.parametrize("name", MALFORMED)
def test_training_agrees(place: Place, name: str) -> None:
    """The same files, read as training reads them."""
    write, expected = MALFORMED[name]
    cfg = compose("data_check", place.overrides(*write(place)))
    data = build(cfg.data, "data", tokenizer=build(cfg.tokenizer, "tokenizer"), seed=0)
    if any(refused == "yes" for _, _, refused, _ in expected):
        with pytest.raises(UserError, match=r"^data\.train: "):
            data.read("train")
    else:
        lines = Path(cfg.data.train).read_bytes().removesuffix(b"\n").split(b"\n")
        assert len(data.read("train")) == len(lines)


def test_a_good_corpus_is_accepted(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.check() is None
    assert place.rows() == [] and place.rows("dropped.tsv") == []
    printed = capsys.readouterr().out
    page = (place.output / "report.html").read_text(encoding="utf-8")
    titles = ("Splits", "Found", "Cleaning", "Vocabulary", "Lengths", "Characters", "Random pairs")
    for said in ("Nothing odd.", "kept", *titles):
        assert said in printed and said in page, said
    assert "Training would accept this corpus." in printed
    assert printed.splitlines()[-4:] == [
        str(place.output / name)
        for name in ("report.html", "findings.tsv", "dropped.tsv", "changed.tsv")
    ]
    # What it made ready, training need not make again.
    made = cached(place)
    data = make_data(compose("train", place.overrides()), known=None)
    for name in data.all_splits:
        data.split(name)
    assert made and cached(place) == made


def cached(place: Place) -> dict[Path, int]:
    """What lies in the cache, and when it was written."""
    files = (path for path in (place.folder / "cache").rglob("*") if path.is_file())
    return {path: path.stat().st_mtime_ns for path in files}


def test_overlap_between_splits(place: Place) -> None:
    place.write("val.tsv", VAL + GOOD.splitlines()[4] + "\n")
    place.write("test.tsv", "那是一条狗。\tThis is a cat.\n我喜欢第100杯茶。\tTea, please.\n")
    assert place.check("vocabulary=false") is None
    assert place.rows() == [
        (
            *("data.val", "val.tsv", "2", "shared_pairs", "no"),
            "the pair is also in data.train, train.tsv:5",
        ),
        (
            *("data.test", "test.tsv", "2", "shared_sides", "no"),
            "the zh side is also in data.train, train.tsv:1",
        ),
        (
            *("data.test", "test.tsv", "1", "shared_sides", "no"),
            "the en side is also in data.val, val.tsv:1",
        ),
    ]


def test_empty_sides_of_training_pairs_may_be_dropped(place: Place) -> None:
    train = in_train(place, GOOD + "茶\t\n")
    assert place.check(*train, "data.clean.empty=true", "vocabulary=false") is None
    assert [row[3:5] for row in place.rows()] == [("empty", "no")]
    assert place.rows("dropped.tsv") == [("train.tsv:41", "empty", "茶", "")]
    reason = place.check(*train)
    assert (
        reason
        == "training would refuse this corpus: data.train: train.tsv:41: the en side is empty"
    )
    assert not (place.output / "dropped.tsv").exists()  # of the check before


def test_dropped_pairs_are_listed_and_counted(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = GOOD.splitlines()
    train = in_train(
        place, "\n".join([*lines, lines[0], "OK\tOK", "茶\x00\ttea", "好" * 300 + "\tx"])
    )
    assert place.check(*train, "data/clean=usual", "data.max_length=12") is None
    assert [row[:2] for row in place.rows("dropped.tsv")] == [
        ("train.tsv:41", "duplicates"),
        ("train.tsv:42", "identical"),
        ("train.tsv:43", "controls"),
        ("train.tsv:44", "max_words"),
    ]
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    start = rows.index(["training", "pairs", "count"]) + 1
    end = rows.index([], start)
    counts = {row[-2]: int(row[-1]) for row in rows[start:end]}
    kept, read = counts.pop("kept"), counts.pop("read")
    assert (read, kept + sum(counts.values())) == (44, 44)
    assert counts["controls"] == counts["max_words"] == counts["identical"] == 1


def test_changed_texts_are_listed_and_counted(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    train = in_train(place, GOOD + "茶，好\ttea \n")
    assert place.check(*train, "tokenizer.normalization=nfkc") is None
    listed = place.rows("changed.tsv")
    assert [row for row in listed if row[1] == "train.tsv:41"] == [
        ("data.train", "train.tsv:41", "tokenizer.normalization", "茶，好", "茶,好"),
        ("data.train", "train.tsv:41", "space around", "tea ", "tea"),
    ]
    shown = capsys.readouterr().out
    for rule in ("space around", "tokenizer.normalization"):
        count = len({row[1] for row in listed if (row[0], row[2]) == ("data.train", rule)})
        assert re.search(rf"data\.train +{rule} +{count}\n", shown)
    assert place.check(*in_train(place, GOOD)) is None
    assert "No text." in capsys.readouterr().out and place.rows("changed.tsv") == []


def test_held_out_pairs_are_part_of_the_check(place: Place) -> None:
    null = ["data.val=null", "data.test=null"]
    assert place.check(*null, "data.val_size=5", "data.test_size=0.2", "vocabulary=false") is None
    assert place.check(*null, "data.val_size=5", "vocabulary=false") is None
    reason = place.check(*null, "data.val_size=30", "data.test_size=30")
    assert reason is not None and reason.startswith(
        "training would refuse this corpus: data.val_size and data.test_size: "
    )


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (
            ["data.clean.min_words=50"],
            "data.clean: none of the 40 training pairs is left: 40 min_words; loosen a rule",
        ),
        (
            ["data.max_length=2"],
            "`data.max_length`: no training pair has at most 2 pieces a side; dropped: 40 longer"
            " than data.max_length=2 pieces",
        ),
        (
            ["model.max_positions=4"],
            "data.train: train.tsv:1: a sentence has 6 pieces, but the model only 4 positions:"
            " shorten it or raise model.max_positions",
        ),
    ],
)
def test_what_only_preparation_tells(place: Place, overrides: list[str], reason: str) -> None:
    found = place.check(*overrides)
    assert found is not None
    wanted, found = (text.partition("a sentence has")[::2] for text in (reason, found))
    assert found[0] == f"training would refuse this corpus: {wanted[0]}"
    assert found[1].partition("but")[2] == wanted[1].partition("but")[2]


def test_several_reasons(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.write("val.tsv", VAL + "\ttea\n")
    place.write("test.tsv", b"\xff\n\xff\n")
    assert place.check() == (
        "training would refuse this corpus: data.val: val.tsv:2: the zh side is empty, and for 1"
        " more reason"
    )
    verdict = capsys.readouterr().out.partition("Verdict\n")[2].replace(f"{place.folder}/", "")
    assert verdict.splitlines()[:3] == [
        "  Training would refuse this corpus:",
        "  - data.val: val.tsv:2: the zh side is empty",
        "  - data.test: test.tsv:1: byte 0xFF is not UTF-8; convert the file to UTF-8"
        " (1 more in findings.tsv)",
    ]


def test_columns_the_wrong_way_round(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    swapped = "".join("\t".join(line.split("\t")[::-1]) + "\n" for line in GOOD.splitlines())
    for languages, doubts in ("[zh,en]", True), ("[en,zh]", False):
        options = [f"data.languages={languages}", "data.source_lang=zh", "vocabulary=false"]
        train = in_train(place, swapped)
        place.check(*train, *options)
        verdict = capsys.readouterr().out.partition("Verdict\n")[2]
        said = "Of 40 pairs of data.train, 40 are not in the scripts of their languages"
        assert (said in " ".join(verdict.split())) is doubts


def test_a_file_that_ends_too_early(place: Place) -> None:
    whole = gzip.compress(GOOD.encode() * 2000)
    path = place.write("train.tsv.gz", whole[: len(whole) // 2])
    reason = place.check(f"data.train={path}")
    assert reason is not None
    assert reason.startswith("training would refuse this corpus: data.train: train.tsv.gz")


def test_nothing_to_check(place: Place) -> None:
    assert place.check("data.train=null") == "`data.train` names no pairs: give data.train"
    assert place.check("data.train=none.tsv") == (
        "data.train: none.tsv does not exist; give the path of a TSV of pairs"
    )
    place.write("train.tsv", "")
    reason = place.check()
    assert reason is not None and "train.tsv has no pairs" in reason


def test_the_other_direction(place: Place) -> None:
    train = in_train(place, GOOD + "English\tEnglish too\n")
    assert place.check(*train, "data.source_lang=en", "vocabulary=false") is None
    assert [row[2:] for row in place.rows()] == [
        ("41", "script", "no", "of 7 letters on the zh side, 0 are Han")
    ]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=60))
def test_any_bytes_are_reported_or_accepted_but_never_fail(place: Place, content: bytes) -> None:
    shutil.rmtree(place.folder / "cache", ignore_errors=True)
    train = in_train(place, GOOD.encode() + content)
    reason = place.check(*train, "vocabulary=false")
    assert (reason is not None) == any(row[4] == "yes" for row in place.rows())


@pytest.mark.slow
@pytest.mark.parametrize(("line", "status"), [("", 0), ("no tab\n", 1)])
def test_exit_status(place: Place, line: str, status: int) -> None:
    in_train(place, GOOD + line)
    done = subprocess.run(
        [sys.executable, "-m", "zhen.data_check", *place.overrides()],
        capture_output=True,
        text=True,
        cwd=place.folder,
    )
    assert done.returncode == status, done.stderr
    assert "Verdict" in done.stdout
    errors = [text for text in done.stderr.splitlines() if text.startswith("error: ")]
    assert len(errors) == status
    assert "Traceback" not in done.stderr
