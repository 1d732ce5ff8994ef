"""JSON Lines and arrays: where the sentences stand, and what each faulty record is told."""

from pathlib import Path
from typing import Any

import pytest
from tests.data.written import chunks, faults_of, lines_of, pairs_of, write

GOOD = '{"zh": "茶", "en": "tea"}'


def read(path: Path, content: bytes, **options: Any) -> tuple[list, list[int], list[str]]:
    found = chunks(str(write(path, content)), **options)
    faults = [str(each).replace(str(path), "F") for each in faults_of(found)]
    return pairs_of(found), lines_of(found), faults


@pytest.mark.parametrize(
    ("record", "options"),
    [
        (GOOD, {}),
        ('{"translation": {"en": "tea", "fr": "thé", "zh": "茶"}, "id": 1}', {}),
        ('{"translation": {"en": "no", "zh": "不"}, "zh": "茶", "en": "tea"}', {}),
        ('{"translation": "x", "zh": "茶", "en": "tea"}', {}),
        ('{"c": "茶", "e": "tea"}', {"columns": ["c", "e"]}),
        ('{"translation": {"e": "tea", "c": "茶"}}', {"columns": ["c", "e"]}),
        ('{"zh": "no", "zh": "\\u8336", "en": "tea"}', {}),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_where_the_sentences_stand(tmp_path: Path, name: str, record: str, options: Any) -> None:
    assert read(tmp_path / name, record.encode(), **options) == ([("茶", "tea")], [1], [])
    if name == "a.json":
        array = f" [{record},\n{record}\n] ".encode()
        assert read(tmp_path / name, array, **options)[:2] == ([("茶", "tea")] * 2, [1, 2])


NAMES = "name the two with data.reader.columns"
FAULTS = [
    ('{"zh": "茶", "en": }', "no JSON (Expecting value): '{\"zh\": \"茶\", \"en\": }'"),
    (GOOD + GOOD, f"no JSON (Extra data): '{GOOD + GOOD}'"),
    ("", "no JSON (Expecting value): ''"),
    ('{"zh": "a\tb", "en": ""}', "no JSON (Invalid control character at):"
     " '{\"zh\": \"a\\tb\", \"en\": \"\"}'"),
]  # fmt: skip
RECORD_FAULTS = [
    ('["茶", "tea"]', 'expected an object with the two sentences, but found \'["茶", "tea"]\''),
    ("7", "expected an object with the two sentences, but found '7'"),
    ('{"zh": "茶"}', f"no key 'en'; there is 'zh': {NAMES}"),
    ("{}", f"no key 'zh'; there is none: {NAMES}"),
    ('{"translation": {"en": "tea"}}', f"no key 'zh'; there is 'en': {NAMES}"),
    ('{"translation": null}', f"no key 'zh'; there is 'translation': {NAMES}"),
    ('{"zh": null, "en": "a"}', "'zh' must be a string, but is 'null'; write the sentence"),
    ('{"zh": "a", "en": 7}', "'en' must be a string, but is '7'; write the sentence"),
    ('{"zh": ["茶"], "en": "a"}', "'zh' must be a string, but is '[\"茶\"]'; write the sentence"),
    (
        '{"zh": "a", "en": "\\ud83d"}',
        "'en' has half of a surrogate pair, which is no character",
    ),
]


@pytest.mark.parametrize(("line", "message"), FAULTS + RECORD_FAULTS)
def test_a_faulty_line(tmp_path: Path, line: str, message: str) -> None:
    content = f"{GOOD}\n{line}\n{GOOD}\n".encode()
    assert read(tmp_path / "a.jsonl", content) == ([("茶", "tea")] * 2, [1, 3], [f"F:2: {message}"])


@pytest.mark.parametrize(("record", "message"), RECORD_FAULTS)
def test_a_faulty_item_of_an_array(tmp_path: Path, record: str, message: str) -> None:
    content = f"[{GOOD}, {record}, {GOOD}]".encode()
    assert read(tmp_path / "a.json", content) == ([("茶", "tea")] * 2, [1, 3], [f"F:2: {message}"])


NOTHING = "nothing of the file is read"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (f"[{GOOD}\n".encode(), f"F:2: no JSON (Expecting ',' delimiter); {NOTHING}"),
        (f"[\n{GOOD},\n".encode(), f"F:3: no JSON (Expecting value); {NOTHING}"),
        (f"[{GOOD}]\n[{GOOD}]".encode(), f"F:2: no JSON (Extra data); {NOTHING}"),
        (b"[\n\n\"\xb2\xe8\"]", "F:3: byte 0xB2 is not UTF-8; convert the file to UTF-8"),
        (b"[" * 100_000, "F:1: no JSON (maximum recursion depth exceeded"),
    ],
)  # fmt: skip
def test_a_broken_array(tmp_path: Path, content: bytes, fault: str) -> None:
    pairs, _, faults = read(tmp_path / "a.json", content)
    assert pairs == [] and len(faults) == 1 and faults[0].startswith(fault)


def test_depth_and_bytes_of_a_line(tmp_path: Path) -> None:
    content = b"[" * 100_000 + b"\n\xff\n" + GOOD.encode()
    pairs, _, faults = read(tmp_path / "a.jsonl", content)
    assert pairs == [("茶", "tea")]
    assert faults[0].startswith("F:1: no JSON (maximum recursion depth exceeded")
    assert faults[1] == "F:2: byte 0xFF is not UTF-8; convert the file to UTF-8"


def test_mark_and_line_ends(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + f"{GOOD}\r\n{GOOD}".encode()
    pairs, _, faults = read(tmp_path / "a.jsonl", content)
    assert pairs == [("茶", "tea")] * 2 and len(faults) == 2
    array = b"\xef\xbb\xbf" + f" \r\n[{GOOD}]\r\n".encode()
    assert read(tmp_path / "a.json", array) == ([("茶", "tea")], [1], [])
