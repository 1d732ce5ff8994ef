"""Where a line ends, and what is no part of it."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from zhen.data.formats import lines
from zhen.data.formats.lines import InputFile, Lines
from zhen.data.source import Fault
from zhen.errors import UserError


def read(path: Path, content: bytes) -> tuple[list[str | Fault], list[str]]:
    """The lines of a file and the notes on it."""
    path.write_bytes(content)
    found = Lines(InputFile(path, "data.train"))
    return list(found), [str(note).replace(str(path), "F") for note in found.notes()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


@pytest.mark.parametrize(
    "odd",
    ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\0", "\u3000"],
)
def test_only_newlines_end_a_line(path: Path, odd: str) -> None:
    content = f"{odd}茶{odd}水\n{odd}\n花{odd}x".encode()
    assert read(path, content)[0] == [f"{odd}茶{odd}水", odd.removesuffix("\r"), f"花{odd}x"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa", ["\ufeffa"]),
        (b"a\r\n\r\nb\r", ["a", "", "b"]),
        (b"a\r\r\n", ["a\r"]),
    ],
    ids=repr,
)
def test_ends_and_mark(path: Path, content: bytes, found: list[str]) -> None:
    assert read(path, content)[0] == found


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (b"a\nb\n", []),
        (b"a\rb\n", []),
        (b"\xef\xbb\xbfa\n", ["F:1: a byte-order mark stands before the text; it is left out"]),
        (b"a\nb\r\nc\n", ["F:2: 1 of 3 lines end with CR LF; the CR is left out"]),
        (b"a\r\nb\r\n", ["F:1: 2 of 2 lines end with CR LF; the CR is left out"]),
        (b"a\xff\r\nb\r", ["F:1: 2 of 2 lines end with CR LF; the CR is left out"]),
    ],
    ids=repr,
)
def test_notes(path: Path, content: bytes, notes: list[str]) -> None:
    assert read(path, content)[1] == notes


def test_what_is_not_utf8_stands_in_its_line(path: Path) -> None:
    found, _ = read(path, "茶".encode("gbk") + "\n茶\n".encode() + b"x\xe8\x8c\n\xed\xa0\x80")
    assert [
        each if isinstance(each, str) else str(each).replace(str(path), "F") for each in found
    ] == [
        "F:1: byte 0xB2 is not UTF-8; convert the file to UTF-8",
        "茶",
        "F:3: byte 0xE8 is not UTF-8; convert the file to UTF-8",
        "F:4: byte 0xED is not UTF-8; convert the file to UTF-8",
    ]
    assert all(each.refused for each in found if isinstance(each, Fault))


@given(content=st.binary(max_size=60) | st.text("\r\n茶\u2028a", max_size=20).map(str.encode))
@settings(max_examples=100, deadline=None)
def test_the_size_of_a_block_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    assume(not content.startswith(b"\x1f\x8b"))  # gzip
    path = tmp_path_factory.getbasetemp() / "blocks.txt"
    whole = read(path, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", 4)  # at least the byte-order mark
        assert read(path, content) == whole


def test_a_file_without_lines_is_refused_before_memory_runs_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 3 << 20)
    with pytest.raises(UserError) as refused:
        read(path, b"a\n" + b"x" * (5 << 20))
    assert str(refused.value) == (
        f"data.train: {path}:2: a line of more than 3 MiB is no sentence; is it a text file?"
    )
