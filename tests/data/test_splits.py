"""Which splits there are, and what is told of what is missing or said twice."""

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Maker

from zhen.data import holdout
from zhen.errors import UserError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_size": 5}, "`val_size` takes pairs from `train`, but `val` is given: leave one"),
        ({"test_size": 5}, "`test_size` takes pairs from `train`, but `test` is given: leave one"),
        (
            {"train": None, "val": None, "val_size": 5},
            "`val_size` takes pairs from `train`, which is not given",
        ),
        *(
            (
                {"val": None, "val_size": size},
                "`val_size` must be an int of at least 1 or a share above 0 and below 1, but is"
                f" {size}",
            )
            for size in (0, -1, 0.0, 1.0, 1.5)
        ),
    ],
)
def test_refuses(make_data: Maker, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        make_data(**changes)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("name", "missing"),
    [("train", ["train"]), ("val", ["val", "train"]), ("test", ["test", "train"])],
)
def test_a_split_that_was_not_given(make_data: Maker, name: str, missing: list[str]) -> None:
    with pytest.raises(UserError) as refused:
        make_data(**dict.fromkeys(missing)).read(name)
    assert str(refused.value) == f"`data.{name}` names no pairs: give data.{name}"


def test_a_split_that_was_not_given_is_a_twentieth_of_train(
    make_data: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_data(val=None, test=None)
    assert [len(data.read(name)) for name in ("train", "val", "test")] == [90, 5, 5]
    monkeypatch.setattr(holdout, "MOST", 3)
    data = make_data(val=None, cache_dir=str(tmp_path / "other"))
    assert [len(data.read(name)) for name in ("train", "val", "test")] == [97, 3, 10]


def test_val_and_test_can_be_taken_from_train(make_data: Maker, tsv: dict[str, Path]) -> None:
    data = make_data(val=None, val_size=9, test=None, test_size=0.2)
    names = ["train", "val", *data.test_parts]
    assert names == ["train", "val", "test"]
    texts = {name: {*data.read(name).sources} for name in names}
    assert {name: len(part) for name, part in texts.items()} == {"train": 71, "val": 9, "test": 20}
    whole = tsv["train"].read_text(encoding="utf-8")
    assert set.union(*texts.values()) == {line.split("\t")[0] for line in whole.splitlines()}
    assert len({*data.fingerprint.values()}) == 3
    assert data.split("test").where(0).startswith(f"{tsv['train']}:")


def test_the_seed_changes_no_split(make_data: Maker) -> None:
    one, other = (make_data(val=None, val_size=9, seed=seed) for seed in (0, 1))
    assert one.read("val").sources == other.read("val").sources


def test_what_is_held_out_teaches_the_vocabulary_nothing(
    make_data: Maker, tmp_path: Path, tsv: dict[str, Path]
) -> None:
    data = make_data(val=None, val_size=9)
    rest = tmp_path / "rest.tsv"
    train = data.read("train")
    lines = [f"{one}\t{other}\n" for one, other in zip(train.sources, train.targets, strict=True)]
    rest.write_text("".join(lines), encoding="utf-8")
    assert data.tokenizer.to_json() == make_data(train=str(rest)).tokenizer.to_json()
    assert data.fingerprint["train"] == make_data(train=str(rest)).read("train").fingerprint


def test_a_mapping_from_the_languages_is_one_test_set(make_data: Maker) -> None:
    assert make_data(test={"zh": "a", "en": "b"}).test_parts == ["test"]
    assert make_data(test={"zh": "a", "fr": "b"}).test_parts == ["zh", "fr"]
    assert make_data(test={1: "a"}).test_parts == ["1"]
