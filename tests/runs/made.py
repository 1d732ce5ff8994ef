"""Run directories as trainings leave them, made in a moment."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from zhen.compose import compose, groups
from zhen.schema import resolve
from zhen.training.scores import score

SOURCES = [f"第{i}句话，有点长。" for i in range(40)]
REFERENCES = [f"This is sentence {i}, and it is a little long." for i in range(40)]
DEFAULTS = {
    "data": "phrasebook", "model": "tiny", "optimizer": "adamw", "scheduler": "linear",
    "tokenizer": "bpe", "experiment": "phrasebook",
}  # fmt: skip
LINE = "2026-11-30 15:12:34,123"
BEGUN = f"{LINE} INFO zhen.train: zh to en: 1,234 parameters, 600 pieces, seed 0, cpu\n"
# How a log ends, by the state that it tells of.
ENDS = {
    "interrupted": f"{LINE} INFO zhen.training.checkpoints: SIGTERM: stopped after update 20\n"
    f"{LINE} ERROR zhen: Stopped: 143\n",
    "crashed": f"{LINE} ERROR zhen: ZeroDivisionError: too small\nTraceback (most recent call):\n"
    '  File "x.py", line 1, in <module>\nZeroDivisionError: too small\n',
    "killed": f"{LINE} INFO zhen.training.callbacks: update 7\n",
    "finished": f"{LINE} INFO zhen.training.callbacks: update 20\n",
}


@cache
def config_text(overrides: tuple[str, ...]) -> str:
    """config.yaml of a run in /RUN_DIR."""
    cfg = compose("train", [*overrides, "paths.run_dir=/RUN_DIR", "logger=csv"])
    return OmegaConf.to_yaml(OmegaConf.create(resolve(cfg)))


def hypotheses(wrong: Sequence[int] = ()) -> list[str]:
    """The references, those of some sentences spoilt."""
    return [
        f"It is phrase {i} and is rather short." if i in wrong else text
        for i, text in enumerate(REFERENCES)
    ]


def make_run(
    runs: Path,
    name: str,
    *overrides: str,
    state: str = "finished",
    val: Sequence[float] = (10.0, 20.0),
    tests: Mapping[str, Sequence[str]] | None = None,
    references: Sequence[str] = REFERENCES,
    lang: str = "en",
    started: str = "2026-11-30T15:00:00+00:00",
    about: Mapping[str, Any] | None = None,
) -> Path:
    """A run with two validations, after updates 10 and 20.

    Args:
        val: the BLEU of each.
        tests: translations of each part; None: a single test set with all right.
        about: what is to be different in provenance.json.
    """
    path = runs / name
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(config_text(overrides).replace("/RUN_DIR", str(path)))
    (path / "overrides.yaml").write_text(OmegaConf.to_yaml(list(overrides)))
    words = dict(each.partition("=")[::2] for each in overrides)
    chosen = {group: word for group, word in words.items() if group in groups("train")}
    provenance = {
        "started": started,
        "git": {"commit": "0123456789abcdef", "dirty": False},
        "choices": {**DEFAULTS, **chosen, "debug": None},
        "corpus": {"train": "aaaaaaaaaaaa", "val": "bbbb", "test": "cccc"},
        **(about or {}),
    }
    (path / "provenance.json").write_text(json.dumps(provenance))
    rows = [f"{step},{2.5 - step / 10},,\n" for step in range(20)]
    rows[10:10] = [f"9,,{val[0]},3.0\n"] if val else []
    rows += [f"19,,{val[1]},2.0\n"] if len(val) > 1 else []
    (path / "metrics.csv").write_text("step,train/loss,val/bleu,val/loss\n" + "".join(rows))
    (path / "clock.csv").write_text(
        "update,target_tokens,seconds,seconds_validating\n10,1000,5.0,0.0\n20,2000,12.0,2.0\n"
    )
    (path / "log.txt").write_text(BEGUN + ENDS[state])
    if state != "finished":
        return path
    found = {}
    for part, lines in (tests or {"test": hypotheses()}).items():
        stem = "test" if part == "test" else f"test.{part}"
        for ending, text in (("src", SOURCES), ("hyp", lines), ("ref", references)):
            written = "".join(f"{line}\n" for line in text)
            (path / f"{stem}.{ending}").write_text(written, encoding="utf-8")
        scores = score(lines, references, lang)
        found[part] = {"sentences": len(lines), "loss": 2.0, **vars(scores)}
    results = {"test": found, "parameters": 1234, "updates": 20, "target_tokens_per_second": 200}
    (path / "results.json").write_text(json.dumps({**results, "seconds_training": 12.0}))
    return path
