"""TMX: languages and their kinds, inline elements, and what each faulty file is told."""

from pathlib import Path
from typing import Any

import pytest
from tests.data.written import chunks, faults_of, lines_of, pairs_of, write

from zhen.data.formats.tmx import likeness

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>\n'


def tu(zh: str, en: str, zh_code: str = "zh", en_code: str = "en") -> str:
    return (
        f'<tu><tuv xml:lang="{zh_code}"><seg>{zh}</seg></tuv>'
        f'<tuv xml:lang="{en_code}"><seg>{en}</seg></tuv></tu>\n'
    )


def read(folder: Path, content: str | bytes, source: str = "zh") -> tuple[list, list, list]:
    path = folder / "a.tmx"
    found = chunks(
        str(write(path, content.encode() if isinstance(content, str) else content)), source
    )
    faults = [str(each).replace(str(path), "F") for each in faults_of(found)]
    return pairs_of(found), lines_of(found), faults


def body(*units: str) -> str:
    return f"{HEAD}{''.join(units)}</body></tmx>\n"


@pytest.mark.parametrize(
    ("language", "wanted", "rank"),
    [
        ("zh", "zh", 2),
        ("zh_cn", "zh-CN", 2),
        ("zh-CN", "zh", 1),
        ("ZH_cn", "zh", 1),
        ("zh-Hant-TW", "zh-Hant", 1),
        ("zh-CN", "zh-TW", 0),
        ("zh", "zh-CN", 0),
        ("zho", "zh", 0),
        ("en", "zh", 0),
        ("", "zh", 0),
    ],
)
def test_a_kind_of_a_language_is_that_language(language: str, wanted: str, rank: int) -> None:
    assert likeness(language, wanted) == rank


def test_units_have_the_line_on_which_they_begin(tmp_path: Path) -> None:
    content = body(tu("茶", "tea"), "\n\n", tu("花", "flower", "zh-CN", "EN_us"))
    assert read(tmp_path, content) == ([("茶", "tea"), ("花", "flower")], [3, 6], [])
    assert read(tmp_path, content, "en")[0] == [("tea", "茶"), ("flower", "花")]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("a &amp; b &lt;i&gt; &#x8336; <![CDATA[<b>]]>", "a & b <i> 茶 <b>"),
        ("a <hi>big</hi> tea", "a big tea"),
        ('<bpt i="1">&lt;b></bpt>a<ept i="1">&lt;/b></ept><ph x="1"/>b<it pos="end">x</it>', "ab"),
        ('<ph>img alt="<sub>a <hi>cat</hi></sub>"</ph>a<ut>{\\cf7 </ut>', "a"),
        ("<!-- note -->a<?pi b?>", "a"),
        (" a\n b\r\nc ", " a\n b\nc "),
        ("", ""),
        ("x\u2028\x85y\u3000", "x\u2028\x85y\u3000"),
    ],
)
def test_the_text_of_a_segment(tmp_path: Path, segment: str, text: str) -> None:
    assert read(tmp_path, body(tu("茶", segment))) == ([("茶", text)], [3], [])


def test_only_segments_are_text(tmp_path: Path) -> None:
    unit = (
        '<tu tuid="1" srclang="*all*"><note>n</note><prop type="x">p</prop>'
        '<tuv lang="en"><note>n</note><seg>tea</seg></tuv>\n<tuv lang="zh-CN"><prop type="y">p'
        "</prop><seg>茶</seg></tuv></tu>"
    )
    assert read(tmp_path, body(unit)) == ([("茶", "tea")], [3], [])


def test_encodings_that_xml_declares(tmp_path: Path) -> None:
    content = body(tu("茶", "tea"))
    for encoding in ("utf-8-sig", "utf-16"):
        assert read(
            tmp_path, content.replace("UTF-8", encoding[:6].upper().strip("-")).encode(encoding)
        )[0] == [("茶", "tea")]
    latin = HEAD.replace("UTF-8", "ISO-8859-1") + tu("x", "thé") + "</body></tmx>"
    assert read(tmp_path, latin.encode("latin-1"))[0] == [("x", "thé")]


def test_a_unit_without_a_language_is_a_fault(tmp_path: Path) -> None:
    units = [
        tu("茶", "tea"),
        tu("茶", "Tee", en_code="de"),
        tu("a", "b", "fr", "de"),
        "<tu></tu>\n",
        '<tu><tuv><seg>x</seg></tuv><tuv xml:lang="en"></tuv></tu>\n',
        tu("花", "flower"),
    ]
    pairs, lines, faults = read(tmp_path, body(*units))
    assert (pairs, lines) == ([("茶", "tea"), ("花", "flower")], [3, 8])
    assert faults == [
        "F:4: the unit has no en text, but zh, de; add it or delete the unit",
        "F:5: the unit has no zh and no en text, but fr, de; add it or delete the unit",
        "F:6: the unit has no zh and no en text, but nothing; add it or delete the unit",
        "F:7: the unit has no zh and no en text, but none; add it or delete the unit",
    ]


def test_of_several_variants_the_exact_or_the_first_is_taken(tmp_path: Path) -> None:
    def unit(*codes: str) -> str:
        variants = "".join(f'<tuv xml:lang="{c}"><seg>{c}</seg></tuv>' for c in codes)
        return f"<tu>{variants}</tu>\n"

    content = body(
        unit("zh-TW", "zh", "en"),
        unit("zh-TW", "zh-CN", "en"),
        unit("zh", "zh-CN", "en-GB", "en-US"),
    )
    pairs, _, faults = read(tmp_path, content)
    assert pairs == [("zh", "en"), ("zh-TW", "en"), ("zh", "en-GB")]
    assert faults == [
        "F:4: this unit has several texts for one language, and so have 1 others; the first is"
        " taken"
    ]
    assert not any(fault.refused for fault in faults_of(chunks(str(tmp_path / "a.tmx"))))


NO_MORE = "the file is not read any further"


@pytest.mark.parametrize(
    ("content", "pairs", "fault"),
    [
        ("", 0, f"F:1: no TMX (no element found); {NO_MORE}"),
        ("茶\ttea\n", 0, f"F:1: no TMX (syntax error); {NO_MORE}"),
        ("\n<html></html>", 0, f"F:2: no TMX (the root element is html); {NO_MORE}"),
        (HEAD + tu("茶", "tea"), 1, f"F:4: no TMX (no element found); {NO_MORE}"),
        (HEAD + tu("茶", "tea") + "<tu><tuv", 1, f"F:4: no TMX (unclosed token); {NO_MORE}"),
        (HEAD + tu("茶", "tea") + tu("a < b", ""), 1,
         f"F:4: no TMX (not well-formed (invalid token)); {NO_MORE}"),
        (HEAD + tu("茶", "tea") + "\n<tu></tuv>", 1, f"F:5: no TMX (mismatched tag); {NO_MORE}"),
        (HEAD + tu("茶", "a &nbsp; b"), 0, f"F:3: no TMX (undefined entity); {NO_MORE}"),
        (HEAD + tu("茶", "a \x0b b"), 0,
         f"F:3: no TMX (not well-formed (invalid token)); {NO_MORE}"),
        (HEAD.encode() + tu("茶", "b").encode("gbk"), 0,
         f"F:3: no TMX (not well-formed (invalid token)); {NO_MORE}"),
        (HEAD.replace("UTF-8", "GBK"), 0,
         f"F:1: no TMX (multi-byte encodings are not supported); {NO_MORE}"),
        (HEAD.replace("UTF-8", "x-own"), 0, f"F:1: no TMX (unknown encoding: x-own); {NO_MORE}"),
    ],
)  # fmt: skip
def test_a_malformed_file(tmp_path: Path, content: Any, pairs: int, fault: str) -> None:
    found, _, faults = read(tmp_path, content)
    assert (len(found), faults) == (pairs, [fault])


def test_an_entity_that_nobody_defined_is_not_lost_in_silence(tmp_path: Path) -> None:
    doctype = '<!DOCTYPE tmx SYSTEM "tmx14.dtd" [<!ENTITY own "mine">]>\n<tmx'
    content = body(tu("茶", "a&nbsp;b"), tu("花", "&own;")).replace("<tmx", doctype)
    assert read(tmp_path, content) == (
        [("花", "mine")],
        [5],
        ["F:4: the entity &nbsp; is not defined; write the character itself"],
    )


def test_entities_cannot_fill_the_memory(tmp_path: Path) -> None:
    entities = '<!ENTITY e0 "0123456789">' + "".join(
        f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10)
    )
    content = body(tu("茶", "&e9;")).replace("<tmx", f"<!DOCTYPE tmx [{entities}]><tmx")
    _, _, faults = read(tmp_path, content)
    assert "limit on input amplification factor" in faults[0]
