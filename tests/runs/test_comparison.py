"""What differs, in which order, and which scores may stand in one table."""

import json
from pathlib import Path

import pytest
from tests.runs.made import REFERENCES, hypotheses, make_run

from zhen.errors import UserError
from zhen.runs.comparison import arranged, differences, groups, notes
from zhen.runs.record import Run, read_run
from zhen.runs.tables import of_runs

Made = list[Run]


def read(runs: Path) -> Made:
    return [read_run(path, f"{path.parent.name}/{path.name}") for path in sorted(runs.glob("*/*"))]


def differing(runs: Path) -> dict[str, list[str]]:
    found = read(runs)
    return {each.key: [each.text(run) for run in found] for each in differences(found)}


def test_only_what_differs_and_can_matter(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", "optimizer.lr=0.001", "data.num_workers=2", "seed=1")
    make_run(tmp_path, "b/2", "optimizer.lr=0.002", "callbacks.samples.count=9", "seed=1")
    assert differing(tmp_path) == {"optimizer.lr": ["0.001", "0.002"]}


def test_a_key_that_one_run_has_not(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", "+trainer.limit_train_batches=5")
    make_run(tmp_path, "a/2")
    assert differing(tmp_path) == {"trainer.limit_train_batches": ["5", ""]}


def test_the_option_of_a_group_stands_for_what_it_sets(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", "model=tiny")
    make_run(tmp_path, "a/2", "model=small")
    make_run(tmp_path, "a/3", "model=small", "model.dropout=0.25")
    assert differing(tmp_path) == {
        "model": ["tiny", "small", "small"],
        # It is not told by the option alone.
        "model.dropout": [read(tmp_path)[0].config["model.dropout"]] * 1
        + [read(tmp_path)[1].config["model.dropout"], "0.25"],
    }


def test_options_that_set_the_same_differ_in_nothing(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1")
    make_run(tmp_path, "a/2", about={"choices": {"model": "mine"}})
    assert differing(tmp_path) == {}


def test_other_code_and_other_pairs_are_differences(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1")
    make_run(tmp_path, "a/2", about={"git": {"commit": "fedcba9876", "dirty": True}})
    corpus = {"train": "other", "val": "bbbb", "test": "cccc"}
    make_run(tmp_path, "a/3", about={"corpus": corpus})
    assert differing(tmp_path) == {
        "code": ["0123456", "fedcba9+", "0123456"],
        "corpus.train": ["aaaaaaaa", "aaaaaaaa", "other"],
    }


def test_code_is_compared_by_its_content_where_that_is_known(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", about={"code": "c" * 64})
    make_run(tmp_path, "a/2", about={"code": "c" * 64, "git": {"commit": "fedcba9876"}})
    assert differing(tmp_path) == {}
    make_run(tmp_path, "a/3", about={"code": "d" * 64})
    assert differing(tmp_path) == {"code": ["cccccccc", "cccccccc", "dddddddd"]}


def test_the_same_pairs_at_another_place_are_no_difference(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1")
    make_run(tmp_path, "a/2", "data.train=elsewhere.tsv")
    assert differing(tmp_path) == {}


def test_a_path_says_more_than_a_fingerprint(tmp_path: Path) -> None:
    corpus = {"train": "other", "val": "bbbb", "test": "cccc"}
    make_run(tmp_path, "a/1", "data.train=one.tsv")
    make_run(tmp_path, "a/2", "data.train=two.tsv", about={"corpus": corpus})
    assert differing(tmp_path) == {"data.train": ["one.tsv", "two.tsv"]}


def test_runs_of_one_test_set_and_those_still_to_be_tested_are_one_group(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1")
    make_run(tmp_path, "a/2", state="killed")
    make_run(tmp_path, "a/3", "data.source_lang=en", state="killed", val=())
    assert [len(group.runs) for group in groups(read(tmp_path))] == [3]


def signature(path: Path, name: str, value: str) -> None:
    results = json.loads((path / "results.json").read_text())
    results["test"]["test"][name] = value
    (path / "results.json").write_text(json.dumps(results))


def test_scores_that_are_not_comparable_are_kept_apart_and_it_is_said_why(tmp_path: Path) -> None:
    for number in (1, 2):
        make_run(tmp_path, f"a/{number}")
    make_run(tmp_path, "b/direction", "data.source_lang=en")
    make_run(tmp_path, "b/limits", "+trainer.limit_test_batches=2")
    make_run(tmp_path, "b/references", references=[*REFERENCES[:-1], "Another one."])
    make_run(tmp_path, "b/signature")
    signature(tmp_path / "b/signature", "bleu_signature", "tok:zh")
    corpus = {"train": "aaaaaaaaaaaa", "val": "other", "test": "cccc"}
    make_run(tmp_path, "b/val", about={"corpus": corpus})
    first, *others = groups(read(tmp_path))
    assert [run.name for run in first.runs] == ["a/1", "a/2"]
    why = {group.runs[0].name: first.scored.why_not(group.scored) for group in others}
    assert why == {
        "b/direction": "another direction, en→zh",
        "b/limits": "another part of the pairs, trainer.limit_val_batches or limit_test_batches",
        "b/references": "other test pairs (test.ref)",
        "b/signature": "another signature of test bleu, tok:zh",
        "b/val": "other validation pairs",
    }


def sorted_by(runs: Path, sort: str) -> list[str]:
    (group,) = arranged(groups(read(runs)), sort)
    return [run.path.name for run in group.runs]


def test_sorting(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", "seed=10", val=(10.0, 20.0))
    make_run(tmp_path, "a/2", "seed=9", val=(5.0, 30.0), tests={"test": hypotheses([1])})
    make_run(tmp_path, "a/3", "seed=11", state="killed", val=())
    assert sorted_by(tmp_path, "val/bleu") == ["2", "1", "3"]  # the best first
    assert sorted_by(tmp_path, "-val/bleu") == ["1", "2", "3"]  # what has none stays last
    assert sorted_by(tmp_path, "val/loss") == ["1", "2", "3"]
    assert sorted_by(tmp_path, "test/bleu") == ["1", "2", "3"]
    assert sorted_by(tmp_path, "seed") == ["2", "1", "3"]
    assert sorted_by(tmp_path, "-run") == ["3", "2", "1"]
    assert sorted_by(tmp_path, "optimizer.lr") == ["1", "2", "3"]
    with pytest.raises(UserError, match=r"^sort=val/blue: no such column; did you mean `val/bleu`"):
        sorted_by(tmp_path, "val/blue")


def test_a_loss_that_is_no_number_is_no_best_one(tmp_path: Path) -> None:
    for name in "12345":
        path = make_run(tmp_path, f"a/{name}", f"seed={name}")
        loss = {"1": "3.0", "3": "1.0", "5": "2.5"}.get(name, "nan")
        file = path / "metrics.csv"
        file.write_text(file.read_text().replace("20.0,2.0", f"20.0,{loss}"))
    assert sorted_by(tmp_path, "val/loss") == ["3", "5", "1", "2", "4"]
    assert sorted_by(tmp_path, "-val/loss") == ["1", "5", "3", "2", "4"]
    (group,) = arranged(groups(read(tmp_path)), "val/loss")
    table = of_runs(group, "")
    at = [head.key for head in table.heads].index("val/loss")
    assert [row for row, column in table.best if column == at] == [0]


def test_notes_tell_what_the_numbers_do_not(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", "label_smoothing=0.2")
    make_run(tmp_path, "a/2", state="crashed")
    make_run(tmp_path, "a/3", state="killed", about={"git": {"commit": "f" * 40, "dirty": True}})
    (group,) = groups(read(tmp_path))
    found = notes(group)
    assert any(each.startswith("val loss is") and "label_smoothing" in each for each in found)
    assert "a/2 is crashed: ZeroDivisionError: too small" in found
    assert any("code with a +" in each for each in found)
