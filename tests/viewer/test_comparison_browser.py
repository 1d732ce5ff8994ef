"""The report of `make compare` in a real browser: what a reader does with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from tests.runs.made import hypotheses, make_run
from tests.viewer.browser import open_chrome, requests

from zhen.compare import against
from zhen.runs.comparison import arranged, groups
from zhen.runs.finding import find_runs
from zhen.runs.report import content
from zhen.runs.tables import of_differences, of_repeats, of_runs
from zhen.viewer.comparison_page import comparison_page


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    yield from open_chrome(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def page(chrome: Chrome, tmp_path_factory: pytest.TempPathFactory) -> Chrome:
    """Three runs, one without a clock and one not finished, a baseline, a sweep's importances."""
    folder = tmp_path_factory.mktemp("compare")
    runs = folder / "runs"
    bad = hypotheses([3, 5])
    bad[5] = "<b>no</b> &lt;"
    make_run(runs, "a/first-0", "seed=1", tests={"test": bad}, about={"sweep": "first"})
    make_run(runs, "a/first-9", "seed=2", tests={"test": hypotheses([7])}, val=(10.0, 9.0))
    path = make_run(runs, "a/killed", "model=small", state="killed", val=(10.0, 30.0))
    (path / "clock.csv").unlink()
    (runs / "a/first").mkdir()
    (runs / "a/first/sweep.yaml").touch()
    (runs / "a/first/importances.json").write_text('{"optimizer.lr": 0.75, "seed": 0.25}')
    every = find_runs(runs, None)[0]
    base = next(run for run in every if run.name == "a/first-9")
    (group,) = found = arranged(groups(every), "run")
    tables = [of_runs(group, ""), *of_repeats(group, base)]
    tables += of_differences(against(base, every)[0], base)
    html = comparison_page(content(found, tables, base))
    (folder / "compare.html").write_text(html, encoding="utf-8")
    chrome.get_log("performance")
    chrome.get_log("browser")
    chrome.get((folder / "compare.html").as_uri())
    ready = (By.CSS_SELECTOR, "body[data-ready]")
    WebDriverWait(chrome, 60).until(lambda _: chrome.find_elements(*ready))
    return chrome


FIRST = "#tables .scroll:first-of-type"  # the table of the runs


def texts(page: Chrome, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
    return page.execute_script(script, selector)


def choose(page: Chrome, **choices: str) -> None:
    for box, text in choices.items():
        Select(page.find_element(By.ID, box)).select_by_visible_text(text)


def test_it_opens_without_the_network_and_without_an_error(page: Chrome) -> None:
    first, *others = requests(page)
    assert first.startswith("file:///") and all(url.startswith("data:") for url in others)
    assert page.get_log("browser") == []
    fonts = "return [...document.fonts].map((font) => font.family + ' ' + font.status)"
    assert page.execute_script(fonts) == ["pieces loaded"]


def test_the_table_is_sorted_by_the_head_that_is_clicked(page: Chrome) -> None:
    first = f"{FIRST} tbody tr td:first-child"
    assert texts(page, first) == ["a/first-0", "a/first-9", "a/killed"]
    heads = page.find_elements(By.CSS_SELECTOR, f"{FIRST} th button")
    head = next(each for each in heads if each.text.startswith("val BLEU"))
    head.click()
    assert texts(page, first) == ["a/first-9", "a/first-0", "a/killed"]
    head.click()
    assert texts(page, first) == ["a/killed", "a/first-0", "a/first-9"]
    tested = next(each for each in heads if each.text.startswith("test BLEU"))
    for _ in range(2):
        tested.click()
        assert texts(page, first)[-1] == "a/killed"  # it has no test, however one sorts


def test_the_tables_of_seeds_and_against_the_baseline(page: Chrome) -> None:
    seeds, against_base = texts(page, "#tables h3")
    assert seeds.startswith("Over seeds: mean ± standard deviation; Δ to the baseline's mean")
    assert against_base.startswith("Against a/first-9: paired bootstrap, 1,000 resamples")
    rows = texts(page, f"{FIRST} ~ .scroll tbody tr td:first-child")
    assert rows == ["small", "tiny", "a/first-0"]
    cells = texts(page, "#tables .scroll:last-of-type td")
    assert cells[1] == "test" and cells[3].startswith("-")


def test_the_settings_that_differ(page: Chrome) -> None:
    assert texts(page, "#settings th") == ["setting", "a/first-0", "a/first-9", "a/killed"]
    rows = texts(page, "#settings tbody tr")
    assert rows == ["modeltinytinysmall", "seed120"]


def test_curves_by_update_tokens_and_time(page: Chrome) -> None:
    choose(page, metric="val/bleu")
    shown = "return plot.data.map((each) => [each.name, each.x, each.y])"
    assert page.execute_script(shown) == [
        ["a/first-9", [10, 20], [10, 9]],
        ["a/first-0", [10, 20], [10, 20]],
        ["a/killed", [10, 20], [10, 30]],
    ]
    assert texts(page, "#plot .legendtext") == ["a/first-9", "a/first-0", "a/killed"]
    choose(page, axis="target tokens")
    assert [x for _, x, _ in page.execute_script(shown)] == [[1000, 2000], [1000, 2000]]
    assert texts(page, "#without") == ["Without a clock.csv, and so not here: a/killed"]
    choose(page, axis="seconds", metric="train/loss")
    assert len(page.execute_script(shown)[0][1]) == 20
    assert texts(page, "#plot .xtitle") == ["seconds"]


def test_translations_where_two_runs_differ_most(page: Chrome) -> None:
    assert texts(page, "#left option") == ["a/first-9", "a/first-0"]
    (said,) = texts(page, "#summary")
    assert said.startswith("3 of 40 translations differ: a/first-0 is closer to the reference in 1")
    rows = page.find_elements(By.CSS_SELECTOR, "#sentences tbody tr")
    assert len(rows) == 3
    worst = [cell.text for cell in rows[0].find_elements(By.TAG_NAME, "td")]
    assert worst[0].startswith("第5句话") and worst[4] == "<b>no</b> &lt;"
    assert worst[3] == "100.0" and worst[6].startswith("-")
    choose(page, right="a/first-9")
    assert texts(page, "#summary")[0].startswith("0 of 40 translations differ")
    assert page.find_elements(By.CSS_SELECTOR, "#sentences tbody tr") == []
    choose(page, left="a/first-0")
    assert texts(page, "#summary")[0].startswith("3 of 40 translations differ: a/first-9 is closer")


def test_importances_of_the_sweep(page: Chrome) -> None:
    assert texts(page, "#importances h3") == ["a/first"]
    bars = "return document.querySelector('#importances .bars').data[0]"
    found = page.execute_script(bars)
    assert (found["y"], found["x"]) == (["optimizer.lr", "seed"], [0.75, 0.25])
    assert len(page.find_elements(By.CSS_SELECTOR, "#importances .bars .point")) == 2


def test_nothing_is_wider_than_the_page_and_nothing_failed(page: Chrome) -> None:
    fits = "return document.documentElement.scrollWidth <= innerWidth"
    assert page.execute_script(fits)
    assert page.get_log("browser") == []


def test_a_single_run_that_has_only_begun(chrome: Chrome, tmp_path: Path) -> None:
    path = make_run(tmp_path / "runs", "a/1", state="killed", val=())
    (path / "metrics.csv").unlink()
    found = arranged(groups(find_runs(tmp_path / "runs", None)[0]), "run")
    html = comparison_page(content(found, [of_runs(group, "") for group in found], None))
    (tmp_path / "compare.html").write_text(html, encoding="utf-8")
    chrome.get((tmp_path / "compare.html").as_uri())
    ready = (By.CSS_SELECTOR, "body[data-ready]")
    WebDriverWait(chrome, 60).until(lambda _: chrome.find_elements(*ready))
    assert chrome.get_log("browser") == []
    shown = "return [...document.querySelectorAll('section')].filter((e) => !e.hidden).length"
    assert chrome.execute_script(shown) == 0
