"""The paired bootstrap is sacreBLEU's, and what must not be compared is not."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.runs.made import REFERENCES, hypotheses, make_run

from zhen.runs.record import Run, read_run
from zhen.runs.significance import NotComparable, difference, sentences


def made(runs: Path, name: str, wrong: list[int], **options: object) -> Run:
    options = {"tests": {"test": hypotheses(wrong)}, **options}
    return read_run(make_run(runs, f"a/{name}", **options), f"a/{name}")


def chinese(wrong: Sequence[int] = ()) -> list[str]:
    return [f"短语{i}，不长。" if i in wrong else f"这是第{i}句话，它有一点长。" for i in range(40)]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_gives_what_the_sacrebleu_command_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lang: str
) -> None:
    lines = chinese if lang == "zh" else hypotheses
    base, run = (
        made(tmp_path, name, [], tests={"test": lines(wrong)}, references=lines(), lang=lang)
        for name, wrong in (("base", [1, 2, 3]), ("run", [2, 30]))
    )
    monkeypatch.setenv("SACREBLEU_SEED", "none")  # the user's habits change nothing
    found = difference(run, base, "test")
    line = [sys.executable, "-m", "sacrebleu", "base/test.ref", "-i", "base/test.hyp"]
    line += ["run/test.hyp", "-m", "bleu", "chrf", "--paired-bs", "-f", "text", "-w", "4"]
    line += ["-l", {"en": "zh-en", "zh": "en-zh"}[lang]]
    monkeypatch.delenv("SACREBLEU_SEED")
    monkeypatch.setenv("NO_COLOR", "1")
    done = subprocess.run(line, cwd=tmp_path / "a", capture_output=True, text=True, check=True)
    scores = re.search(r" run/test\.hyp │ +([\d.]+) .*│ +([\d.]+) ", done.stdout)
    assert scores is not None
    for name, score, p in zip(
        ("bleu", "chrf"), scores.groups(), re.findall(r"p = ([\d.]+)", done.stdout), strict=True
    ):
        assert f"{found[name].score:.4f}" == score and f"{found[name].p:.4f}" == p
    assert found["bleu"].delta == pytest.approx(
        run.tests["test"]["bleu"] - base.tests["test"]["bleu"]
    )
    assert difference(run, base, "test") == found


def test_a_clear_difference_is_significant_and_a_small_one_is_not(tmp_path: Path) -> None:
    base = made(tmp_path, "base", list(range(0, 40, 2)))
    better, alike = made(tmp_path, "better", []), made(tmp_path, "alike", [*range(0, 38, 2), 39])
    assert difference(better, base, "test")["bleu"].is_significant
    assert difference(better, base, "test")["bleu"].delta > 10
    assert not difference(alike, base, "test")["bleu"].is_significant


def test_the_same_translations_do_not_differ(tmp_path: Path) -> None:
    """sacreBLEU itself gives a difference of 0 a p of 0.001."""
    found = difference(made(tmp_path, "a", [1]), made(tmp_path, "b", [1]), "test")
    assert {(each.delta, each.p, each.is_significant) for each in found.values()} == {
        (0.0, 1.0, False)
    }


def change(run: Run, name: str, value: str) -> Run:
    results = json.loads((run.path / "results.json").read_text())
    results["test"]["test"][name] = value
    (run.path / "results.json").write_text(json.dumps(results))
    return read_run(run.path, run.name)


def test_other_references_sources_and_signatures_are_refused(tmp_path: Path) -> None:
    base = made(tmp_path, "base", [1])
    others = {
        made(tmp_path, "ref", [1], references=[*REFERENCES[:6], "Other.", *REFERENCES[7:]]):
            "another test set: line 7 of test.ref differs",
        change(made(tmp_path, "bleu", [1]), "bleu_signature", "tok:zh"):
            "its bleu of 'test' has the signature tok:zh, not nrefs:1",
        change(made(tmp_path, "chrf", [1]), "chrf_signature", "nc:4"):
            "its chrf of 'test' has the signature nc:4, not nrefs:1",
    }  # fmt: skip
    source = made(tmp_path, "src", [1])
    text = (source.path / "test.src").read_text().replace("第3句", "第三句")
    (source.path / "test.src").write_text(text)
    others[source] = "another test set: line 4 of test.src differs"
    for run, why in others.items():
        with pytest.raises(NotComparable) as refused:
            difference(run, base, "test")
        assert str(refused.value).startswith(why)


@pytest.mark.parametrize("ending", ["src", "hyp", "ref"])
def test_files_that_are_gone_or_cut(tmp_path: Path, ending: str) -> None:
    base, run = made(tmp_path, "base", [1]), made(tmp_path, "run", [2])
    file = run.path / f"test.{ending}"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(NotComparable, match=r"^test\.\* of a/run are not of one length$"):
        difference(run, base, "test")
    file.unlink()
    with pytest.raises(NotComparable, match=rf"^test.{ending} of a/run cannot be read$"):
        difference(run, base, "test")


def test_translations_that_do_not_give_the_stored_score(tmp_path: Path) -> None:
    base, run = made(tmp_path, "base", [1]), made(tmp_path, "run", [2])
    (run.path / "test.hyp").write_bytes((run.path / "test.ref").read_bytes())
    with pytest.raises(
        NotComparable, match=r"^test.hyp of a/run was changed: it has a bleu of 100"
    ):
        difference(run, base, "test")


def test_a_part_that_one_has_not(tmp_path: Path) -> None:
    base, run = made(tmp_path, "base", [1]), made(tmp_path, "run", [2])
    with pytest.raises(NotComparable, match=r"^a/base has no test part 'seen'$"):
        difference(run, base, "seen")


def test_a_line_ends_where_the_trainings_did(tmp_path: Path) -> None:
    lines = [*REFERENCES[:-1], "one\u2028line\x85still\x0bone"]
    path = make_run(tmp_path, "a/odd", tests={"test": lines}, references=lines)
    found = sentences(read_run(path, "a/odd"), "test")
    assert found.references == lines
