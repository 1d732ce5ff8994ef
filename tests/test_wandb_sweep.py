"""The sweep file for the agent of Weights & Biases: its form, and what its agent runs (W7)."""

from typing import Any

import pytest
import yaml
from wandb.sdk.launch.sweeps import utils

from zhen.compose import CONFIGS
from zhen.config import checked

SWEEP: dict[str, Any] = yaml.safe_load((CONFIGS / "wandb_sweep.yaml").read_text())
# From the schema of wandb's package `sweeps`, which needs numpy < 2: what each kind must have.
DISTRIBUTIONS = {
    "uniform": {"min", "max"},
    "log_uniform_values": {"min", "max"},
    None: {"values"},
}


def test_the_form_is_that_of_the_schema() -> None:
    assert SWEEP["method"] in ("grid", "random", "bayes")
    assert SWEEP["metric"]["goal"] in ("maximize", "minimize")
    assert SWEEP["early_terminate"]["type"] == "hyperband"
    for name in ("program", "project"):
        assert isinstance(SWEEP[name], str)
    assert SWEEP["run_cap"] >= 1 and SWEEP["early_terminate"]["min_iter"] >= 1
    for key, parameter in SWEEP["parameters"].items():
        assert parameter.keys() - {"distribution"} == DISTRIBUTIONS[parameter.get("distribution")]
        if "min" in parameter:
            assert parameter["min"] < parameter["max"], key


def command_of(chosen: dict[str, Any]) -> list[str]:
    """The words of a job, as `wandb agent` puts them together."""
    args = {key: {"value": value} for key, value in chosen.items()}
    variables: dict[str, Any] = utils.create_sweep_command_args({"args": args})
    variables |= {"env": ["/usr/bin/env"], "interpreter": ["python"], "program": [SWEEP["program"]]}
    words = []
    for word in utils.create_sweep_command(list(SWEEP["command"])):
        words += variables[word[2:-1]] if word.startswith("${") else [word]
    return words


@pytest.mark.parametrize("end", ["min", "max"])
def test_the_agents_command_is_one_of_ours(end: str) -> None:
    for option in SWEEP["parameters"]["scheduler"]["values"]:
        chosen = {k: v.get(end, option) for k, v in SWEEP["parameters"].items()}
        program, words = command_of(chosen)[:4], command_of(chosen)[4:]
        assert program == ["/usr/bin/env", "python", "-m", "zhen.train"]
        cfg = checked("train", words)
        assert cfg.logger.wandb.mode == "online" and cfg.logger.wandb.project == SWEEP["project"]
        assert cfg.optimizer.lr == chosen["optimizer.lr"]
        assert cfg.model.dropout == chosen["model.dropout"]
        assert SWEEP["metric"]["name"] == cfg.callbacks.checkpoint.monitor
        assert SWEEP["metric"]["goal"].startswith(cfg.callbacks.checkpoint.mode)
