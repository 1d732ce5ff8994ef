"""Files of pairs: what is read, and what each faulty file is told."""

from pathlib import Path

import pytest

from zhen.data.corpus import Corpus
from zhen.data.files import Files
from zhen.errors import UserError

LANGUAGES = ["zh", "en"]


def read(path: Path, source: str = "zh", target: str = "en") -> Corpus:
    opened = Files().open(str(path), key="data.train", languages=LANGUAGES, source_lang=source)
    cache = path.parent / "cache"
    return Corpus.cached(opened, cache, key="data.train", source_lang=source, target_lang=target)


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    return path


GOOD = "我喜欢茶。\tI like tea.\n".encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "data.train: {path} has no pairs"),
        (
            GOOD + b"no tab\n",
            "data.train: {path}:2: expected 2 sentences separated by a tab (zh TAB en),"
            " but found 1: 'no tab'",
        ),
        (
            GOOD + GOOD + b"a\tb\tc\n",
            "data.train: {path}:3: expected 2 sentences separated by a tab (zh TAB en),"
            " but found 3: 'a\\tb\\tc'",
        ),
        (
            GOOD + b"\n" + GOOD,
            "data.train: {path}:2: expected 2 sentences separated by a tab (zh TAB en),"
            " but found 1: ''",
        ),
        (
            GOOD + b"\xb2\xe8\ttea\n",
            "data.train: {path}:2: byte 0xB2 is not UTF-8; convert the file to UTF-8",
        ),
        (
            b"\xef\xbb\xbf" + GOOD + b"tea\t\xff\n",
            "data.train: {path}:2: byte 0xFF is not UTF-8; convert the file to UTF-8",
        ),
        (  # an unfinished character at the very end
            GOOD[:-1] + b"\xe8\x8c",
            "data.train: {path}:1: byte 0xE8 is not UTF-8; convert the file to UTF-8",
        ),
        (
            b"x" * 70 + b"\n",
            "data.train: {path}:1: expected 2 sentences separated by a tab (zh TAB en),"
            f" but found 1: '{'x' * 57}...'",
        ),
    ],
    ids=range(8),
)
def test_faulty_file_is_refused_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(UserError) as refused:
        read(path)
    assert str(refused.value) == message.format(path=path)


def test_missing_file_and_directory_are_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.tsv"
    with pytest.raises(UserError) as refused:
        read(missing)
    assert str(refused.value) == (
        f"data.train: {missing} does not exist; give the path of a TSV of pairs"
    )
    with pytest.raises(UserError) as refused:
        read(tmp_path)
    assert str(refused.value) == f"data.train: cannot read {tmp_path}: Is a directory"


def test_either_column_can_be_the_source(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    forth, back = read(path), read(path, "en", "zh")
    assert (forth.sources, forth.targets) == (["我喜欢茶。"], ["I like tea."])
    assert (back.sources, back.targets) == (forth.targets, forth.sources)
    assert forth.fingerprint != back.fingerprint


@pytest.mark.parametrize(
    "odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\u3000"]
)
def test_only_newlines_end_a_line(tmp_path: Path, odd: str) -> None:
    corpus = read(written(tmp_path, f"茶{odd}水\ttea{odd}water\n花\tflower\n".encode()))
    assert corpus.sources == [f"茶{odd}水", "花"]
    assert corpus.targets == [f"tea{odd}water", "flower"]


@pytest.mark.parametrize(
    "same",
    [
        "茶\ttea\r\n花\tflower\r\n".encode(),
        "茶\ttea\n花\tflower".encode(),  # the last line without its end
        b"\xef\xbb\xbf" + "茶\ttea\n花\tflower\n".encode(),
    ],
    ids=["CRLF", "no last newline", "byte-order mark"],
)
def test_line_ends_and_mark_are_no_part_of_the_pairs(tmp_path: Path, same: bytes) -> None:
    plain = read(written(tmp_path, "茶\ttea\n花\tflower\n".encode()))
    pairs = plain.texts(0, 2)
    other = read(written(tmp_path, same))
    assert other.fingerprint == plain.fingerprint
    assert other.texts(0, len(other)) == pairs == (["茶", "花"], ["tea", "flower"])


def test_spaces_are_kept_and_any_change_changes_the_fingerprint(tmp_path: Path) -> None:
    plain = read(written(tmp_path, b"a b\tc d\n"))
    spaced = read(written(tmp_path, b" a  b\tc d \n"))
    assert (spaced.sources, spaced.targets) == ([" a  b"], ["c d "])
    assert spaced.fingerprint != plain.fingerprint
