"""Data sets of the hub: a directory in its layout, a stand-in that serves one, and the cache.

The hub itself is never asked.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import Maker
from tests.data.stand_in_hub import serve
from tests.data.written import faults_of, lines_of, nested_table, pairs_of, table

from zhen.data import Hub
from zhen.data.hub import HubSource
from zhen.data.source import CHUNK
from zhen.errors import UserError

PAIRS = [(f"茶{i}\u2028", f"tea {i}\n") for i in range(7)]
NAME = "Helsinki-NLP/opus-100"


def make_repository(folder: Path, configs: dict[str, dict[str, pa.Table]]) -> Path:
    """Lay out a data set as the hub does: a card that says which files a split has, and these."""
    card = ["---", "configs:"]
    for config, splits in configs.items():
        card += [f"- config_name: {config}", "  data_files:"]
        (folder / config).mkdir(parents=True)
        for split, content in splits.items():
            card += [f"  - split: {split}", f"    path: {config}/{split}-*"]
            half = len(content) // 2
            for i, part in enumerate((content.slice(0, half), content.slice(half))):
                pq.write_table(part, folder / config / f"{split}-0000{i}-of-00002.parquet")
    (folder / "README.md").write_text("\n".join([*card, "---", "# Card", ""]))
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def repository(tmp_path: Path) -> str:
    splits = {
        "train": nested_table(PAIRS),
        "validation": nested_table(PAIRS[:2]),
        "test": nested_table(PAIRS[5:]),
    }
    flat = {"train": table(PAIRS).rename_columns(["chinese", "english"])}
    configs = {"en-zh": splits, "flat": flat}
    return str(make_repository(tmp_path / "opus-100", configs))


def opened(
    name: str, split: object, *, source_lang: str = "zh", languages: Sequence[str] = ("zh", "en"),
    key: str = "data.train", **options: Any,
) -> HubSource:  # fmt: skip
    return Hub(name=name, **options).open(
        split, key=key, languages=languages, source_lang=source_lang
    )


def test_training_reads_a_repository(repository: str, make_data: Maker, tmp_path: Path) -> None:
    reader = Hub(name=repository, config="en-zh")
    data = make_data(train="train", val=None, val_size=2, test="test", reader=reader)
    pairs = {
        name: sorted(zip(data.split(name).sources, data.split(name).targets, strict=True))
        for name in ("train", "val", "test")
    }
    assert sorted(pairs["train"] + pairs["val"]) == sorted(PAIRS) and len(pairs["val"]) == 2
    assert pairs["test"] == PAIRS[5:]
    assert sum(len(batch.indices) for batch in data.train_dataloader()) == 5


def test_splits_are_read_by_their_names(repository: str) -> None:
    reader = Hub(name=repository, config="en-zh")
    for split, pairs in (("train", PAIRS), ("validation", PAIRS[:2]), ("test", PAIRS[5:])):
        source = reader.open(split, key="data.x", languages=["zh", "en"], source_lang="zh")
        found = list(source.chunks())
        assert (pairs_of(found), faults_of(found)) == (pairs, [])
        assert lines_of(found) == list(range(1, len(pairs) + 1))
        assert source.name == found[0].file == f"{repository}/en-zh/{split}"


def test_the_other_direction_columns_by_name_and_a_part(repository: str) -> None:
    back = opened(repository, "train", source_lang="en", config="en-zh")
    assert pairs_of(list(back.chunks())) == [(en, zh) for zh, en in PAIRS]
    part = opened(repository, "train[2:4]", config="flat", columns=["chinese", "english"])
    assert pairs_of(list(part.chunks())) == PAIRS[2:4]


def test_a_large_split_comes_in_chunks(tmp_path: Path) -> None:
    pairs = [(f"茶{i}", f"tea {i}") for i in range(2 * CHUNK + 3)]
    folder = make_repository(tmp_path / "large", {"default": {"train": nested_table(pairs)}})
    found = list(opened(str(folder), "train").chunks())
    assert [len(chunk.lines) for chunk in found] == [CHUNK, CHUNK, 3]
    assert pairs_of(found) == pairs


def test_a_null_is_a_fault_of_its_row(tmp_path: Path) -> None:
    rows = [{"zh": "茶", "en": "tea"}, {"zh": "花", "en": None}, None]
    content = pa.table({"translation": rows})
    folder = make_repository(tmp_path / "nulls", {"default": {"train": content}})
    found = list(opened(str(folder), "train").chunks())
    assert pairs_of(found) == [("茶", "tea")]
    assert [str(fault) for fault in faults_of(found)] == [
        f"{folder}/train:2: 'en' must be a string, but is null; write the sentence",
        f"{folder}/train:3: 'zh' must be a string, but is null; write the sentence",
    ]


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        list(opened(*arguments, **options).chunks())
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("split", "options", "message"),
    [
        (
            "train",
            {"config": "en-zz"},
            "`data.reader.config` must be one of ['en-zh', 'flat'], the configurations of {name},"
            " but is 'en-zz'; did you mean `en-zh`?",
        ),
        (
            "train",
            {},
            "`data.reader.config` must be one of ['en-zh', 'flat'], the configurations of {name},"
            " but is None",
        ),
        (
            "tran",
            {"config": "en-zh"},
            "`data.train` must be one of ['train', 'validation', 'test'], the splits of {name}, or"
            " a part of one, as train[:1000], but is 'tran'; did you mean `train`?",
        ),
        (
            "train[:x]",
            {"config": "en-zh"},
            "`data.train` must be one of ['train', 'validation', 'test'], the splits of {name}, or"
            " a part of one, as train[:1000], but is 'train[:x]' (Unrecognized instruction format:"
            " train[:x])",
        ),
        (
            "train[:0]",
            {"config": "en-zh"},
            "`data.train` must be one of ['train', 'validation', 'test'], the splits of {name}, or"
            " a part of one, as train[:1000], but is 'train[:0]' (Instruction \"train[:0]\""
            " corresponds to no data!)",
        ),
        (3, {"config": "en-zh"}, "`data.train` must name a split of {name}, but is 3"),
        ("", {"config": "en-zh"}, "`data.train` must name a split of {name}, but is ''"),
        (
            "train",
            {"config": "flat"},
            "data.train: {name} has no column 'zh'; there is 'chinese', 'english'; name the two"
            " with data.reader.columns",
        ),
        (
            "train",
            {"config": "en-zh", "languages": ["zh", "de"]},
            "data.train: {name} has no translation into 'de'; there is 'en', 'zh'; name the two"
            " with data.reader.columns",
        ),
    ],
    ids=str,
)
def test_what_is_not_there(repository: str, split: Any, options: Any, message: str) -> None:
    assert refused(repository, split, **options) == message.format(name=repository)


def test_a_directory_that_is_not_there_or_empty(tmp_path: Path) -> None:
    none, empty = tmp_path / "none", tmp_path / "empty"
    empty.mkdir()
    for folder in (none, empty):
        assert refused(str(folder), "train").startswith(
            f"`data.reader.name`: no data set '{folder}' ("
        )
    assert refused(str(none), "x", key="test").startswith("`reader.name`: no data set ")


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "bad", {"default": {"train": nested_table(PAIRS)}})
    path = folder / "default" / "train-00000-of-00002.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    assert refused(str(folder), "train").startswith(f"`data.reader.name`: {folder}: ")


def test_columns_must_be_two() -> None:
    with pytest.raises(ValueError, match="`columns` must be two different names, but is"):
        Hub(name="x", columns=["zh"])


def test_the_fingerprint_is_that_of_the_content(
    tmp_path: Path, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = opened(repository, "train", config="en-zh").fingerprint()
    assert opened(repository, "train", config="en-zh").fingerprint() == same

    for path in Path(repository).rglob("*.parquet"):
        os.utime(path, (1, 1))
    assert opened(repository, "train", config="en-zh").fingerprint() == same
    copy = shutil.copytree(repository, tmp_path / "copy" / "opus-100")
    monkeypatch.chdir(copy.parent)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "another cache")
    first = opened("opus-100", "train", config="en-zh").fingerprint()
    monkeypatch.chdir(Path(repository).parent)
    assert opened("opus-100", "train", config="en-zh").fingerprint() == first

    others = [
        opened(repository, "test", config="en-zh"),
        opened(repository, "train[:6]", config="en-zh"),
        opened(repository, "train", config="en-zh", source_lang="en"),
        opened(repository, "train", config="en-zh", revision="v1"),
    ]
    prints = {other.fingerprint() for other in others}
    assert len(prints) == len(others) and same not in prints


@pytest.mark.parametrize("keep_time", [True, False])
def test_a_changed_file_of_a_directory_is_seen(repository: str, keep_time: bool) -> None:
    """`datasets` alone gives the old pairs."""
    path = Path(repository) / "en-zh" / "train-00000-of-00002.parquet"
    before, time = opened(repository, "train", config="en-zh"), path.stat().st_mtime
    pq.write_table(nested_table([("水", "tea 0\n"), *PAIRS[1:3]]), path)
    if keep_time:
        os.utime(path, (time, time))
    after = opened(repository, "train", config="en-zh")
    assert pairs_of(list(after.chunks())) == [("水", "tea 0\n"), *PAIRS[1:]]
    assert after.fingerprint() != before.fingerprint()
    assert pairs_of(list(before.chunks())) == PAIRS


READ = """
import json, sys
from zhen.data.hub import Hub
from zhen.errors import UserError
for name, config, revision in json.loads(sys.argv[1]):
    try:
        reader = Hub(name=name, config=config, revision=revision)
        source = reader.open("train", key="data.train", languages=["zh", "en"], source_lang="zh")
        pairs = [pair for c in source.chunks() for pair in zip(c.sources, c.targets)]
        print(json.dumps(pairs))
    except UserError as error:
        print(json.dumps(str(error)))
"""
COMMITS = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"


ONLINE: list[tuple[tuple[str, str | None, str | None], Any]] = [
    ((NAME, "en-zh", None), PAIRS[1:3]),
    ((NAME, "en-zh", "main"), PAIRS[1:3]),
    ((NAME, "en-zh", COMMITS[1]), PAIRS[1:3]),
    ((NAME, "en-zh", "v1"), PAIRS[:2]),
    (
        (NAME, "en-zh", "v2"),
        "`data.reader.name`: no data set '{name}' (Revision 'v2' doesn't exist for dataset '{name}'"
        " on the Hub.)",
    ),
    (
        (NAME, "de-zh", None),
        "`data.reader.config` must be one of ['en-zh', 'fr-zh'], the configurations of {name}, but"
        " is 'de-zh'; did you mean `en-zh`?",
    ),
    (
        ("Helsinki-NLP/opus-101", "en-zh", None),
        "`data.reader.name`: no data set 'Helsinki-NLP/opus-101' (Dataset 'Helsinki-NLP/opus-101'"
        " doesn't exist on the Hub or cannot be accessed.)",
    ),
    (
        ("opus 100", "en-zh", None),
        "`data.reader.name`: opus 100: Repo id must use alphanumeric chars, '-', '_' or '.'. The"
        " name cannot start or end with '-' or '.' and the maximum length is 96: 'opus 100'.",
    ),
]
OFFLINE: list[tuple[tuple[str, str | None, str | None], Any]] = [
    ((NAME, "en-zh", None), PAIRS[1:3]),  # the newest known, though v1 was loaded last
    ((NAME, None, None), PAIRS[1:3]),
    ((NAME, "en-zh", "main"), PAIRS[1:3]),
    ((NAME, "en-zh", "v1"), PAIRS[:2]),
    ((NAME, "en-zh", COMMITS[0]), PAIRS[:2]),
    ((NAME, "en-zh", COMMITS[1]), PAIRS[1:3]),
    (
        (NAME, "en-zh", "v2"),
        "`data.reader.revision`: the hub cannot be reached, and of {name} {cache} has revision"
        f" {COMMITS[0]}, but not v2",
    ),
    (
        (NAME, "de-zh", None),
        "`data.reader.config` must be one of ['en-zh'], the configurations of {name}, but is"
        " 'de-zh'; did you mean `en-zh`?",
    ),
    (
        ("Helsinki-NLP/opus-101", "en-zh", None),
        "`data.reader.name`: the hub cannot be reached for Helsinki-NLP/opus-101, and {cache}"
        " has no copy; load it once on a machine with a network, or give a directory",
    ),
]


@pytest.mark.slow
def test_the_hub_gives_what_is_asked_for_and_later_the_cache_does(tmp_path: Path) -> None:
    commits = {
        commit: make_repository(
            tmp_path / commit,
            {
                "en-zh": {"train": nested_table(PAIRS[number : number + 2])},
                "fr-zh": {"train": nested_table(PAIRS)},
            },
        )
        for number, commit in enumerate(COMMITS)
    }
    home = tmp_path / "home"
    environment = {**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    for name in ("HF_DATASETS_CACHE", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"):
        environment.pop(name, None)
    with serve(NAME, commits, {"v1": COMMITS[0], "main": COMMITS[1]}) as address:
        environment["HF_ENDPOINT"] = address
        ask(ONLINE, environment, home)
    ask(OFFLINE, {**environment, "HF_HUB_OFFLINE": "1"}, home)


def ask(cases: list[Any], environment: dict[str, str], home: Path) -> None:
    """Load each data set in another process, since `datasets` reads its settings once."""
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps([wanted for wanted, _ in cases])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for (wanted, expected), answer in zip(cases, answers, strict=True):
        if isinstance(expected, str):
            assert answer == expected.format(name=NAME, cache=home / "datasets"), wanted
        else:
            assert [tuple(pair) for pair in answer] == expected, wanted
