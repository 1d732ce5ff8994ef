"""What `data=files` finds and reads, in every format."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.written import (
    CONTROL,
    FORMATS,
    XML_HAS_NOT,
    Pairs,
    chunks,
    faults_of,
    lines_of,
    pairs_of,
    texts,
    tsv,
    write,
)

from zhen.data import Files
from zhen.data.corpus import Corpus
from zhen.data.source import CHUNK
from zhen.errors import UserError

PAIRS = [("我喜欢茶。", "I like tea."), ("花\u2028。", 'a "flower" & more'), (" 书\x85", "book, ")]
LANGUAGES = ["zh", "en"]


def opened(what: object, source_lang: str = "zh", **options: Any) -> Any:
    return Files(**options).open(
        what, key="data.train", languages=LANGUAGES, source_lang=source_lang
    )


def refused(what: object, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        for _ in opened(what, **options).chunks():
            pass
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data(), ending=st.sampled_from(["", ".gz"]))
@settings(max_examples=30, deadline=None)
def test_any_pairs_come_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, ending: str, data: st.DataObject
) -> None:
    written, without = FORMATS[name]
    text = texts(without)
    pairs = data.draw(st.lists(st.tuples(text.filter(lambda t: t[:1] != "\ufeff"), text)))
    path = write(tmp_path_factory.mktemp("any") / f"{name}{ending}", written([*PAIRS, *pairs]))
    found = chunks(str(path))
    assert pairs_of(found) == [*PAIRS, *pairs]
    assert not [fault for fault in faults_of(found) if fault.refused]


@given(pairs=st.lists(st.tuples(texts("\n\r"), texts("\n\r"))))
@settings(max_examples=30, deadline=None)
def test_any_pairs_come_back_from_aligned_files(
    tmp_path_factory: pytest.TempPathFactory, pairs: Pairs
) -> None:
    folder = tmp_path_factory.mktemp("any")
    both = [("一", "one"), *pairs]
    zh = write(folder / "a.zh", "".join(f"{zh}\n" for zh, _ in both).encode())
    en = write(folder / "a.en.gz", "".join(f"{en}\n" for _, en in both).encode())
    assert pairs_of(chunks({"en": str(en), "zh": str(zh)})) == both


@given(pairs=st.lists(st.tuples(texts(CONTROL + XML_HAS_NOT), texts(CONTROL + XML_HAS_NOT))))
@settings(max_examples=20, deadline=None)
def test_all_formats_give_the_same(tmp_path_factory: pytest.TempPathFactory, pairs: Pairs) -> None:
    folder = tmp_path_factory.mktemp("same")
    both = [("一", "one"), *pairs]
    for name, (written, _) in FORMATS.items():
        assert pairs_of(chunks(str(write(folder / name, written(both))))) == both, name


@pytest.mark.parametrize("name", FORMATS)
def test_either_language_can_be_the_source(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, FORMATS[name][0](PAIRS))
    forth, back = opened(str(path)), opened(str(path), "en")
    assert pairs_of(list(back.chunks())) == [(en, zh) for zh, en in PAIRS]
    assert forth.fingerprint() != back.fingerprint()


@pytest.mark.parametrize("name", FORMATS)
def test_a_chunk_has_its_file_and_lines_and_is_not_too_long(tmp_path: Path, name: str) -> None:
    count = CHUNK + 5
    content = FORMATS[name][0]([(f"茶{i}", f"tea {i}") for i in range(count)])
    path = write(tmp_path / name, content)
    found = chunks(str(path))
    assert [len(chunk.sources) for chunk in found] == [CHUNK, 5]
    assert {chunk.file for chunk in found} == {str(path)}
    first, step = {"b.csv": (2, 1), "h.tmx": (3, 2)}.get(name, (1, 1))
    assert lines_of(found) == list(range(first, first + count * step, step))


def test_a_list_keeps_its_order_and_a_pattern_is_sorted(tmp_path: Path) -> None:
    for name in ("b", "a10", "a2", "c"):
        write(tmp_path / f"{name}.tsv", tsv([(name, name)]))
    write(tmp_path / "a1.jsonl.gz", b'{"zh": "a1", "en": "a1"}\n')
    names = [f"{tmp_path}/c.tsv", f"{tmp_path}/a*", f"{tmp_path}/b.tsv"]
    assert [zh for zh, _ in pairs_of(chunks(names))] == ["c", "a1", "a10", "a2", "b"]
    assert opened(names).name == ", ".join(names)
    assert opened(names[1]).name == names[1]


def test_a_pattern_looks_into_folders_and_a_name_may_look_like_one(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    write(tmp_path / "x" / "y" / "deep.tsv", tsv([("深", "deep")]))
    write(tmp_path / "x" / "[1].tsv", tsv([("括", "bracket")]))
    assert pairs_of(chunks(f"{tmp_path}/**/deep.tsv")) == [("深", "deep")]
    assert pairs_of(chunks(f"{tmp_path}/x/[1].tsv")) == [("括", "bracket")]


def test_aligned_lists_go_together(tmp_path: Path) -> None:
    for name, lines in {
        "1.zh": "一\n二\n",
        "1.en": "one\ntwo\n",
        "2.zh": "三",
        "2.en": "3",
    }.items():
        write(tmp_path / name, lines.encode())
    what = {"zh": [f"{tmp_path}/2.zh", f"{tmp_path}/1.zh"], "en": f"{tmp_path}/[21].en"}
    with_list = {**what, "en": [f"{tmp_path}/2.en", f"{tmp_path}/1.en"]}
    assert pairs_of(chunks(with_list)) == [("三", "3"), ("一", "one"), ("二", "two")]
    assert pairs_of(chunks(what)) == [("三", "one"), ("一", "3")]  # a pattern is sorted
    assert [chunk.file for chunk in chunks(with_list)] == [
        f"{tmp_path}/2.zh + {tmp_path}/2.en",
        f"{tmp_path}/1.zh + {tmp_path}/1.en",
    ]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("none.tsv", "data.train: none.tsv does not exist; give the path of a TSV of pairs"),
        ("none.tsv.gz", "data.train: none.tsv.gz does not exist; give the path of a TSV of pairs"),
        ("none.tmx", "data.train: none.tmx does not exist; give the path of a file of pairs"),
        (["a.tsv", "none.tsv"], "data.train: none.tsv does not exist; give the path of a TSV of"),
        ("folder", "data.train: cannot read folder: Is a directory"),
        ("x*.tsv", "data.train: no file is named like x*.tsv; give a path or another pattern"),
        (["a.tsv", "*.tsv"], "data.train: a.tsv and a.tsv are one file; name it once"),
        (["a.tsv", "folder/../a.tsv"], "data.train: a.tsv and folder/../a.tsv are one file; name"),
        (
            "a.pairs",
            "data.train: a.pairs has an ending that tells no format; say it with"
            " data.reader.format=FORMAT, one of tsv, csv, jsonl, json, parquet, tmx",
        ),
        (
            "",
            "`data.train` must be a path, a pattern, a list of these, or a mapping {zh: path, en:"
            " path}, but is ''",
        ),
        ([], "`data.train` must be a path, a pattern, a list of these, or a mapping {zh: path, en"),
        (["a.tsv", 3], "`data.train` must be a path, a pattern, a list of these, or a mapping {zh"),
        ({"zh": "a.tsv"}, "`data.train` must map zh and en to files, but maps zh"),
        ({"zh": "a", "de": "b"}, "`data.train` must map zh and en to files, but maps zh, de"),
        ({"zh": "a.tsv", "en": "none"}, "data.train.en: none does not exist; give the path of a"),
        ({"zh": "a.tsv", "en": ""}, "`data.train.en` must be a path, a pattern, a list of these,"),
        (
            {"zh": ["a.tsv", "b.csv"], "en": "a.tsv"},
            "`data.train` must name as many zh as en files, but names 2 and 1",
        ),
        ("fifo", "data.train: fifo is no regular file, and is read more than once; write it to a"),
        ("empty.tsv", "data.train: empty.tsv has no pairs; write one pair a line, separated by a"),
        ("empty.csv", "data.train: empty.csv has no pairs"),
        ({"zh": "empty.tsv", "en": "empty.txt"}, "data.train: empty.tsv + empty.txt has no pairs"),
    ],
    ids=str,
)
def test_what_cannot_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: object, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    os.mkfifo("fifo")
    for name in ("a.tsv", "b.csv", "a.pairs"):
        write(Path(name), tsv(PAIRS))
    write(Path("empty.tsv"), b"")
    write(Path("empty.txt"), b"")
    write(Path("empty.csv"), b"zh,en\n")
    assert refused(what).startswith(message)


def test_another_key_names_its_own_options(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pairs", tsv(PAIRS))
    with pytest.raises(UserError, match=r"^test: .* say it with reader\.format=FORMAT"):
        Files().open(str(path), key="test", languages=LANGUAGES, source_lang="zh")
    found = opened(str(path), format="tsv").chunks()
    assert pairs_of(list(found)) == PAIRS


GZIPPED = gzip.compress(tsv([(str(i), str(i * i)) for i in range(3000)]))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (GZIPPED[:3000], "is cut short or damaged (Compressed file ended before"),
        (GZIPPED[:-1], "is cut short or damaged (Compressed file ended before"),
        (GZIPPED[:2000] + b"\0" * 9 + GZIPPED[2009:], "is cut short or damaged (Error -3 while"),
        (GZIPPED[:-8] + b"\0" * 8, "is cut short or damaged (CRC check failed"),
        (GZIPPED + b"more", "is cut short or damaged (Not a gzipped file"),
        (tsv(PAIRS), "is not gzipped; take .gz from its name or download it again"),
        (b"", "is not gzipped; take .gz from its name or download it again"),
    ],
    ids=["cut", "cut at the end", "damaged", "wrong sum", "foreign tail", "not gzipped", "empty"],
)
def test_damaged_gzip_is_one_line(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(content)
    assert refused(str(path)).startswith(f"data.train: {path} {problem}")
    with pytest.raises(UserError, match=r"a\.tsv\.gz is"):
        list(opened({"zh": str(path), "en": str(path)}).chunks())


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_notices_a_gzip_that_is_cut_short(tmp_path: Path, name: str) -> None:
    whole = gzip.compress(FORMATS[name][0]([(str(i), str(i * i)) for i in range(3000)]))
    path = tmp_path / f"{name}.gz"
    for content in (whole[:2000], whole[:-1]):
        path.write_bytes(content)
        assert refused(str(path)).startswith(f"data.train: {path} is cut short or damaged (Comp")


def test_several_gzips_in_one_file_and_gzip_without_its_ending(tmp_path: Path) -> None:
    members = gzip.compress(tsv(PAIRS[:1])) + gzip.compress(tsv(PAIRS[1:]))
    for name in ("a.tsv.gz", "a.tsv"):
        (tmp_path / name).write_bytes(members)
        assert pairs_of(chunks(str(tmp_path / name))) == PAIRS


def test_the_fingerprint_follows_bytes_order_and_options(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1.tsv", b"a\tb\n"), write(tmp_path / "2.tsv", b"c\td\n")
    moved = write(tmp_path / "moved.tsv", b"a\tb\n")
    both = [str(one), str(two)]
    same = opened(both).fingerprint()
    assert opened(both).fingerprint() == same
    assert opened([str(moved), str(two)]).fingerprint() == same
    others = [
        opened(both[::-1]),
        opened(both[:1]),
        opened(both, "en"),
        opened(both, header=True),
        opened(both, columns=[1, 0]),
        opened(both, format="csv"),
        opened({"zh": str(one), "en": str(two)}),
        opened({"zh": str(two), "en": str(one)}),
        opened(str(write(tmp_path / "12.tsv", b"a\tb\nc\td\n"))),
        opened(str(write(tmp_path / "crlf.tsv", b"a\tb\r\nc\td\r\n"))),
    ]
    prints = {other.fingerprint() for other in others}
    assert len(prints) == len(others) and same not in prints


def test_a_file_that_goes_away_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", tsv(PAIRS))
    source = opened(str(path))
    path.unlink()
    for act in (source.fingerprint, lambda: list(source.chunks())):
        with pytest.raises(UserError, match=r"a\.tsv does not exist"):
            act()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": [1]}, r"`columns` must be two different columns, but is [1]"),
        ({"columns": [1, 1]}, r"`columns` must be two different columns, but is [1, 1]"),
        ({"columns": [0, "en"]}, "`columns` must be two numbers or two names, but is [0, 'en']"),
        ({"columns": [0, -1]}, "`columns` are counted from 0, but is [0, -1]"),
        (
            {"columns": ["a", "b"], "header": False},
            "`columns` by name need a header, but `header` is false",
        ),
    ],
    ids=str,
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Files(**options)
    assert str(error.value) == message


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_columns_with_names_cannot_be_counted(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"a.{ending}", b"{}")
    assert refused(str(path), columns=[0, 1]) == (
        f"data.train: {path} has names instead of numbers for its columns; give them with"
        " data.reader.columns"
    )


def corpus(path: Path) -> Corpus:
    return Corpus.cached(
        opened(str(path)),
        path.parent / "cache",
        key="data.train",
        source_lang="zh",
        target_lang="en",
    )


@pytest.mark.parametrize(
    "same",
    [
        "茶\ttea\r\n花\tflower\r\n".encode(),
        "茶\ttea\n花\tflower".encode(),  # the last line without its end
        b"\xef\xbb\xbf" + "茶\ttea\n花\tflower\n".encode(),
    ],
    ids=["CRLF", "no last newline", "byte-order mark"],
)
def test_line_ends_and_mark_are_no_part_of_the_corpus(tmp_path: Path, same: bytes) -> None:
    plain = corpus(write(tmp_path / "a.tsv", "茶\ttea\n花\tflower\n".encode()))
    other = corpus(write(tmp_path / "b.tsv", same))
    assert other.fingerprint == plain.fingerprint
    assert other.texts(0, len(other)) == (["茶", "花"], ["tea", "flower"])


def test_every_format_makes_the_same_corpus(tmp_path: Path) -> None:
    made = [corpus(write(tmp_path / name, of(PAIRS))) for name, (of, _) in FORMATS.items()]
    assert len({each.fingerprint for each in made}) == 1
    assert made[0].texts(0, 3) == tuple(map(list, zip(*PAIRS, strict=True)))


def test_training_refuses_the_first_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", tsv(PAIRS) + b"one\ntwo\n")
    with pytest.raises(UserError) as error:
        corpus(path)
    assert str(error.value) == (
        f"data.train: {path}:4: expected 2 sentences separated by a tab (zh TAB en), but found 1:"
        " 'one'"
    )


def test_other_languages_are_data(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"translation": {"de": "Tee", "pt-BR": "ch\xc3\xa1"}}')
    source = Files().open(
        str(path), key="data.train", languages=["pt-BR", "de"], source_lang="pt-BR"
    )
    assert pairs_of(list(source.chunks())) == [("chá", "Tee")]
