"""TSV and CSV: columns, headers, quotes, and what each faulty line is told."""

from pathlib import Path
from typing import Any

import pytest
from tests.data.written import chunks, faults_of, lines_of, pairs_of, write


def read(folder: Path, name: str, content: str, **options: Any) -> tuple[list, list[str]]:
    """Pairs, and faults without the path."""
    path = write(folder / name, content.encode())
    found = chunks(str(path), **options)
    assert lines_of(found) == sorted(lines_of(found))
    return pairs_of(found), [str(each).replace(str(path), "F") for each in faults_of(found)]


TAB = "expected 2 sentences separated by a tab (zh TAB en), but found"
COMMA = "expected 2 sentences separated by a comma (zh, en), but found"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("no tab", f"F:2: {TAB} 1: 'no tab'"),
        ("a\tb\tc", f"F:2: {TAB} 3: 'a\\tb\\tc'"),
        ("", f"F:2: {TAB} 1: ''"),
        ("x" * 70, f"F:2: {TAB} 1: '{'x' * 57}...'"),
    ],
)
def test_a_tsv_line_with_other_columns(tmp_path: Path, line: str, fault: str) -> None:
    assert read(tmp_path, "a.tsv", f"茶\ttea\n{line}\n花\tflower\n") == (
        [("茶", "tea"), ("花", "flower")],
        [fault],
    )


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_text_may_be_long(tmp_path: Path, name: str) -> None:
    text = "tea " * 50_000
    separator = "\t" if name == "a.tsv" else ","
    path = write(tmp_path / name, f"zh{separator}en\n茶{separator}{text}\n".encode())
    assert pairs_of(chunks(str(path))) == [("茶", text)]


def test_an_empty_side_is_a_pair(tmp_path: Path) -> None:
    assert read(tmp_path, "a.tsv", "\ttea\n茶\t\n\t\n") == (
        [("", "tea"), ("茶", ""), ("", "")],
        [],
    )


def test_quotes_mean_nothing_in_a_tsv(tmp_path: Path) -> None:
    pairs = [('"茶', 'tea"'), ("''", '"a""b"')]
    assert read(tmp_path, "a.tsv", "".join(f"{a}\t{b}\n" for a, b in pairs)) == (pairs, [])


@pytest.mark.parametrize(
    ("content", "options", "pairs"),
    [
        ("1\ttea\t茶\tx\n2\tb\t花\ty\n", {"columns": [2, 1]}, [("茶", "tea"), ("花", "b")]),
        ("c\te\n茶\ttea\n", {"columns": ["c", "e"]}, [("茶", "tea")]),
        ("e\tc\n茶\ttea\n", {"columns": ["c", "e"], "header": True}, [("tea", "茶")]),
        ("id\ten\tzh\n1\ttea\t茶\n", {}, [("茶", "tea")]),  # the languages name the columns
        ("en\tzh\ntea\t茶\n", {"columns": [1, 0]}, [("茶", "tea")]),
        ("en\tzh\ntea\t茶\n", {"header": False}, [("en", "zh"), ("tea", "茶")]),
        ("x\ty\n茶\ttea\n", {"header": True, "columns": [0, 1]}, [("茶", "tea")]),
        ("x\ty\n茶\ttea\n", {}, [("x", "y"), ("茶", "tea")]),
    ],
)
def test_columns_of_a_tsv(tmp_path: Path, content: str, options: Any, pairs: Any) -> None:
    assert read(tmp_path, "a.tsv", content, **options) == (pairs, [])


@pytest.mark.parametrize(
    ("content", "options", "pairs"),
    [
        ("zh,en\n茶,tea\n", {}, [("茶", "tea")]),
        ('en,id,zh\n"a, ""b""",7,茶\n', {}, [("茶", 'a, "b"')]),
        ("c,e\n茶,tea\n", {"columns": ["c", "e"]}, [("茶", "tea")]),
        ("茶,tea\n", {"header": False}, [("茶", "tea")]),
        ("7,tea,茶\n", {"header": False, "columns": [2, 1]}, [("茶", "tea")]),
        ("i,x,y\n7,tea,茶\n", {"header": True, "columns": [2, 1]}, [("茶", "tea")]),
        ('zh,en\n"茶\n水","te\r\na"\n花,flower\n', {}, [("茶\n水", "te\na"), ("花", "flower")]),
        ('\ufeffzh,en\n茶,"a\rb"\n', {}, [("茶", "a\rb")]),
    ],
)
def test_columns_of_a_csv(tmp_path: Path, content: str, options: Any, pairs: Any) -> None:
    found, faults = read(tmp_path, "a.csv", content, **options)
    assert found == pairs
    assert all("CR LF" in fault or "byte-order" in fault for fault in faults)


NAME_THEM = (
    "name the two with data.reader.columns, or, if line 1 is a pair, say data.reader.header=false"
)


@pytest.mark.parametrize(
    ("content", "options", "faults"),
    [
        ("zh,en\na\nb,c,d\n\n", {}, [
            "F:2: expected 2 columns, as in the first line, but found 1: 'a'",
            "F:3: expected 2 columns, as in the first line, but found 3: 'b,c,d'",
            "F:4: expected 2 columns, as in the first line, but found 0: ''",
        ]),
        ("a,b,c\n", {"header": False}, [f"F:1: {COMMA} 3: 'a,b,c'"]),
        ("茶,tea\n花,b\n", {}, [f"F:1: no column 'zh'; there is '茶', 'tea': {NAME_THEM}"]),
        ("zh;en\n", {}, [f"F:1: no column 'zh'; there is 'zh;en': {NAME_THEM}"]),
        ("zh,en,zh\n", {}, ["F:1: 2 columns are named 'zh'; rename all but one"]),
        ("zh,en\n\"a\"b,c\nd,e\n", {}, [
            "F:2: no CSV (',' expected after '\"'); enclose a text with quotes or line ends in"
            " quotes"
        ]),
        ("zh,en\nd,e\na,\"b\nc,d\n", {}, [
            "F:3: no CSV (unexpected end of data); enclose a text with quotes or line ends in"
            " quotes"
        ]),
        ("zh,en\nd,e\na\rb,c\n", {}, [
            "F:3: no CSV (new-line character seen in unquoted field); enclose a text with quotes or"
            " line ends in quotes"
        ]),
        ("a,b\n", {"columns": [0, 2], "header": True}, [
            "F:1: expected at least 3 columns, but found 2"
        ]),
    ],
)  # fmt: skip
def test_a_faulty_csv(tmp_path: Path, content: str, options: Any, faults: list[str]) -> None:
    assert read(tmp_path, "a.csv", content, **options)[1] == faults


@pytest.mark.parametrize(
    ("content", "options", "pairs", "faults"),
    [
        ("a\tb\nc\td\te\nf\tg\th\ni\tj\n", {"columns": [0, 2]}, [("c", "e"), ("f", "h")], [
            "F:1: expected at least 3 columns, but found 2: 'a\\tb'",
            "F:4: expected 3 columns, as in the first line, but found 2: 'i\\tj'",
        ]),
        ("a\tb\n", {"columns": ["c", "b"]}, [], [
            f"F:1: no column 'c'; there is 'a', 'b': {NAME_THEM}"
        ]),
        ("zh\ten\na\n", {}, [], [
            "F:2: expected 2 columns, as in the first line, but found 1: 'a'"
        ]),
    ],
)  # fmt: skip
def test_a_tsv_with_a_choice_of_columns_keeps_to_it(
    tmp_path: Path, content: str, options: Any, pairs: Any, faults: list[str]
) -> None:
    assert read(tmp_path, "a.tsv", content, **options) == (pairs, faults)


def test_a_csv_with_numbered_columns_must_say_what_line_1_is(tmp_path: Path) -> None:
    from zhen.errors import UserError

    with pytest.raises(UserError) as refused:
        read(tmp_path, "a.csv", "a,b\n", columns=[0, 1])
    assert str(refused.value) == (
        f"data.train: {tmp_path}/a.csv may begin with the names of the columns or with a pair; say"
        " which, with data.reader.header=true or false"
    )


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_undecodable_lines_keep_the_count(tmp_path: Path, name: str) -> None:
    tab = "\t" if name == "a.tsv" else ","
    lines = [f"zh{tab}en", "茶", f"茶{tab}tea", "花", f"花{tab}b"]
    content = b"".join(
        (line.encode() if tab in line else line.encode("gbk")) + b"\r\n" for line in lines
    )
    path = write(tmp_path / name, content)
    found = chunks(str(path))
    assert (pairs_of(found), lines_of(found)) == ([("茶", "tea"), ("花", "b")], [3, 5])
    assert [str(each).replace(str(path), "F") for each in faults_of(found)] == [
        "F:2: byte 0xB2 is not UTF-8; convert the file to UTF-8",
        "F:4: byte 0xBB is not UTF-8; convert the file to UTF-8",
        "F:1: 5 of 5 lines end with CR LF; the CR is left out",
    ]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_without_its_header_nothing_is_read(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, b"\xff\nzh\ten\n")
    found = chunks(str(path), header=True)
    assert pairs_of(found) == []
    assert [fault.line for fault in faults_of(found)] == [1]
