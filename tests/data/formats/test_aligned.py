"""Two files line by line: a line too few must never shift the rest in silence."""

from pathlib import Path

import pytest
from tests.data.written import chunks, faults_of, lines_of, pairs_of, write


@pytest.fixture
def both(tmp_path: Path) -> dict[str, str]:
    return {"zh": str(tmp_path / "a.zh"), "en": str(tmp_path / "a.en")}


def found_in(both: dict[str, str], zh: bytes, en: bytes, source_lang: str = "zh") -> tuple:
    write(Path(both["zh"]), zh)
    write(Path(both["en"]), en)
    found = chunks(both, source_lang)
    folder = str(Path(both["zh"]).parent) + "/"
    return (
        pairs_of(found),
        lines_of(found),
        [str(each).replace(folder, "") for each in faults_of(found)],
    )


def test_lines_belong_together(both: dict[str, str]) -> None:
    zh, en = "茶\u2028水\n\n花\t。\n".encode(), b"tea\x0b\nempty\nflower"
    pairs = [("茶\u2028水", "tea\x0b"), ("", "empty"), ("花\t。", "flower")]
    assert found_in(both, zh, en) == (pairs, [1, 2, 3], [])
    assert found_in(both, zh, en, "en")[0] == [(b, a) for a, b in pairs]


LOST = "where a line is missing, the pairs after it are wrong; find it and put it back"


@pytest.mark.parametrize("source_lang", ["zh", "en"])
def test_unequal_counts_name_both_files(both: dict[str, str], source_lang: str) -> None:
    zh = "一\n二\n".encode()
    _, lines, faults = found_in(both, zh, b"one\ntwo\nthree\nfour", source_lang)
    assert lines == [1, 2]
    one, other = (
        ("a.zh: has 2", "a.en has 4") if source_lang == "zh" else ("a.en: has 4", "a.zh has 2")
    )
    assert faults == [f"{one} lines, but {other}: {LOST}"]
    assert found_in(both, b"", b"one\n", "zh")[2] == [f"a.zh: has 0 lines, but a.en has 1: {LOST}"]


def test_what_one_file_cannot_give_keeps_the_other_in_step(both: dict[str, str]) -> None:
    zh = "\ufeff一\r\n".encode() + "二\r\n".encode("gbk") + "三\r\n四".encode()
    pairs, lines, faults = found_in(both, zh, b"1\n2\n3\n\xff\n")
    assert (pairs, lines) == ([("一", "1"), ("三", "3")], [1, 3])
    assert faults == [
        "a.zh:2: byte 0xB6 is not UTF-8; convert the file to UTF-8",
        "a.en:4: byte 0xFF is not UTF-8; convert the file to UTF-8",
        "a.zh:1: a byte-order mark stands before the text; it is left out",
        "a.zh:1: 3 of 4 lines end with CR LF; the CR is left out",
    ]
