"""Measure the way from a file of pairs to batches: make bench ARGS='data --pairs 1000000'

The corpus is made up (scripts/synthetic.py), which is not counted. Everything is done as training
does it, with the configuration of `data=files model=tiny`, in processes one after the other:

    preparation     check a TSV as `make data-check` does, read it, clean it by the usual rules,
                    learn the vocabulary, encode, fill the cache
    second start    all of that from the cache, up to the first batch
    plan            which pairs go together in an epoch; also for ten times as many pairs, whose
                    lengths are drawn from those of the corpus
    batches         a loader alone, then training with it

Memory is the most that the process has held since it began, at the end of each step; what a step
adds to it is also given in bytes a pair. Reading, cleaning and encoding go by chunks, the
vocabulary is learned from a sample: with `--pairs` ten times as large, time is ten times as long,
and the bytes a pair are fewer.

What is said of a plan:

    real pieces     pieces of all pairs / padded pieces of all batches of an epoch, both sides
    work            padded pieces of the rank with most / of a rank on average, in each update; the
                    mean over the updates of an epoch, and the largest
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scripts.arguments import count

if TYPE_CHECKING:  # the first process imports next to nothing: what the others hold is their own
    from omegaconf import DictConfig

    from zhen.data import TranslationData
    from zhen.data.batching import EpochPlan, Lengths

# As zhen's commands have it; read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

RANKS = (8, 64, 1024)
Row = tuple[str, str, str]  # what, measured, wanted
Result = TypeVar("Result")


def main(argv: list[str]) -> None:
    asked = parse(argv)
    with tempfile.TemporaryDirectory(dir=asked.folder, prefix="zhen-bench-") as folder:
        overrides = alone(make_corpus, Path(folder), asked.pairs, asked.vocab_size)
        about = f"{asked.pairs:,} generated pairs, {asked.vocab_size:,} pieces"
        print(f"{alone(machine)}; {about}.\n\n| what | measured | wanted |")
        print("|---|---|---|", flush=True)
        for row in measured(overrides, asked):
            print("|", " | ".join(row), "|", flush=True)


def measured(overrides: list[str], asked: argparse.Namespace) -> Iterator[Row]:
    yield from alone(prepare, overrides)
    yield from alone(start_again, overrides, time.monotonic())
    yield from alone(plan, overrides)
    yield from alone(batches, overrides, asked.updates)
    if asked.corpus is not None:
        yield from alone(plan_of, overrides, asked.corpus.absolute())


def alone(step: Callable[..., Result], *arguments: Any) -> Result:
    """What a function gives that is called in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(step, *arguments).result()


# --- one process each


def make_corpus(folder: Path, pairs: int, vocab_size: int) -> list[str]:
    """Write it, and say how training would be told to use it."""
    from scripts.synthetic import write_tsv

    for seed, (name, size) in enumerate({"train": pairs, "val": 500, "test": 500}.items()):
        write_tsv(folder / f"{name}.tsv", size, seed)
    return [
        "~experiment", "name=bench", "data=files", "data/clean=usual", "model=tiny", "trainer=cpu",
        *(f"data.{name}={folder}/{name}.tsv" for name in ("train", "val", "test")),
        f"tokenizer.vocab_size={vocab_size}", f"paths.cache={folder}/cache",
    ]  # fmt: skip


def machine() -> str:
    import torch

    from zhen.runs.provenance import cpu_name

    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{cpu_name()}, {os.cpu_count()} cores; {versions}"


def prepare(overrides: list[str]) -> list[Row]:
    from zhen.runs.results import peak_memory_gib

    _, data = made(overrides)
    steps: dict[str, Callable[[], Any]] = {
        "checking": lambda: check_of(data),
        "reading": lambda: data.read("train"),
        "cleaning": lambda: data.cleaned,
        "vocabulary": lambda: data.tokenizer,
        "encoding": lambda: data.split("train"),
    }
    took: dict[str, float] = {}
    peaks = [peak_memory_gib()]
    for name, step in steps.items():
        took[name], _ = timed(step)
        peaks.append(peak_memory_gib())
    seconds, read, kept = sum(took.values()), len(data.read("train")), len(data.split("train"))
    added = [(after - before) * 2**30 / read for before, after in pairwise(peaks)]
    each = ", ".join(f"{name} {value:.1f}" for name, value in took.items())
    grown = ", ".join(f"{name} {value:,.0f}" for name, value in zip(steps, added, strict=True))
    a_pair = f"{1e6 * seconds / read:,.0f} µs a pair"
    return [
        ("preparation", f"{seconds:.1f} s: {each}; {a_pair}", "at most 240 s"),
        ("most memory", f"{peaks[-1]:.2f} GiB, {peaks[0]:.2f} of it imports", "at most 2 GiB"),
        ("memory added, bytes a pair", f"{sum(added):,.0f}: {grown}", ""),
        ("pairs kept", f"{kept:,} of {read:,}", ""),
    ]


def check_of(data: TranslationData) -> None:
    """What `make data-check` does before it prepares a corpus as training would."""
    from zhen.config import build, compose
    from zhen.data.report import Listing
    from zhen.data.survey import survey_all

    odd = build(compose("data_check", []).odd, "odd")
    with tempfile.TemporaryFile("w", encoding="utf-8") as file:
        sources = {"data.train": data.given()["data.train"]}
        survey_all(sources, (data.source_lang, data.target_lang), odd, Listing(file))


def start_again(overrides: list[str], begun: float) -> list[Row]:
    _, data = made(overrides)
    seconds, _ = timed(lambda: next(iter(data.train_dataloader())))
    whole = f"{time.monotonic() - begun:.1f} s with Python and its imports"
    return [("second start", f"{seconds:.1f} s; {whole}", "at most 5 s")]


def plan(overrides: list[str]) -> list[Row]:
    cfg, data = made(overrides)
    lengths, tokens = data.split("train").lengths, cfg.data.batch.tokens
    many = np.random.default_rng(0).choice(lengths, 10 * len(lengths))
    return [
        cost_row(lengths, tokens, "at most 2 s"),
        cost_row(many, tokens, "ten times that"),
        real_row(lengths, tokens, "at least 0.97"),
        *(work_row(lengths, tokens, ranks) for ranks in RANKS if 20 * ranks <= len(lengths)),
    ]


def plan_of(overrides: list[str], corpus: Path) -> list[Row]:
    """How good the plan is for a corpus that is no invention."""
    cfg, data = made([*overrides, f"data.train={corpus}"])
    lengths, tokens = data.split("train").lengths, cfg.data.batch.tokens
    name = f"{corpus.name} with {len(lengths):,} pairs: "
    return [
        real_row(lengths, tokens, "at least 0.93", name),
        work_row(lengths, tokens, RANKS[0], name),
    ]


def batches(overrides: list[str], updates: int) -> list[Row]:
    from zhen.config import build
    from zhen.training.callbacks import Progress
    from zhen.training.module import TranslationModule
    from zhen.translator import Translator

    cfg, data = made([*overrides, f"trainer.max_steps={updates}", "trainer.max_epochs=-1"])
    loader = data.train_dataloader()
    seconds, tokens = timed(lambda: sum(batch.tokens for batch in loader))
    loaded = tokens / seconds

    pieces, progress = data.tokenizer, Progress(refresh_seconds=1e9)
    model = build(cfg.model, "model", **pieces.vocab_sizes, pad_id=pieces.pad_id)
    module = TranslationModule(
        Translator(model, pieces, data.source_lang, data.target_lang),
        decode=build(cfg.decode, "decode"),
        optimizer=build(cfg.optimizer, "optimizer"),
        schedule=build(cfg.scheduler, "scheduler"),
        label_smoothing=cfg.label_smoothing,
    )
    trainer = build(
        cfg.trainer, "trainer", callbacks=[progress], logger=False, limit_val_batches=0,
        enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(module, datamodule=data)
    trained = progress.tokens_per_second
    return [
        ("training, target pieces", f"{trained:,.0f} a second, {updates} updates", ""),
        ("loader alone, target pieces", f"{loaded:,.0f} a second", "at least 20 times training"),
        ("loader / training", f"{loaded / trained:.0f}", "at least 20"),
    ]


def made(overrides: list[str]) -> tuple[DictConfig, TranslationData]:
    """The configuration and the data module, as `zhen.train` makes them."""
    import logging
    import warnings

    from zhen.config import build, check, compose

    warnings.filterwarnings("ignore", message=".*LeafSpec.* is deprecated")  # Lightning's own use
    logging.getLogger("lightning.pytorch.utilities.rank_zero").setLevel(logging.WARNING)
    check(cfg := compose("train", overrides))
    tokenizer = build(cfg.tokenizer, "tokenizer")
    return cfg, build(cfg.data, "data", tokenizer=tokenizer, seed=cfg.seed)


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


# --- one row each


def cost_row(lengths: Lengths, tokens: int, wanted: str) -> Row:
    seconds, _ = timed(lambda: planned(lengths, tokens, RANKS[0]))
    tracemalloc.start()
    kept = planned(lengths, tokens, RANKS[0])
    held, most = (size / len(lengths) for size in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    row = lengths.nbytes / len(lengths)
    what = f"plan of {len(lengths):,} pairs, {len(kept):,} batches for each of {RANKS[0]} ranks"
    memory = f"bytes a pair: {row:.0f} lengths, {held:.1f} plan, {most:.0f} while it is made"
    return what, f"{seconds:.2f} s; {memory}", wanted


def real_row(lengths: Lengths, tokens: int, wanted: str, name: str = "") -> Row:
    work = padded(planned(lengths, tokens, 1), lengths)
    return f"{name}real pieces in {tokens:,}", f"{lengths.sum() / work.sum():.3f}", wanted


def work_row(lengths: Lengths, tokens: int, ranks: int, name: str = "") -> Row:
    work = padded(planned(lengths, tokens, ranks), lengths)
    ratio = work.max(axis=1) / work.mean(axis=1)
    found = f"{ratio.mean():.3f}, at most {ratio.max():.3f} in {len(ratio):,} updates"
    return f"{name}work of {ranks:,} ranks, most / mean", found, "at most 1.05"


def planned(lengths: Lengths, tokens: int, ranks: int) -> EpochPlan:
    from zhen.data.batching import plan_epoch

    return plan_epoch(lengths, tokens=tokens, seed=0, epoch=0, world_size=ranks)


def padded(plan: EpochPlan, lengths: Lengths) -> NDArray[np.int64]:
    """Padded pieces of each batch, (batches of a rank, ranks)."""
    longest = np.maximum.reduceat(lengths[plan.pairs], plan.bounds[:-1], axis=0)
    return (np.diff(plan.bounds) * longest.sum(axis=1))[plan.dealt]


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--pairs", type=count, default=1_000_000, help="to generate; default: 1000000")
    add("--vocab-size", type=count, default=8000, help="pieces; default: 8000")
    add("--updates", type=count, default=100, help="to train for; default: 100")
    add("--corpus", type=Path, help="a TSV whose plan is judged as well, beside the made-up one")
    add("--folder", type=Path, help="where to keep it all meanwhile; default: the system's choice")
    return parser.parse_args(argv)
