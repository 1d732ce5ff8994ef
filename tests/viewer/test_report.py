"""The report of a corpus as a page and as text: all that it says is there, and nothing gets out."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zhen.data.report import Histogram, Section, Table
from zhen.viewer import template
from zhen.viewer.report_page import report_page
from zhen.viewer.report_text import report_text
from zhen.viewer.table import columns

SECTIONS = [
    Section("Splits", [Table(["split", "pairs", "from"], "<><", [["train", "1,000", "茶.tsv"]])]),
    Section(
        "Lengths", ["A note.", Histogram("train, zh", [("0-4", 5), ("5-9", 10), ("10-12", 0)])]
    ),
]
HOSTILE = "</td><script>alert(1)</script><img src='http://x.org/'>&lt;{{font}}\"'"


class Parsed(HTMLParser):
    """The tags and the text of a page; fails where a tag is left open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_text() -> None:
    assert report_text(SECTIONS).splitlines() == [
        "Splits",
        "  split  pairs  from",
        "  train  1,000  茶.tsv",
        "",
        "Lengths",
        "  A note.",
        "  train, zh",
        f"    0-4 {'█' * 20} 5",
        f"    5-9 {'█' * 40} 10",
        "  10-12  0",
    ]


def test_text_in_columns_whatever_its_width() -> None:
    table = Table(
        ["where", "zh", "n"], "<<>", [["a:1", "我喜欢茶", "5"], ["a:20", "e\u0301", "10"]]
    )
    lines = report_text([Section("Pairs", [table])]).splitlines()[1:]
    assert len({columns(line) for line in lines}) == 1


def test_page_says_what_the_sections_say() -> None:
    page = Parsed(report_page("Data check: 茶.tsv", SECTIONS))
    for said in ("Data check: 茶.tsv", "Splits", "pairs", "1,000", "茶.tsv", "A note.", "5-9"):
        assert said in page.text
    bars = [float(attributes["width"] or 0) for tag, attributes in page.tags if tag == "rect"]
    assert bars == [200.0, 400.0, 0.0]
    numbers = [tag for tag, attributes in page.tags if attributes.get("class") == "number"]
    assert numbers == ["th", "td"]


def test_page_needs_nothing_beside_itself() -> None:
    html = report_page("x", SECTIONS)
    assert "default-src 'none'" in html and "://" not in html
    assert "{{" not in html
    assert not {tag for tag, _ in Parsed(html).tags} & {"script", "img", "link", "iframe"}
    (font,) = re.findall(r"url\(([^)]*)\)", html)
    assert font.startswith("data:font/woff;base64,")


@pytest.mark.parametrize("place", ["title", "section", "note", "head", "cell", "label", "caption"])
def test_a_hostile_text_stays_a_text(place: str) -> None:
    text = {name: "harmless" for name in ("section", "note", "head", "cell", "label", "caption")}
    text = {"title": "harmless"} | text | {place: HOSTILE}
    sections = [
        Section(
            text["section"],
            [
                text["note"],
                Table([text["head"]], "<", [[text["cell"]]]),
                Histogram(text["caption"], [(text["label"], 1)]),
            ],
        )
    ]
    page = Parsed(report_page(text["title"], sections))
    assert HOSTILE in page.text
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    for _, attributes in page.tags:
        assert not any(name.startswith(("on", "src", "href")) for name in attributes)


@settings(max_examples=20, deadline=None)
@given(st.text())
@example("a\x00b")
def test_any_text_comes_back(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template, "cut_font", lambda texts: b"")  # it takes its time
        page = Parsed(report_page("x", [Section("s", [Table(["a"], "<", [[text]])])]))
    assert re.sub(r"\s", "", text.replace("\x00", "\ufffd")) in re.sub(r"\s", "", page.text)
