"""The page in a real browser: it opens alone, shows Chinese, and answers to choices and mouse."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from tests.viewer.browser import BROWSER, DRIVER, NEEDED, open_chrome, requests
from tests.viewer.toy import BUTTERFLY, TOKENIZER, make

from zhen.viewer.look import AttentionMap, look
from zhen.viewer.page import page

TRANSLATOR = make(max_positions=300)
HOSTILE = "<b>a</b> &lt; $x$ </script><script>document.title='stolen'</script>"


def test_there_is_a_browser_where_there_must_be_one() -> None:
    assert not NEEDED or (BROWSER and DRIVER), "install chromium and chromium-driver"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    yield from open_chrome(tmp_path_factory.mktemp("profile"))


class Page:
    """A page that is open in the browser, and the maps that it was made of."""

    def __init__(self, chrome: Chrome, folder: Path, text: str, target: str) -> None:
        self.chrome = chrome
        self.maps = look(TRANSLATOR, *TOKENIZER.source.encode([text, target]))
        file = folder / "attention.html"
        file.write_text(page(self.maps, text, target), encoding="utf-8")
        chrome.get_log("performance")
        chrome.get_log("browser")
        chrome.get(file.as_uri())
        WebDriverWait(chrome, 60).until(lambda _: self.find("#plot .heatmaplayer image"))

    def find(self, selector: str) -> list:
        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return self.chrome.execute_script(script, selector)

    def choose(self, **choices: str) -> None:
        for box, value in choices.items():
            Select(self.find(f"#{box}")[0]).select_by_value(value)

    @property
    def shown(self) -> list[list[float]]:
        """The weights of the heat map."""
        return self.chrome.execute_script("return plot.data[0].z")

    def shows(self, each: AttentionMap, layer: int | None = None, head: int | None = None) -> bool:
        expected = each.mean(layer, head).flatten().tolist()
        found = [weight for row in self.shown for weight in row]
        return found == pytest.approx(expected, abs=1e-4)

    def point_at(self, query: int, key: int) -> ActionChains:
        """The mouse over a square of the heat map."""
        (map_,) = self.find("#plot .nsewdrag")
        queries, keys = len(self.shown), len(self.shown[0])
        x = (key + 0.5) / keys * map_.size["width"] - map_.size["width"] / 2
        y = (query + 0.5) / queries * map_.size["height"] - map_.size["height"] / 2
        return ActionChains(self.chrome).move_to_element_with_offset(map_, x, y)

    def has_no_error(self) -> bool:
        return self.chrome.get_log("browser") == []


@pytest.fixture
def butterfly(chrome: Chrome, tmp_path: Path) -> Page:
    return Page(chrome, tmp_path, BUTTERFLY, "you are beautiful")


def test_it_opens_without_the_network_and_without_an_error(chrome: Chrome, tmp_path: Path) -> None:
    opened = Page(chrome, tmp_path, BUTTERFLY, "you are")
    assert opened.has_no_error()
    asked = requests(chrome)
    assert asked[0].startswith("file:///")
    assert all(url.startswith("data:") for url in asked[1:])
    # And a script in it could not either.
    fetched = "fetch('http://127.0.0.1/').then(() => arguments[0](1), () => arguments[0](0))"
    assert chrome.execute_async_script(fetched) == 0
    assert "Content Security Policy" in chrome.get_log("browser")[0]["message"]


def test_the_pieces_are_its_labels_in_a_font_of_its_own(butterfly: Page) -> None:
    encoder = butterfly.maps[0]
    butterfly.choose(map="0")
    assert butterfly.texts("#queries button") == butterfly.texts("#keys span") == encoder.keys
    assert butterfly.texts(".xtick text") == butterfly.texts(".ytick text") == encoder.keys
    assert butterfly.texts("h1") == [f"{BUTTERFLY} → you are beautiful"]
    fonts = "return [...document.fonts].map((font) => font.family + ' ' + font.status)"
    assert butterfly.chrome.execute_script(fonts) == ["pieces loaded"]
    drawn = "return getComputedStyle(document.querySelector('.ytick text')).fontFamily"
    assert butterfly.chrome.execute_script(drawn).startswith("pieces")


def test_another_kind_layer_or_head_changes_the_picture(butterfly: Page) -> None:
    image = "return document.querySelector('#plot .heatmaplayer image').getAttribute('href')"
    seen = set()
    for number, each in enumerate(butterfly.maps):
        for layer, head in ((None, None), (1, 2), (2, None), (None, 4)):
            butterfly.choose(map=str(number), layer=str(layer or "mean"), head=str(head or "mean"))
            assert butterfly.shows(each, layer, head)
            # The scale begins at 0, whatever the least weight is.
            assert butterfly.chrome.execute_script("return plot.calcdata[0][0].trace.zmin") == 0
            seen.add(butterfly.chrome.execute_script(image))
    assert len(seen) == 12


def test_a_map_with_fewer_layers_falls_back_to_their_mean(butterfly: Page) -> None:
    butterfly.choose(map="0", layer="3", head="1")
    butterfly.choose(map="2")
    assert butterfly.shows(butterfly.maps[2], None, 1)
    options = Select(butterfly.find("#layer")[0]).options
    assert [option.text for option in options] == ["mean of 2", "1", "2"]


def test_hovering_gives_the_weight(butterfly: Page) -> None:
    cross = butterfly.maps[2]
    butterfly.choose(map="2", layer="1", head="1")
    butterfly.point_at(query=2, key=3).perform()
    WebDriverWait(butterfly.chrome, 10).until(lambda _: butterfly.texts(".hovertext"))
    weight = round(cross.mean(1, 1)[2, 3].item() * 1e4) / 1e4
    assert butterfly.texts(".hovertext text") == [
        f"{cross.queries[2]} → {cross.keys[3]}: {weight:.3f}"
    ]


@pytest.mark.parametrize("by", ["button", "square"])
def test_the_strongest_links_of_a_chosen_piece_stand_out(butterfly: Page, by: str) -> None:
    encoder = butterfly.maps[0]
    butterfly.choose(map="0", layer="1", head="2")
    query = next(q for q, label in enumerate(encoder.queries) if "它" in label)
    butterfly.find("#queries button")[0].click()
    if by == "button":
        butterfly.find("#queries button")[query].click()
    else:
        butterfly.point_at(query, key=1).click().perform()
    row = encoder.mean(1, 2)[query]
    strongest = row.topk(3).indices.tolist()
    assert butterfly.texts("#keys .strong") == [encoder.keys[k] for k in sorted(strongest)]
    assert butterfly.texts("#queries [aria-pressed=true]") == [encoder.queries[query]]
    links = ", ".join(f"{encoder.keys[k]} {row[k]:.3f}" for k in strongest)
    assert butterfly.texts("#strongest") == [f"{encoder.queries[query]}: {links}"]
    frames = butterfly.chrome.execute_script("return plot.layout.shapes.map((s) => [s.x0, s.y0])")
    assert frames == [[x - 0.5, query - 0.5] for x in (0, *strongest)]


def test_a_row_of_the_decoder_says_what_comes_next(butterfly: Page) -> None:
    butterfly.choose(map="2")
    butterfly.find("#queries button")[-1].click()
    (sentence,) = butterfly.texts("#strongest")
    assert sentence.startswith(f"{butterfly.maps[2].queries[-1]} (before </s>): ")
    assert butterfly.find("#decoder")[0].is_displayed()
    butterfly.choose(map="0")
    assert not butterfly.find("#decoder")[0].is_displayed()


def test_what_is_weak_beside_the_strongest_does_not_stand_out(butterfly: Page) -> None:
    butterfly.choose(map="1")
    butterfly.find("#queries button")[0].click()  # the start piece sees itself alone
    assert butterfly.texts("#keys .strong") == ["<s>"]


def test_a_hostile_sentence_is_shown_as_it_is(chrome: Chrome, tmp_path: Path) -> None:
    opened = Page(chrome, tmp_path, HOSTILE, HOSTILE)
    opened.choose(map="2")
    assert opened.has_no_error() and chrome.title == f"Attention: {HOSTILE}"
    assert opened.texts("#source") == opened.texts("#target") == [HOSTILE]
    assert opened.texts(".xtick text") == opened.maps[2].keys
    assert opened.texts(".ytick text") == opened.maps[2].queries


def test_a_single_piece(chrome: Chrome, tmp_path: Path) -> None:
    opened = Page(chrome, tmp_path, "你", "")
    for number, each in enumerate(opened.maps):
        opened.choose(map=str(number))
        assert opened.shows(each) and opened.texts(".ytick text") == each.queries
    assert opened.has_no_error()


def test_a_long_sentence_scrolls_and_every_label_is_legible(chrome: Chrome, tmp_path: Path) -> None:
    opened = Page(chrome, tmp_path, BUTTERFLY * 12, "you are beautiful " * 20)
    (encoder, *_) = opened.maps
    assert len(encoder.keys) > 80 and opened.texts(".xtick text") == encoder.keys
    scrolls = (
        "const box = document.getElementById('scroll'), page = document.documentElement;"
        "return [box.scrollWidth > box.clientWidth, page.scrollWidth <= innerWidth]"
    )
    assert chrome.execute_script(scrolls) == [True, True]
    tops = sorted(label.rect["y"] for label in opened.find(".ytick text"))
    assert min(b - a for a, b in pairwise(tops)) >= 15
    assert opened.has_no_error()
