"""`zhen.attention` writes a page and a picture into the run, or refuses in one line."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.viewer.toy import BUTTERFLY, HEADS, POSITIONS, make, save

import zhen.attention
from zhen.attention import attention
from zhen.config import run_command

FILES = ["attention.html", "attention.png"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The checkpoint of a run."""
    run = tmp_path / "runs" / "toy" / "1"
    path = save(make(), run / "checkpoints" / "best.ckpt")
    (run / "config.yaml").touch()
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any) -> Any:
    """Runs the command; gives its exit status, standard output and error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        places = [f"paths.runs={tmp_path}/runs", f"paths.cache={tmp_path}/cache"]
        monkeypatch.setattr(sys, "argv", ["zhen.attention", *places, *arguments])
        status = 0
        try:
            run_command(attention, config_name="attention")
        except SystemExit as stop:
            status = int(stop.code or 0)
        return status, *capfd.readouterr()

    return run


def written(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*attention*"))


def test_the_newest_run_gets_a_page_and_a_picture(run: Any, checkpoint: Path) -> None:
    status, out, err = run(f"text='{BUTTERFLY}'", "decode=greedy", "decode.max_new_tokens=5")
    assert (status, err) == (0, "")
    folder = checkpoint.parent.parent
    first, *files = out.splitlines()
    assert first.startswith(f"{BUTTERFLY} -> ")
    assert files == [str(folder / name) for name in FILES]
    assert (folder / FILES[0]).read_text().startswith("<!doctype html>")
    assert (folder / FILES[1]).read_bytes().startswith(b"\x89PNG")


def test_a_target_is_looked_at_and_its_scores_are_printed(run: Any, checkpoint: Path) -> None:
    status, out, err = run("text='你很漂亮'", "target='you are beautiful'", "layer=2", "head=1")
    assert (status, err) == (0, "")
    first, *blocks, files = out.split("\n\n")
    assert first == "你很漂亮 -> you are beautiful"
    assert [block.partition(" (")[0] for block in blocks] == [
        "Encoder self-attention", "Decoder masked self-attention", "Cross-attention",
    ]  # fmt: skip
    assert "layer: 2 of 3, head: 1 of 4" in blocks[0] and "layer: 2 of 2, head: 1 of 4" in blocks[2]
    assert "\n  ␣are" in blocks[2] and "</s> 0." in blocks[2]
    assert len(files.splitlines()) == 2


def test_output_names_the_folder(run: Any, checkpoint: Path, tmp_path: Path) -> None:
    status, *_ = run("text=a", "target=b", f"output={tmp_path}/new/folder")
    assert status == 0 and written(tmp_path / "new" / "folder") == FILES
    assert written(tmp_path / "runs") == []


def test_a_checkpoint_in_no_run_gets_them_beside_it(run: Any, tmp_path: Path) -> None:
    path = save(make(), tmp_path / "models" / "checkpoints" / "mine.ckpt")
    assert run("text=a", "target=b", f"ckpt={path}")[0] == 0
    assert written(path.parent) == written(tmp_path) == FILES


BAD = [
    ([], '`text` has no value: give one sentence, as make attention TEXT="'),
    (["text=''"], "`text` is empty: give one sentence"),
    (["text='你\n好'"], "`text` has 2 lines: give one sentence, on one line"),
    (
        [f"text={'龘' * 99!r}"],
        f"`text` has 297 pieces, but the model takes at most {POSITIONS - 1}: shorten it",
    ),
    (["text=a", "target=' '"], "`target` is empty: give one sentence"),
    (["text=a", f"target={'龘' * 99!r}"], "`target` has 297 pieces, but the model takes at most "),
    (["text=a", "layer=0"], "`layer` must be an int of at least 1, or null, but is 0"),
    (["text=a", "head=x"], "`head` must be an int of at least 1, or null, but is 'x'"),
    (
        ["text=a", "layer=3"],
        "`layer` must be from 1 to 2, or null for the mean of all, but is 3: the model has no more"
        " in the encoder or in the decoder",
    ),
    (
        ["text=a", "head=5"],
        f"`head` must be from 1 to {HEADS}, or null for the mean of all, but is 5: the model has",
    ),
    (["text=a", "laier=1"], "`laier` is not a key; did you mean `layer`?"),
    (["text=a", "decode.num_beams=0"], "`decode`: `num_beams` must be from 1 to 10000, but is 0"),
    (["text=a", "ckpt=none.ckpt"], "ckpt: none.ckpt does not exist; give a checkpoint's path"),
    (["text=a", "target=b", "output=/proc/x"], "output: cannot make /proc/x: "),
    (["text=1"], "`text` must be a string or null, but is 1; as text it is written text='\"1\"'"),
    (["text='\udcff'"], "`text` must be text in UTF-8, but is '\\udcff'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[str(bad[0])[:30] for bad in BAD])
def test_what_is_refused_is_one_line_and_writes_nothing(
    run: Any, checkpoint: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"error: {message}")
    assert written(tmp_path) == []


def test_more_weights_than_a_page_should_hold(
    run: Any, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 3 pieces and 2, each with a control piece: encoder 3 * 4², decoder 2 * 3 * (3 + 4), 4 heads.
    monkeypatch.setattr(zhen.attention, "MOST_WEIGHTS", 4 * (3 * 16 + 2 * 21))
    arguments = ["text='abc'", "target='de'"]
    assert run(*arguments)[0] == 0
    monkeypatch.setattr(zhen.attention, "MOST_WEIGHTS", 4 * (3 * 16 + 2 * 21) - 1)
    status, out, err = run(*arguments, f"output={tmp_path / 'out'}")
    assert (status, out) == (1, "")
    assert err.startswith("error: `text` and its translation have 4 and 3 pieces: with all layers")
    assert written(tmp_path / "out") == []


@pytest.mark.parametrize("name", FILES)
def test_neither_file_is_written_where_one_cannot_be(
    run: Any, checkpoint: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "out" / name).mkdir(parents=True)
    status, out, err = run("text=a", f"output={tmp_path / 'out'}")
    assert (status, out) == (1, "")
    assert err == f"error: output: {tmp_path / 'out' / name} is a directory; give a file\n"
    assert written(tmp_path) == [name]


@pytest.mark.parametrize("what", ["damaged", "of another model"])
def test_a_checkpoint_that_is_no_good(
    run: Any, checkpoint: Path, tmp_path: Path, what: str
) -> None:
    if what == "damaged":
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
    else:
        save(make(vocab_size=400), checkpoint)
    status, out, err = run("text=a")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"error: ckpt: {checkpoint} is ") and "give a file that `make tr" in err
    assert written(tmp_path) == []


def test_without_a_run_it_says_what_to_do(run: Any) -> None:
    status, _, err = run("text=a")
    assert status == 1 and err.startswith("error: no trained model below ")
