"""From the command line to the call: what is refused, in which words, and what a command gets."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from tests.commands import COMMANDS

from zhen import compose as compose_module
from zhen.config import ROOT, UserError, build, current_overrides, run_command

Seen = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HYDRA_FULL_ERROR", "ZHEN_RUN_ID", "SLURM_JOB_ID", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs a command that notes what it sees; returns the notes."""

    def run(*arguments: str, command: Any = None, config_name: str = "train") -> Seen:
        seen: Seen = []

        def note(cfg: DictConfig) -> None:
            seen.append(
                {
                    "cfg": cfg,
                    "run_dir": cfg.paths.get("run_dir"),
                    "argv": sys.argv[1:],
                    "overrides": current_overrides(),
                    "run_id": os.environ.get("ZHEN_RUN_ID"),
                    "hydra": HydraConfig.initialized(),
                    "full_error": os.environ.get("HYDRA_FULL_ERROR"),
                }
            )

        places = [f"paths.runs={tmp_path}/runs", f"paths.cache={tmp_path}/cache"]
        monkeypatch.setattr(sys, "argv", ["zhen.train", *places, *arguments])
        run_command(command or note, config_name=config_name)
        return seen

    return run


BAD = [
    # a key that does not exist
    ("modle=tiny", "`modle` is not a key; did you mean `model`?"),
    ("modle.d_model=64", "`modle.d_model` is not a key; did you mean `model.d_model`?"),
    ("optimiser.lr=1", "`optimiser.lr` is not a key; did you mean `optimizer.lr`?"),
    ("lr=0.1", "`lr` is not a key; did you mean `optimizer.lr`?"),
    ("model.lr=0.1", "`model.lr` is not a key; did you mean `optimizer.lr`?"),
    ("wandb.mode=online", "`wandb.mode` is not a key; did you mean `logger.wandb.mode`?"),
    ("qqqqqq=1", "`qqqqqq` is not a key; --cfg job lists them."),
    ("~gone", "`~gone`: there is no `gone` to take out"),
    ("~model", "`model` is missing, and the command needs it: do not take it out"),
    ("~seed", "`seed` is missing, and the command needs it: do not take it out"),
    ("+seed=1", "`+seed=1`: `seed` is there already: without the `+` it is set"),
    ("+foo=1", "nothing reads `foo`: take it out"),
    ("+sede=1", "nothing reads `sede`; did you mean `seed`?"),
    ("+logger.mode=online", "nothing reads `logger.mode`; did you mean `logger.wandb.mode`?"),
    (
        "+model.d_modle=64",
        "`model.d_modle` is not a parameter of zhen.model.Transformer;"
        " did you mean `model.d_model`?",
    ),
    ("+model.vocab_size=9", "`model.vocab_size` is set by zhen at run time: take it out"),
    (
        "scheduler=constant scheduler.min_ratio=0",
        "`scheduler.min_ratio` is a key of scheduler=cosine and scheduler=linear,"
        " which is not chosen",
    ),
    # an option that does not exist
    (
        "model=smal",
        "`model=smal`: no such model; did you mean `small`? the options are base, big, small, tiny",
    ),
    ("logger=null", "`logger=null`: choose one; the options are"),
    # what is no override at all
    ("max_epochs", "`max_epochs` is not a setting: write key=value, as trainer.max_epochs=3"),
    ("--lr=1", "unrecognized arguments: --lr=1: settings are written key=value"),
    ("name={a", "`name={a` cannot be read ("),
    (
        "seed=0,1",
        "`seed=0,1` gives several values: a list is written seed=[0,1], a text with a comma"
        " seed='\"0,1\"', and `make sweep` starts a training for each of several",
    ),
    # a value of the wrong type
    ("seed=abc", "`seed` must be an int from 0 to 4294967295, but is 'abc'"),
    ("seed=-1", "`seed` must be an int from 0 to 4294967295, but is -1"),
    ("seed=true", "`seed` must be an int from 0 to 4294967295, but is true"),
    ("label_smoothing=1", "`label_smoothing` must be a float, at least 0 and below 1, but is 1"),
    (
        "label_smoothing=nan",
        "`label_smoothing` must be a float, at least 0 and below 1, but is nan",
    ),
    ("name=../x", "`name` must be letters, digits, `.`, `_` and `-`, the first a letter or digit,"),
    (
        "name=7",
        "`name` must be letters, digits, `.`, `_` and `-`, the first a letter or digit, but",
    ),
    ("optimizer.lr=abc", "`optimizer.lr` must be a number above 0, but is 'abc'"),
    ("optimizer.lr=null", "`optimizer.lr` must be a number above 0, but is null"),
    ("optimizer.betas=[0.9]", "`optimizer.betas` must be two numbers, each at least 0 and below 1"),
    ("model.d_model=3.5", "`model.d_model` must be an int, but is 3.5"),
    ("model.d_model=yes", "`model.d_model` must be an int, but is 'yes'"),
    ("model.d_model=true", "`model.d_model` must be an int, but is true"),
    ("model.norm=prre", "`model.norm` must be one of 'pre', 'post', but is 'prre'; did you mean"),
    ("model.tie_embeddings=1", "`model.tie_embeddings` must be true or false, but is 1"),
    ("data.batch=3", "`data.batch` must be a mapping, but is 3"),
    ("data.languages=zh", "`data.languages` must be a list, each value a string, but is 'zh'"),
    # what a library would take, or refuse too late
    *(
        (f"{key}={value}", f"`{key.removeprefix('+')}` must be ")
        for key, values in {
            "optimizer.lr": ["0", "-0.0", "inf", "1e400", "nan", "-1"],
            "optimizer.eps": ["0", "nan"],
            "optimizer.betas": ["[0.9,1.0]", "[-1,0]"],
            "optimizer.weight_decay": ["-1", "inf"],
            "trainer.num_nodes": ["0"],
            "trainer.max_epochs": ["-5", "x", "1.5"],
            "trainer.max_steps": ["-2"],
            "trainer.gradient_clip_val": ["-1", "0", "nan"],
            "trainer.accumulate_grad_batches": ["0", "-1"],
            "trainer.val_check_interval": ["0", "0.0", "1.5", "-1"],
            "trainer.check_val_every_n_epoch": ["0", "-1"],
            "trainer.num_sanity_val_steps": ["-5"],
            "trainer.log_every_n_steps": ["0", "-1"],
            "+trainer.limit_train_batches": ["-1", "1.5"],
            "+trainer.limit_test_batches": ["0", "0.0"],
            "+trainer.overfit_batches": ["1", "0.5"],
        }.items()
        for value in values
    ),
    (
        "trainer.precision=17",
        "`trainer.precision` must be one of '32-true', 'bf16-mixed', '16-mixed',",
    ),
    (
        "logger.wandb.tags=[1]",
        "`logger.wandb.tags` must be a list, each value a string, but is [1]",
    ),
    ("logger.wandb.mode=of", "`logger.wandb.mode` must be one of 'offline', 'online', 'disabled',"),
    # a value that is missing or cannot be had
    ("data=files", "`data.train` has no value: give one, as data.train=VALUE"),
    ("optimizer.lr=${modle.x}", "`optimizer.lr` cannot be resolved: Interpolation key 'modle.x'"),
    ("model._target_=zhen.modle.T", "`model._target_`: 'zhen.modle.T' cannot be imported: "),
]


@pytest.mark.parametrize(("override", "message"), BAD, ids=[override for override, _ in BAD])
def test_a_bad_override_is_one_line_and_makes_nothing(
    override: str, message: str, run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        run(*override.split(" "))
    printed = capsys.readouterr()
    assert stop.value.code == 1
    assert printed.err.count("\n") == 1 and printed.err.startswith(f"error: {message}")
    assert printed.out == "" and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config_name", "override", "message"),
    [
        ("evaluate", "chkpt=x", "`chkpt` is not a key; did you mean `ckpt`?"),
        (
            "evaluate",
            "device=tpu",
            "`device` must be auto, cpu, gpu or mps, but is 'tpu'",
        ),
        ("evaluate", "test=[1]", "`test` must be paths, or paths by name, or null, but is [1]"),
        ("translate", "batch.tokens=0", "`batch.tokens` must be an int, at least 1, but is 0"),
        ("translate", "inptu=x", "`inptu` is not a key; did you mean `input`?"),
        ("translate", "decode.num_beams=x", "`decode.num_beams` must be an int, but is 'x'"),
    ],
)
def test_bad_overrides_of_the_other_commands(
    config_name: str, override: str, message: str, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(override, config_name=config_name)
    assert f"error: {message}" in capsys.readouterr().err


AWKWARD = {
    "a path": "/data/my runs/x=1, 2.tsv",
    "Chinese": "数据/训练集。tsv",
    "quotes": """it's "quoted" """,
    "a dollar": "a$b $(c) #d",
    "brackets": "[a]{b:c}",
    "a backslash": "a\\b",
}


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD.keys())
def test_an_awkward_value_arrives_as_it_was_quoted(value: str, run: Any) -> None:
    quoted = value.replace('"', '\\"')
    (seen,) = run("data=files", f'data.train="{quoted}"', "data.val=b", "data.test=c")
    assert seen["cfg"].data.train == value


def test_zero_and_interpolations_are_honoured(run: Any) -> None:
    (seen,) = run("seed=0", "data.max_length=${model.d_model}", "model=small")
    assert seen["cfg"].seed == 0
    assert seen["cfg"].data.max_length == 256


def test_a_command_gets_a_directory_of_its_own(run: Any) -> None:
    """Even when two start in the same second."""
    keep = []

    def work(cfg: DictConfig) -> None:
        (Path(cfg.paths.run_dir) / "log.txt").touch()
        keep.append(cfg.paths.run_dir)

    run(command=work)
    run(command=work)
    assert len(set(keep)) == 2
    assert "ZHEN_RUN_ID" not in os.environ


def test_other_ranks_and_a_requeued_job_get_the_same_directory(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("LOCAL_RANK", "1")
    (first,), (again,) = run(), run()
    assert first["run_dir"] == again["run_dir"] and first["run_dir"].endswith("/4711")
    assert first["run_id"] == "4711"


def test_a_failure_leaves_no_empty_directory(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(cfg: DictConfig) -> None:
        raise UserError("no pairs in a.tsv\nat all")

    with pytest.raises(SystemExit):
        run(command=fail)
    assert capsys.readouterr().err == "error: no pairs in a.tsv; at all\n"
    assert not list(tmp_path.glob("runs/*"))


def test_an_unwritable_place_for_runs(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        run(f"paths.runs={tmp_path}/file")
    assert "error: cannot make the run directory" in capsys.readouterr().err


def test_the_command_sees_no_hydra(run: Any) -> None:
    """Lightning starts other ranks in a way of its own where it sees Hydra (H1, H2)."""
    (seen,) = run("seed=3")
    assert seen["hydra"] is False and seen["full_error"] is None
    assert seen["argv"][-1] == "seed=3" and seen["overrides"][-1] == "seed=3"


@pytest.mark.parametrize("option", ["-m", "--multirun"])
def test_several_jobs_in_one_process_are_refused(
    run: Any, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """Ranks of one would take themselves for those of the next, and a sweep for them all (H1)."""
    done = []
    with pytest.raises(SystemExit):
        run(option, "seed=0,1", command=lambda cfg: done.append(cfg))
    assert not done and "`make sweep`" in capsys.readouterr().err


def test_a_bug_keeps_its_traceback(run: Any) -> None:
    def bug(cfg: DictConfig) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(command=bug)


def test_an_interrupt_exits_with_130(run: Any) -> None:
    def interrupted(cfg: DictConfig) -> None:
        raise KeyboardInterrupt

    def as_lightning_does(cfg: DictConfig) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            sys.exit(1)

    for command in (interrupted, as_lightning_does):
        with pytest.raises(SystemExit) as stop:
            run(command=command)
        assert stop.value.code == 130


def test_the_traceback_when_asked_for(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(UserError, match="modle"):
        run("modle=tiny")


def test_a_package_without_its_repository(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compose_module, "CONFIGS", Path("/nowhere/configs"))
    with pytest.raises(SystemExit):
        run()
    assert "error: no configuration directory /nowhere/configs" in capsys.readouterr().err


def test_build_names_the_node_that_is_refused() -> None:
    node = OmegaConf.create({"_target_": f"{__name__}.Positive", "value": -1})
    with pytest.raises(UserError, match=r"^`model`: `value` must be positive$"):
        build(node, key="model")
    outer = OmegaConf.create({"data": {"_target_": "builtins.dict", "batch": node}})
    with pytest.raises(UserError, match=r"^`data\.batch`: `value` must be positive$"):
        build(outer.data, key="data")


def test_build_passes_objects_untouched_and_plain_containers() -> None:
    node = OmegaConf.create({"_target_": "builtins.dict", "values": [1, {"a": 2}]})
    given = object()
    built = build(node, key="x", given=given)
    assert built["given"] is given
    assert type(built["values"]) is list and type(built["values"][1]) is dict


def test_build_of_a_partial_reports_errors_when_called() -> None:
    node = OmegaConf.create({"_target_": f"{__name__}.Positive", "_partial_": True})
    make = build(node, key="optimizer")
    assert make(value=2).value == 2
    with pytest.raises(UserError, match=r"^`optimizer`: "):
        make(value=-2)


class Positive:
    def __init__(self, value: int) -> None:
        if value < 0:
            raise ValueError("`value` must be positive")
        self.value = value


def zhen(*arguments: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], float]:
    line = [sys.executable, "-m", *arguments]
    started = time.monotonic()
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    done = subprocess.run(line, capture_output=True, text=True, env=variables, cwd=ROOT)
    return done, time.monotonic() - started


@pytest.mark.parametrize("command", COMMANDS)
def test_help_does_not_wait_for_torch(command: str) -> None:
    done, _ = zhen(f"zhen.{command}", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0 and f"zhen {command}: settings are given as" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    for heavy in ("torch", "lightning", "datasets", "wandb", "matplotlib", "plotly"):
        assert heavy not in loaded


@pytest.mark.parametrize(
    ("command", "typo", "key"),
    [
        ("train", "decoed", "decode"),
        ("sweep", "decoed", "decode"),
        ("evaluate", "decoed", "decode"),
        ("translate", "decoed", "decode"),
        ("attention", "decoed", "decode"),
        ("compare", "wher", "where"),
        ("data_check", "data.valsize", "data.val_size"),
        ("submit", "decoed", "decode"),
    ],
)
def test_a_mistyped_key_ends_a_real_process_at_once(command: str, typo: str, key: str) -> None:
    done, seconds = zhen(f"zhen.{command}", f"{typo}=greedy")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (
        f"error: `{typo}` is not a key; did you mean `{key}`?"
        f" A key that is meant to be new gets a plus: '+{typo}=greedy'\n"
    )
    assert seconds < 10
