"""The page holds what it shows, and nothing that a sentence says can get out of its place."""

import json
import re
from importlib.resources import files

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.viewer.toy import BUTTERFLY, TOKENIZER, make

from zhen.viewer import page as module
from zhen.viewer import template as template_module
from zhen.viewer.look import look
from zhen.viewer.page import page

TRANSLATOR = make()
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>&amp;&lt;\"'`\\",
    "{{plotly}}{{data}}{{font}}",
    "a\u2028b\u2029c\x00\x1b\x7f\ufeff",
    "%{x}${y}",
]


def page_of(text: str, target: str = "you", **choice: int) -> str:
    maps = look(TRANSLATOR, *TOKENIZER.source.encode([text[:30], target[:30]]))
    return page(maps, text, target, **choice)


def data_of(html: str) -> dict:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(data)


def test_the_weights_and_labels_are_there() -> None:
    maps = look(TRANSLATOR, *TOKENIZER.source.encode([BUTTERFLY, "you are"]))
    data = data_of(page(maps, BUTTERFLY, "you are", layer=2, head=3))
    assert (data["source"], data["target"]) == (BUTTERFLY, "you are")
    assert (data["layer"], data["head"]) == (2, 3)
    for shown, each in zip(data["maps"], maps, strict=True):
        assert (shown["queries"], shown["keys"]) == (each.queries, each.keys)
        assert shown["following"] == each.following
        assert shown["weights"][1][2][0][0] == round(each.weights[1, 2, 0, 0].item() * 10_000)


def test_the_page_forbids_itself_the_network_and_names_no_address_to_fetch() -> None:
    template = files("zhen.viewer").joinpath("page.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in template and "://" not in template
    assert "{{" not in page_of("你").replace(module.get_plotlyjs(), "")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_sentence_stays_a_sentence(text: str) -> None:
    html = page_of(text, text)
    assert data_of(html)["source"] == data_of(html)["target"] == text
    harmless = page_of("a", "a")
    for mark in ("<script", "</script", "<!--"):
        assert html.count(mark) == harmless.count(mark)
    (json_text,) = re.findall(r'id="data">(.*?)</script>', html, flags=re.DOTALL)
    assert json_text.isascii() and "<" not in json_text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_sentence_comes_back(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(module, "get_plotlyjs", lambda: "")
    monkeypatch.setattr(template_module, "cut_font", lambda texts: b"")
    html = page_of("你")
    assert data_of(page_of("你", text))["target"] == text
    assert page_of("你", text).count("<") == html.count("<")
