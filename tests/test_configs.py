"""Claim 8, first half: every file of `configs/` composes, checks and instantiates."""

import re
from pathlib import Path

import pytest
import torch
import yaml
from omegaconf import OmegaConf

from zhen.compose import CONFIGS, compose, groups
from zhen.config import build, build_all, checked
from zhen.errors import UserError
from zhen.runs.sweeps import Plan
from zhen.schema import LIMITS, check

FILES = sorted(CONFIGS.rglob("*.yaml"), key=str)
COMMANDS = ["train", "sweep", "submit", "evaluate", "translate", "attention", "data_check"]
CHOICES = [
    f"{group}={option}"
    for group, options in groups("train").items()
    for option in options
    if group not in ("hydra", "paths")
]
PAIRS = ["data.train=a.tsv", "data.val=b.tsv", "data.test=c.tsv"]


def name(path: Path) -> str:
    return str(path.relative_to(CONFIGS))


def overrides(choice: str) -> list[str]:
    needs = {
        "data=files": PAIRS,
        "experiment=tatoeba": PAIRS,
        "data=hub": ["data.reader.name=OWNER/NAME"],
    }
    return [choice, *needs.get(choice, [])]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 30


@pytest.mark.parametrize("path", FILES, ids=name)
def test_each_key_has_a_comment(path: Path) -> None:
    before = ""
    for line in path.read_text().splitlines():
        key = re.match(r"\s*(\w+):\s*(\S*)", line)
        value_follows = key is not None and key[2] and not key[2].startswith("#")
        if value_follows and key[1] not in ("_target_", "_partial_", "defaults"):
            assert "#" in line or before.lstrip().startswith("#"), line
        before = line


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_begins_by_saying_what_it_is(path: Path) -> None:
    first = next(line for line in path.read_text().splitlines() if not line.startswith("# @"))
    assert first.startswith("# ")
    if path.parent.name in ("experiment", "debug"):
        assert first.startswith("# python -m zhen.train")


@pytest.mark.parametrize("path", FILES, ids=name)
def test_each_number_of_a_library_class_has_its_limits(path: Path) -> None:
    for node in find_nodes(yaml.safe_load(path.read_text())):
        if node["_target_"].startswith("zhen."):
            continue
        group = path.parent.name
        prefix = f"{group}.{path.stem}" if group == "callbacks" else group
        for key, value in node.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and key != "devices":
                assert f"{prefix}.{key}" in LIMITS, key  # devices: Lightning checks them


def find_nodes(value: object) -> list[dict]:
    """The mappings with `_target_`, at any depth."""
    if not isinstance(value, dict):
        return []
    own = [value] if "_target_" in value else []
    return own + [node for inner in value.values() for node in find_nodes(inner)]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_key_is_given_twice(path: Path) -> None:
    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
            names = [self.construct_object(key) for key, _ in node.value]
            assert len(names) == len(set(names)), names
            return super().construct_mapping(node, deep)

    Loader.add_constructor(
        yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG,
        lambda loader, node: loader.construct_mapping(node),
    )
    yaml.load(path.read_text(), Loader)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_composes_and_passes_its_check(command: str) -> None:
    check(compose(command))


@pytest.mark.parametrize("command", ["evaluate", "translate", "attention"])
@pytest.mark.parametrize("option", groups("train")["decode"])
def test_decoding_is_chosen_alike_everywhere(command: str, option: str) -> None:
    check(cfg := compose(command, [f"decode={option}"]))
    assert cfg.decode == compose("train", [f"decode={option}"]).decode


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_composes_checks_and_instantiates(choice: str, tmp_path: Path) -> None:
    cfg = compose("train", [*overrides(choice), f"paths.runs={tmp_path}"])
    check(cfg)
    assert cfg.paths.run_dir.startswith(f"{tmp_path}/{cfg.name}/")
    if cfg.trainer.accelerator == "gpu" and not torch.cuda.is_available():
        cfg.trainer.update(accelerator="cpu", devices=1)
    tokenizer = build(cfg.tokenizer, key="tokenizer")
    build(cfg.data, key="data", tokenizer=tokenizer, seed=0)
    with torch.device("meta"):  # shapes alone: `big` takes no memory
        model = build(cfg.model, key="model", vocab_size=100, pad_id=0)
    build(cfg.optimizer, key="optimizer")(model.parameters())
    build(cfg.scheduler, key="scheduler")
    build(cfg.decode, key="decode")
    build_all(cfg.callbacks, key="callbacks")
    build(cfg.trainer, key="trainer", logger=False)


@pytest.mark.parametrize("option", groups("sweep")["sweep"])
def test_a_kind_of_sweep_proposes_what_training_takes(option: str, tmp_path: Path) -> None:
    cfg = checked("sweep", [f"sweep={option}"])
    method = build(cfg.sweep, key="sweep")
    jobs = method.samples(["seed=1,2", f"paths.runs={tmp_path}"])
    assert Plan.check(jobs).folder == tmp_path / "phrasebook" and len(jobs) > 1


def test_the_paper_sizes() -> None:
    """Vaswani et al. 2017, table 3 and section 5.3."""
    fields = ["d_model", "num_heads", "d_ff", "num_encoder_layers", "num_decoder_layers", "dropout"]
    base, big = (compose("train", [f"model={size}"]).model for size in ("base", "big"))
    assert [base[each] for each in fields] == [512, 8, 2048, 6, 6, 0.1]
    assert [big[each] for each in fields] == [1024, 16, 4096, 6, 6, 0.3]
    assert base.norm == big.norm == "post" and base.activation == big.activation == "relu"
    adam = compose("train", ["optimizer=adam"]).optimizer
    assert [*adam.betas, adam.eps] == [0.9, 0.98, 1e-9]
    assert pytest.approx(6.99e-4, abs=5e-7) == (512 * 4000) ** -0.5


def test_one_test_file_may_replace_the_parts() -> None:
    check(cfg := compose("train", ["data.test=mine.tsv"]))
    assert cfg.data.test == "mine.tsv"


def test_data_sets_of_the_hub_say_which_and_what_is_taken_from_train() -> None:
    opus = compose("train", ["data=opus100"]).data
    assert (opus.train, opus.val, opus.test) == ("train", "validation", "test")
    assert opus.reader == {
        "_target_": "zhen.data.Hub",
        "name": "Helsinki-NLP/opus-100",
        "config": "en-zh",
        "revision": None,
        "columns": None,
    }
    news = compose("train", ["data=news_commentary", "data/clean=usual"]).data
    assert (news.reader.name, news.reader.config) == ("Helsinki-NLP/news_commentary", "en-zh")
    assert (news.train, news.val, news.test) == ("train", None, None)
    assert news.val_size == news.test_size == 2000
    assert news.clean.duplicates


def test_a_checkpoint_is_scored_on_pairs_of_any_kind() -> None:
    check(compose("evaluate", ["test=a.pairs", "reader.format=tsv", "reader.columns=[2,1]"]))
    cfg = compose("evaluate", ["test=test", "reader=hub", "reader.name=OWNER/NAME"])
    check(cfg)
    assert cfg.reader["_target_"] == "zhen.data.Hub" and "format" not in cfg.reader


READER = [
    ("data=files", "format=xls", "`data.reader.format` must be one of 'tsv', 'csv', 'jsonl', "),
    ("data=files", "format=jsnl", "did you mean `jsonl`"),
    ("data=files", "columns=[0,2.5]", "`data.reader.columns` must be a list, each value an int or"),
    ("data=files", "columns=zh", "`data.reader.columns` must be a list, each value an int or a"),
    ("data=files", "header=1", "`data.reader.header` must be true or false or null, but is 1"),
    ("data=files", "+name=x", "`data.reader.name` is not a parameter of zhen.data.Files"),
    ("data=files", "+colums=[0,1]", "did you mean `data.reader.columns`?"),
    ("data=hub", "columns=[0,1]", "`data.reader.columns` must be a list, each value a string or"),
    ("data=hub", "revision=7", "as text it is written data.reader.revision='\"7\"'"),
    (
        "data=hub",
        "config=x",
        "`data.reader.name` has no value: give one, as data.reader.name=VALUE",
    ),
]


@pytest.mark.parametrize(("choice", "override", "message"), READER)
def test_options_of_a_reader_are_checked(choice: str, override: str, message: str) -> None:
    more = [] if override == "config=x" else overrides(choice)[1:]
    plus, name = ("+", override[1:]) if override[0] == "+" else ("", override)
    with pytest.raises(UserError) as refused:
        check(compose("train", [choice, *more, f"{plus}data.reader.{name}"]))
    assert message in str(refused.value)


def test_relative_directories_lie_below_the_repository(tmp_path: Path) -> None:
    cfg = compose("train", [f"paths.runs={tmp_path}"])
    assert Path(cfg.paths.cache) == CONFIGS.parent / ".cache" == Path(cfg.data.cache_dir)
    assert Path(cfg.paths.runs) == tmp_path
    assert Path(cfg.data.train).parent == CONFIGS.parent / "data" / "phrasebook"


def test_leaving_callbacks_and_loggers_out() -> None:
    cfg = compose("train", ["~callbacks.samples", "callbacks.progress=null", "logger=csv"])
    check(cfg)
    assert len(build_all(cfg.callbacks, key="callbacks")) == 2  # averages, checkpoint
    assert list(OmegaConf.to_container(cfg.logger)) == ["csv"]
