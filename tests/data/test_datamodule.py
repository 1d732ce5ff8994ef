"""The data module: its checks, its cache keys, its loaders."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning as L
import pytest
import torch
from tests.conftest import Maker

from zhen.data import Batch, BatchOptions, CleanOptions, TokenizerOptions
from zhen.data.batching import Part
from zhen.errors import UserError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"languages": ["zh"]}, "`languages` must be two different languages, but is ['zh']"),
        ({"languages": ["zh", "zh"]}, "`languages` must be two different languages, but is"),
        ({"source_lang": "de"}, "`source_lang` must be one of ['zh', 'en'], but is 'de'"),
        ({"target_lang": "zh"}, "`target_lang` must be 'en', but is 'zh'"),
        ({"max_length": 0}, "`max_length` must be at least 1, but is 0"),
        ({"num_workers": -1}, "`num_workers` must be at least 0, but is -1"),
        (
            {"max_length": 128},
            "`batch.tokens` must be at least 258, two sides of `max_length` (128) pieces with"
            " their ends, but is 256",
        ),
        ({"test": {}}, "`test` must name at least one file, but is empty"),
        ({"test": {"a/b": "x"}}, "a part of `test` must be named with letters, digits, `.`, `_`"),
        ({"test": {"train": "x"}}, "neither train nor val, but is 'train'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refuses(make_data: Maker, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        make_data(**changes)
    assert message in str(refused.value)


def test_batch_options_refuse_less_than_one_token() -> None:
    with pytest.raises(ValueError, match="`eval_tokens` must be at least 1, but is 0"):
        BatchOptions(tokens=1, eval_tokens=0)


def test_direction_is_data(make_data: Maker) -> None:
    forth, back = make_data(), make_data(source_lang="en")
    assert (forth.source_lang, forth.target_lang) == ("zh", "en")
    assert (back.source_lang, back.target_lang) == ("en", "zh")
    assert back.split("val").sources == forth.split("val").targets
    assert back.split("val").targets == forth.split("val").sources


def cached(cache: Path, kind: str) -> set[str]:
    folder = cache / kind
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def test_same_inputs_same_cache_and_any_change_another(
    make_data: Maker, tsv: dict[str, Path], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"

    def new(split: str = "val", **changes: Any) -> int:
        """Entries of pairs that encoding a split adds."""
        before = cached(cache, "pairs") if cache.exists() else set()
        make_data(**changes).split(split)
        return len(cached(cache, "pairs") - before)

    assert new() == 1
    assert new() == 0
    # What does not decide the pieces of a validation pair.
    assert new(seed=5, batch=BatchOptions(tokens=99, eval_tokens=99), max_length=9) == 0
    copy = tmp_path / "elsewhere.tsv"
    copy.write_bytes(tsv["val"].read_bytes().replace(b"\n", b"\r\n"))
    assert new(val=str(copy)) == 0  # the pairs count, not the name or the line ends
    copy.write_bytes(tsv["val"].read_bytes().replace(b"tea", b"Tea", 1))
    assert new(val=str(copy)) == 1
    assert new(source_lang="en") == 1
    assert new(tokenizer=TokenizerOptions(vocab_size=320)) == 1
    assert new(tokenizer=TokenizerOptions(vocab_size=400, min_frequency=9)) == 1
    assert new("train") == 1
    assert new("train", seed=5) == 0
    assert new("train", max_length=9) == 1
    assert new("train", clean=CleanOptions(empty=True)) == 1


def test_sides_the_wrong_way_round_are_asked_about(
    make_data: Maker, tsv: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    make_data().split("train")
    assert "wrong way round" not in caplog.text
    data = make_data(languages=["en", "zh"], source_lang="zh")
    data.split("train")
    assert (
        "data.train: of 100 pairs that were looked at, 100 are not in the scripts of zh and en: are"
        " the two sides the wrong way round? data.languages names them in the order of the columns"
    ) in caplog.messages


def test_dropout_needs_merges(make_data: Maker) -> None:
    options = TokenizerOptions(vocab_size=290, dropout=0.1, byte_fallback=True)
    with pytest.raises(UserError, match=r"^`tokenizer.dropout` leaves out merges"):
        _ = make_data(tokenizer=options).tokenizer


def test_validation_and_test_are_never_cleaned(make_data: Maker, tmp_path: Path) -> None:
    file = tmp_path / "odd.tsv"
    lines = ["茶\ttea", "茶\ttea", "tea\ttea", "茶\u200b\ttea", "我喜欢茶" * 20 + "\tI like tea"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    clean = CleanOptions(identical=True, controls=True, duplicates=True, max_words=9)
    data = make_data(val=str(file), test=str(file), clean=clean)
    assert len(data.split("val")) == len(data.split("test")) == len(lines)
    assert len(make_data(train=str(file), clean=clean).cleaned.rows) == 1  # each rule drops some


def test_other_languages_and_what_is_changed_before_it_is_cut(
    make_data: Maker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "de.tsv"
    file.write_text("Ich mag Tee. \tI like tea.\n" * 9, encoding="utf-8")
    files = dict.fromkeys(("train", "val", "test"), str(file))
    data = make_data(**files, languages=["de", "en"], source_lang="de", target_lang="en")
    with caplog.at_level("INFO", "zhen"):
        data.split("train")
    assert "data.train: pairs changed before they are cut: " in caplog.text
    assert next(iter(data.train_dataloader())).tokens == data.target_tokens
    (ids,) = data.split("val")[[0]].labels.tolist()
    assert data.tokenizer.target.decode([ids[:-1]]) == ["I like tea."]


def test_a_change_of_train_changes_vocabulary_and_pairs(
    make_data: Maker, tsv: dict[str, Path], tmp_path: Path
) -> None:
    make_data().split("train")
    other = tmp_path / "other.tsv"
    other.write_bytes(tsv["train"].read_bytes() + "龘\ttea\n".encode())
    make_data(train=str(other)).split("train")
    for kind in ("corpora", "cleaned", "tokenizers", "pairs"):
        assert len(cached(tmp_path / "cache", kind)) == 2, kind


def test_a_second_start_makes_nothing(
    make_data: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> list[Any]:
        data = make_data(val=None, val_size=10)
        return [batch.labels.tolist() for batch in data.train_dataloader()]

    first = start()
    monkeypatch.delattr("zhen.data.cache.FileLock")
    assert start() == first


def test_vocabulary_is_learned_from_train_alone_and_once(
    make_data: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_data().tokenizer
    odd = tmp_path / "odd.tsv"
    odd.write_text("龘龘龘龘\tzzzz zzzz\n", encoding="utf-8")
    monkeypatch.delattr("zhen.data.cache._seal")  # nothing is made a second time
    second = make_data(val=str(odd), test=str(odd)).tokenizer
    assert second.to_json() == first.to_json()


def test_tokenizer_can_be_a_file_or_ready_made(make_data: Maker, tmp_path: Path) -> None:
    made = make_data().tokenizer
    path = tmp_path / "tokenizer.json"
    path.write_text(made.to_json(), encoding="utf-8")
    from_file = make_data(tokenizer=TokenizerOptions(path=str(path)))
    assert from_file.tokenizer.to_json() == made.to_json()
    assert make_data(tokenizer=made).tokenizer is made


def test_a_damaged_vocabulary_is_learned_again(make_data: Maker, tmp_path: Path) -> None:
    wanted = make_data().tokenizer.to_json()
    (file,) = (tmp_path / "cache" / "tokenizers").glob("*/tokenizer.json")
    file.write_bytes(b"")
    assert make_data().tokenizer.to_json() == wanted == file.read_text(encoding="utf-8")


def test_faulty_file_is_named_by_its_key(make_data: Maker, tmp_path: Path) -> None:
    missing = str(tmp_path / "none.tsv")
    for split, key in (("train", "data.train"), ("val", "data.val"), ("part", "data.test.part")):
        data = make_data(**({split: missing} if split != "part" else {"test": {"part": missing}}))
        with pytest.raises(UserError, match=f"^{key}: {missing} does not exist"):
            data.read(split)


def test_every_split_read_has_its_fingerprint(make_data: Maker, tsv: dict[str, Path]) -> None:
    data = make_data(test={"easy": str(tsv["test"]), "hard": str(tsv["val"])})
    assert data.test_parts == ["easy", "hard"]
    for name in ("train", "val", "easy", "hard"):
        data.split(name)
    assert list(data.fingerprint) == ["train", "val", "easy", "hard"]
    assert data.fingerprint["hard"] == data.fingerprint["val"] != data.fingerprint["easy"]


def test_long_training_pairs_are_dropped_and_counted(
    make_data: Maker, tsv: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    lengths = make_data().split("train").lengths.max(axis=1)
    limit = int(lengths.min()) - 1  # without the control piece
    data = make_data(max_length=limit)
    kept = (lengths == limit + 1).sum()
    assert 0 < kept < 100
    with caplog.at_level(logging.INFO, "zhen"):
        batches = list(data.train_dataloader())
    assert sum(len(batch.indices) for batch in batches) == kept
    assert max(max(b.labels.size(1), b.source.size(1)) for b in batches) == limit + 1
    assert caplog.messages == [
        f"data.train: 100 pairs from {tsv['train']}",
        f"data.train: {100 - kept} pairs dropped ({100 - kept} longer than data.max_length={limit}"
        f" pieces), {kept} kept",
    ]
    with pytest.raises(UserError, match=r"^`data.max_length`: no training pair has at most 1 piec"):
        make_data(max_length=1).train_dataloader()


def test_a_pair_too_long_for_the_model_is_named(make_data: Maker, tsv: dict[str, Path]) -> None:
    data = make_data()
    longest = data.split("val").lengths.max(axis=1)
    line, size = int((longest == longest.max()).nonzero()[0][0]) + 1, longest.max()
    data.check_positions("val", size)
    with pytest.raises(UserError) as refused:
        data.check_positions("val", size - 1)
    assert str(refused.value) == (
        f"data.val: {tsv['val']}:{line}: a sentence has {size} pieces, but the model only"
        f" {size - 1} positions: shorten it or raise model.max_positions"
    )
    limit = int(data.split("train").lengths.max(axis=1).min()) - 1
    make_data(max_length=limit).check_positions("train", limit + 1)  # longer ones are dropped


def with_empty_sides(tsv: dict[str, Path], tmp_path: Path) -> str:
    path = tmp_path / "empty.tsv"
    path.write_bytes(tsv["train"].read_bytes() + "\ttea\n茶\t \n".encode())
    return str(path)


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_an_empty_side_is_refused(
    make_data: Maker, tsv: dict[str, Path], tmp_path: Path, split: str
) -> None:
    path = with_empty_sides(tsv, tmp_path)
    hint = ", or drop such pairs: data.clean.empty=true" if split == "train" else ""
    for options in ({}, {"clean": CleanOptions(empty=True)}):
        if split == "train" and options:
            continue
        with pytest.raises(UserError) as refused:
            make_data(**{split: path}, **options).read(split)
        assert str(refused.value) == (
            f"data.{split}: {path}:101: the zh side is empty: '\\ttea'; write the sentence or"
            f" delete the line{hint}"
        )


def test_cleaning_drops_and_counts(
    make_data: Maker, tsv: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = with_empty_sides(tsv, tmp_path)
    for _ in range(2):  # the second time from the cache
        caplog.clear()
        with caplog.at_level(logging.INFO, "zhen"):
            pairs = make_data(train=path, clean=CleanOptions(empty=True)).split("train")
        assert len(pairs) == 100 and pairs.rows.tolist() == list(range(100))
        assert caplog.messages == [
            f"data.train: 102 pairs from {path}",
            "data.train: 2 pairs dropped (2 empty), 100 kept",
        ]
    only = tmp_path / "only.tsv"
    only.write_text("\ttea\n", encoding="utf-8")
    with pytest.raises(UserError) as refused:
        make_data(train=str(only), clean=CleanOptions(empty=True)).split("train")
    assert str(refused.value) == (
        "data.clean: none of the 1 training pairs is left: 1 empty; loosen a rule"
    )


def test_what_cleaning_drops_teaches_the_vocabulary_nothing(
    make_data: Maker, tsv: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "dropped.tsv"
    path.write_bytes(tsv["train"].read_bytes() + b"\tzzzz zzzz zzzz\n" * 50)
    cleaned = make_data(train=str(path), clean=CleanOptions(empty=True))
    assert cleaned.tokenizer.to_json() == make_data().tokenizer.to_json()


def test_evaluation_keeps_order_and_raw_text(make_data: Maker, tmp_path: Path) -> None:
    raw = [(f" 茶{i}\u2028 ", f"tea　{i}  ") for i in range(30)]
    path = tmp_path / "raw.tsv"
    path.write_text("".join(f"{one}\t{other}\n" for one, other in raw), encoding="utf-8")
    pairs = make_data(test=str(path)).split("test")
    assert [*zip(pairs.sources, pairs.targets, strict=True)] == raw


def test_evaluation_takes_every_pair_once_however_long(
    make_data: Maker, tsv: dict[str, Path]
) -> None:
    tight = BatchOptions(tokens=256, eval_tokens=1)
    data = make_data(batch=tight, test={"a": str(tsv["test"]), "b": str(tsv["val"])})
    (first, second), third = data.test_dataloader(), data.val_dataloader()
    for loader in (first, second, third):
        assert sorted(i for batch in loader for i in batch.indices) == list(range(10))


def on_rank(rank: int, world_size: int, **changes: Any) -> SimpleNamespace:
    """What the data module asks a trainer."""
    trainer = {"accumulate_grad_batches": 1, "limit_train_batches": 1.0, "current_epoch": 0}
    trainer |= changes
    return SimpleNamespace(global_rank=rank, world_size=world_size, **trainer)


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_ranks_divide_training_and_evaluation(make_data: Maker, world_size: int) -> None:
    train: list[int] = []
    val: list[int] = []
    counts = set()
    for rank in range(world_size):
        data = make_data(batch=BatchOptions(tokens=66, eval_tokens=32))
        data.trainer = on_rank(rank, world_size)
        loader = data.train_dataloader()
        counts.add(len(loader))
        train += [i for batch in loader for i in batch.indices]
        val += [i for batch in data.val_dataloader() for i in batch.indices]
    assert sorted(train) == list(range(100)) and len(counts) == 1
    assert sorted(val) == list(range(10))


def test_batches_know_the_tokens_of_their_update(make_data: Maker) -> None:
    batches = []
    for rank in range(2):
        data = make_data(batch=BatchOptions(tokens=66, eval_tokens=32))
        data.trainer = on_rank(rank, 2, accumulate_grad_batches=3, limit_train_batches=5)
        batches.append(list(data.train_dataloader())[:5])
    for update in (slice(0, 3), slice(3, 5)):
        of_update = [batch for of_rank in batches for batch in of_rank[update]]
        real = sum(int((batch.labels != 0).sum()) for batch in of_update)
        assert {batch.update_tokens for batch in of_update} == {real}


def test_another_number_of_ranks_finishes_an_epoch(make_data: Maker) -> None:
    """Unless `limit_train_batches` has ended it."""
    data, done = make_data(batch=BatchOptions(tokens=66, eval_tokens=32)), [Part(2, 1, 3)]
    data.trainer = on_rank(0, 1)
    whole, rest = len(data.train_dataloader()), data.rest(0, done)
    assert 0 < rest.start < rest.stop == whole
    data.start(0, rest.start, done)
    loader = data.train_dataloader()
    assert len(loader) == whole and len(list(loader)) == len(rest)
    data.trainer = on_rank(0, 1, limit_train_batches=rest.start)
    assert not data.rest(0, done)


def test_too_few_pairs_for_the_ranks_are_named(make_data: Maker) -> None:
    data = make_data()
    data.trainer = on_rank(0, 200)
    with pytest.raises(UserError, match=r"^data.train: fewer pairs \(100\) than ranks \(200\)"):
        data.train_dataloader()
    with pytest.raises(UserError, match=r"^data.val: fewer pairs \(10\) than ranks \(200\)"):
        data.val_dataloader()


def test_worker_processes_give_the_same_batches(make_data: Maker) -> None:
    alone, helped = make_data(), make_data(num_workers=1)
    assert [b.indices for b in alone.train_dataloader()] == [
        b.indices for b in helped.train_dataloader()
    ]


class Listener(L.LightningModule):
    """Trains nothing, and keeps what each epoch showed it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[dict[int, tuple[list[int], list[int]]]] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters())

    def on_train_epoch_start(self) -> None:
        self.seen.append({})

    def training_step(self, batch: Batch, _: int) -> torch.Tensor:
        sides = zip(batch.source.tolist(), batch.labels.tolist(), strict=True)
        for index, pair in zip(batch.indices, sides, strict=True):
            assert index not in self.seen[-1]
            self.seen[-1][index] = pair
        real = sum((side != 0).sum().item() for side in (batch.source, batch.labels))
        assert real <= batch.source.numel() + batch.labels.numel() <= 256
        return self.weight


def test_bpe_dropout_cuts_every_epoch_in_its_own_way(make_data: Maker, tmp_path: Path) -> None:
    def seen() -> list[dict[int, tuple[list[int], list[int]]]]:
        data = make_data(tokenizer=TokenizerOptions(vocab_size=400, dropout=0.3))
        listener = Listener()
        L.Trainer(
            accelerator="cpu", max_epochs=3, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, limit_val_batches=0,
            use_distributed_sampler=False, default_root_dir=tmp_path,
        ).fit(listener, datamodule=data)  # fmt: skip
        pairs, tokenizer = data.split("train"), data.tokenizer
        for epoch in listener.seen:
            assert sorted(epoch) == list(range(len(pairs)))
            sources = tokenizer.source.decode([epoch[i][0] for i in range(len(pairs))])
            targets = tokenizer.target.decode([epoch[i][1] for i in range(len(pairs))])
            assert sources == [text.strip() for text in pairs.sources]
            assert targets == [text.strip() for text in pairs.targets]
            longest = max(sum(i != 0 for i in side) for pair in epoch.values() for side in pair)
            assert longest <= pairs.lengths.max()
        return listener.seen

    first, second, third = seen()
    assert first != second != third != first
    assert seen() == [first, second, third]


def test_bpe_dropout_leaves_validation_and_the_vocabulary_alone(make_data: Maker) -> None:
    plain, dropping = (
        make_data(tokenizer=TokenizerOptions(vocab_size=400, dropout=p)) for p in (0.0, 0.9)
    )
    assert plain.tokenizer.to_json() == dropping.tokenizer.to_json()
    assert plain.split("val")[[0, 1]].labels.equal(dropping.split("val")[[0, 1]].labels)
    batch, cut = (next(iter(each.train_dataloader())) for each in (plain, dropping))
    assert cut.source.size(1) > batch.source.size(1)
