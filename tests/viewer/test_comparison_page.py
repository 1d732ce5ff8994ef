"""The report holds what it shows, and nothing in it can get out of its place."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs
from tests.runs.made import hypotheses, make_run

from zhen.runs.comparison import arranged, groups
from zhen.runs.record import Run, read_run
from zhen.runs.report import content, curves
from zhen.runs.tables import of_runs
from zhen.viewer.comparison_page import comparison_page

HOSTILE = "</script><script>document.title='stolen'</script><!-- {{data}} \u2028\x00"


def read(path: Path) -> Run:
    return read_run(path, f"{path.parent.name}/{path.name}")


def page_of(*paths: Path) -> str:
    found = arranged(groups([read(path) for path in paths]), "run")
    return comparison_page(content(found, [of_runs(group, "") for group in found], None))


def data_of(html: str) -> dict:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(data)


def test_the_page_forbids_itself_the_network_and_names_no_address_to_fetch(tmp_path: Path) -> None:
    template = files("zhen.viewer").joinpath("comparison.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in template and "://" not in template
    assert "{{" not in page_of(make_run(tmp_path, "a/1")).replace(get_plotlyjs(), "")


def test_tables_settings_and_translations_are_there(tmp_path: Path) -> None:
    one = make_run(tmp_path, "a/1", "seed=1", tests={"test": hypotheses([3])})
    two = make_run(tmp_path, "a/2", "seed=2", state="killed")
    data = data_of(page_of(one, two))
    (table,) = data["tables"]
    assert [row[0] for row in table["rows"]] == ["a/1", "a/2"]
    assert data["settings"]["rows"] == [["seed", "1", "2"]]
    (part,) = data["translations"]
    assert list(part["runs"]) == ["a/1"] and len(part["sources"]) == 40
    scores = part["runs"]["a/1"]["chrf"]
    assert scores[3] < 60 and set(scores[:3] + scores[4:]) == {100.0}


def test_curves_by_update_tokens_and_time(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a/1")
    found = curves(read(path))
    assert set(found) == {"train/loss", "val/bleu", "val/loss"}
    assert found["val/bleu"] == {
        "y": [10.0, 20.0],
        "update": [10, 20],
        "tokens": [1000.0, 2000.0],
        "seconds": [5.0, 12.0],
    }
    loss = found["train/loss"]
    # In between, as far as between the rows of clock.csv.
    assert (loss["update"][4], loss["tokens"][4], loss["seconds"][4]) == (5, 500.0, 2.5)
    assert (loss["update"][14], loss["tokens"][14], loss["seconds"][14]) == (15, 1500.0, 8.5)
    (path / "clock.csv").unlink()
    assert curves(read(path))["val/bleu"]["seconds"] == [None, None]


def test_a_long_curve_is_thinned(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a/1")
    rows = "".join(f"{i},{i}\n" for i in range(10_000))
    (path / "metrics.csv").write_text(f"step,train/loss\n{rows}")
    loss = curves(read(path))["train/loss"]
    assert 200 <= len(loss["y"]) <= 400 and loss["update"][0] == 1


def test_importances_of_a_sweep(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a/first-0", about={"sweep": "first"})
    assert data_of(page_of(path))["importances"] == []
    (tmp_path / "a/first").mkdir()
    importances = tmp_path / "a/first/importances.json"
    importances.write_text('{"model.dropout": 0.2, "optimizer.lr": 0.8}')
    assert data_of(page_of(path))["importances"] == [
        {"sweep": "a/first", "parameters": ["optimizer.lr", "model.dropout"], "shares": [0.8, 0.2]}
    ]
    for nothing in ("[1", "{}"):
        importances.write_text(nothing)
        assert data_of(page_of(path))["importances"] == []


@pytest.mark.parametrize("where", ["hypothesis", "setting"])
def test_a_hostile_text_stays_a_text(tmp_path: Path, where: str) -> None:
    lines = hypotheses()
    if where == "hypothesis":
        lines[0] = HOSTILE.replace("\n", "")
    one = make_run(tmp_path, "a/1", tests={"test": lines})
    two = make_run(tmp_path, "a/2")
    if where == "setting":
        with (one / "config.yaml").open("a") as file:
            file.write(f"evil: {json.dumps(HOSTILE)}\n")
    html, harmless = page_of(one, two), page_of(two)
    for mark in ("<script", "</script", "<!--"):
        assert html.count(mark) == harmless.count(mark)
    data = data_of(html)
    if where == "hypothesis":
        assert data["translations"][0]["runs"]["a/1"]["hypotheses"][0] == lines[0]
    else:
        assert ["evil", HOSTILE, ""] in data["settings"]["rows"]
