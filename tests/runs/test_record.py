"""What a run directory tells: its state, its numbers, and why it is none."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.runs.made import config_text, make_run

from zhen.compose import groups
from zhen.runs.record import Run, Skip, read_config, read_run, shown


def read(path: Path) -> Run:
    return read_run(path, path.name)


def leaves(node: dict[str, Any], prefix: str = "") -> dict[str, str]:
    found = {}
    for name, value in node.items():
        if isinstance(value, dict) and value:
            found.update(leaves(value, f"{prefix}{name}."))
        else:
            found[f"{prefix}{name}"] = shown(value)
    return found


def test_a_finished_run(tmp_path: Path) -> None:
    run = read(make_run(tmp_path, "tiny/1", "seed=3", val=(30.0, 20.0)))
    assert (run.state, run.reason, run.parameters) == ("finished", "", 1234)
    # The better validation, not the last.
    assert run.best == {"step": 9.0, "val/bleu": 30.0, "val/loss": 3.0}
    assert run.tests["test"]["bleu"] == pytest.approx(100)
    assert (run.seconds, run.tokens_per_second) == (12.0, 200)
    assert run.config["seed"] == "3" and run.choices["model"] == "tiny"


def test_less_is_better_where_the_checkpoint_says_so(tmp_path: Path) -> None:
    monitor = ("callbacks.checkpoint.monitor=val/loss", "callbacks.checkpoint.mode=min")
    run = read(make_run(tmp_path, "tiny/1", *monitor, val=(30.0, 20.0)))
    assert run.best["val/loss"] == 2.0 and run.best["val/bleu"] == 20.0


@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        ("interrupted", "interrupted", "SIGTERM"),
        ("crashed", "crashed", "ZeroDivisionError: too small"),
        ("killed", "crashed", "its log ends without a word: killed, or the machine went down"),
    ],
)
def test_a_run_without_an_end_tells_how_far_it_came(
    tmp_path: Path, end: str, state: str, reason: str
) -> None:
    run = read(make_run(tmp_path, "tiny/1", state=end))
    assert (run.state, run.reason) == (state, reason)
    assert (run.parameters, run.seconds, run.tokens_per_second) == (1234, 12.0, 200.0)
    assert run.best["val/bleu"] == 20.0 and run.tests == {}


def test_a_job_that_a_search_gave_up_is_pruned(tmp_path: Path) -> None:
    for number in (1, 2):
        make_run(tmp_path, f"tiny/S-{number}", state="interrupted", about={"sweep": "S"})
    (tmp_path / "tiny/S").mkdir()
    (tmp_path / "tiny/S/sweep.yaml").write_text("jobs: []\nended:\n  2: pruned\n")
    assert [read(tmp_path / f"tiny/S-{n}").state for n in (1, 2)] == ["interrupted", "pruned"]


def test_a_running_run_is_seen_without_being_disturbed(tmp_path: Path) -> None:
    path = make_run(tmp_path, "tiny/1", state="killed")
    program = (
        "import sys, zhen.runs.directory as d\n"
        "with d.RunDirectory(d.Path(sys.argv[1])).logging():\n"
        "    print('in', flush=True); sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "in\n"
    assert read(path).state == "running"
    process.communicate("")
    assert process.returncode == 0
    assert read(path).state == "crashed"  # it left without results


def test_what_is_being_written_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    path = make_run(tmp_path, "tiny/1", state="killed")
    with (path / "metrics.csv").open("a") as file:
        file.write("29,,99.5,0.1")  # of 0.123
    with (path / "clock.csv").open("a") as file:
        file.write("30,3000,2")
    run = read(path)
    assert run.best["val/bleu"] == 20.0 and run.clock == (20, 2000, 12.0, 2.0)


def test_a_number_that_is_none_is_no_best(tmp_path: Path) -> None:
    path = make_run(tmp_path, "tiny/1")
    with (path / "metrics.csv").open("a") as file:
        file.write("29,,nan,nan\n")
    assert read(path).best["val/bleu"] == 20.0


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("config.yaml", None, "no config.yaml"),
        ("config.yaml", b"", "config.yaml is not of a zhen run"),
        ("config.yaml", b"a: [", "config.yaml is damaged"),
        ("config.yaml", b"- 1\n", "config.yaml is damaged"),
        ("config.yaml", b"\xff\xfe", "config.yaml is damaged"),
        ("config.yaml", b"lr: 0.1\nmodel: {name: bert}\n", "config.yaml is not of a zhen run"),
        ("provenance.json", b"{", "provenance.json is damaged"),
        ("results.json", b"[]", "results.json is damaged"),
        ("results.json", b'{"test": {"test": 1}}', "results.json is damaged"),
        ("results.json", b'{"test": 1}', "results.json is damaged"),
        ("metrics.csv", b"step,val/bleu\n1,x\n", "metrics.csv is damaged"),
        ("metrics.csv", b"\xff\xfe\x00", "metrics.csv is damaged"),
    ],
)
def test_a_directory_that_is_none_says_why(
    tmp_path: Path, name: str, content: bytes | None, why: str
) -> None:
    path = make_run(tmp_path, "tiny/1")
    (path / name).unlink()
    if content is not None:
        (path / name).write_bytes(content)
    with pytest.raises(Skip, match=f"^{why}$"):
        read(path)


@pytest.mark.parametrize("name", ["provenance.json", "metrics.csv", "clock.csv", "log.txt"])
def test_a_file_that_is_not_there_yet_is_no_fault(tmp_path: Path, name: str) -> None:
    path = make_run(tmp_path, "tiny/1")
    (path / name).unlink()
    assert read(path).state == "finished"


def test_an_older_run_has_the_choices_of_its_command_line(tmp_path: Path) -> None:
    path = make_run(tmp_path, "tiny/1", "model=small")
    about = json.loads((path / "provenance.json").read_text())
    del about["choices"]
    (path / "provenance.json").write_text(json.dumps(about))
    assert read(path).choices == {"model": "small"}


@pytest.mark.parametrize("model", groups("train")["model"])
def test_a_configuration_is_read_as_yaml_reads_it(tmp_path: Path, model: str) -> None:
    text = config_text((f"model={model}",)).replace("/RUN_DIR", str(tmp_path))
    (tmp_path / "config.yaml").write_text(text)
    whole = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert read_config(tmp_path / "config.yaml") == leaves(whole)


AWKWARD = [
    "a: 1\nb:\n- x\n- y\nc: {d: 1}\n",
    'a: "one\n  two: 3\n\n  four"\nb: |\n  text: 1\n\n  more\nc: 2\n',
    "# a comment\n\na:\n  # another\n  b: 1\n# and one more\nc: 3\n",
    "a: &one\n  b: 1\nc: *one\n",
    "---\na: 1\n...\n",
    "'a b': 1\n\"c\": 2\n",
    "{a: 1, b: {c: 2}}\n",
    "a: 'x\ny'\n",
]


@pytest.mark.parametrize("text", AWKWARD)
def test_yaml_of_any_style_is_read_as_yaml_reads_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert read_config(tmp_path / "config.yaml") == leaves(yaml.safe_load(text))
