"""What a test found: results.json, the sentences themselves, and the summary on the terminal."""

import math
import resource
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from zhen.files import write_atomic, write_json
from zhen.runs.directory import stem_of
from zhen.training.module import Evaluation


def write_results(path: Path, tests: Mapping[str, Evaluation], about: Mapping[str, Any]) -> None:
    """Write `results.json` and, for each test part, its sentences, one a line.

    A single test set has `test.src`, `test.hyp` and `test.ref`; a part NAME has `test.NAME.src`
    and so on. `sacrebleu test.ref -i test.hyp` gives the stored scores again.

    Args:
        path: the run directory.
        tests: what each part found.
        about: what else belongs into results.json: parameters, time, speed, memory.
    """
    for part, found in tests.items():
        stem = stem_of(part)
        for ending, lines in (
            ("src", found.sources),
            ("hyp", found.hypotheses),
            ("ref", found.references),
        ):
            write_atomic(path / f"{stem}.{ending}", "".join(f"{line}\n" for line in lines))
    write_json(
        path / "results.json",
        {"test": {part: numbers(found) for part, found in tests.items()}, **about},
    )


def numbers(found: Evaluation) -> dict[str, Any]:
    """Scores with their signatures, loss and perplexity, as plain data."""
    return {
        "sentences": len(found.sources),
        "bleu": found.scores.bleu,
        "chrf": found.scores.chrf,
        # JSON has neither infinity nor NaN.
        "loss": found.loss if math.isfinite(found.loss) else None,
        "nll": found.nll if math.isfinite(found.nll) else None,
        "perplexity": found.perplexity if math.isfinite(found.perplexity) else None,
        "bleu_signature": found.scores.bleu_signature,
        "chrf_signature": found.scores.chrf_signature,
    }


def print_scores(tests: Mapping[str, Evaluation]) -> None:
    """A table of the scores of each test part."""
    table = Table("test part", "sentences", "BLEU", "chrF", "perplexity", box=None)
    for part, found in tests.items():
        table.add_row(
            part,
            str(len(found.sources)),
            f"{found.scores.bleu:.1f}",
            f"{found.scores.chrf:.1f}",
            f"{found.perplexity:.2f}",
        )
    Console(highlight=False).print(table)


def print_samples(tests: Mapping[str, Evaluation], count: int) -> None:
    """Translations beside their references, `count` in all, spread evenly over the parts."""
    every = [
        (found.sources[i], found.hypotheses[i], found.references[i])
        for found in tests.values()
        for i in _spread(len(found.sources), -(-count // len(tests)))
    ]
    for source, hypothesis, reference in every[:count]:
        print(f"  {source}\n    -> {hypothesis}\n     = {reference}")


def print_summary(path: Path, tests: Mapping[str, Evaluation], about: Mapping[str, Any]) -> None:
    """What a finished run found, and what to type next.

    Args:
        path: the run directory.
        tests: what each part found.
        about: what else stands in results.json.
    """
    minutes, seconds = divmod(round(about["seconds"]), 60)
    gpu = about["peak_gpu_memory_gib"]
    on_gpu = f", {gpu} GiB of the GPU" if gpu is not None else ""
    text = shlex.quote(next(iter(tests.values())).sources[0])
    print("\nSample translations")
    print_samples(tests, count=10)
    print("\nTest scores")
    print_scores(tests)
    print(
        f"\n{about['updates']:,} updates, {about['parameters']:,} parameters,"
        f" {about['target_tokens_per_second'] or 0:,} target tokens/s,"
        f" {minutes} min {seconds} s with the test, {about['peak_memory_gib']} GiB{on_gpu}"
        f"\nRun directory: {path}"
        "\n\nNext:"
        f"\n  make translate TEXT={text}"
        f"\n  make attention TEXT={text}"
        "\n  make compare"
    )


def peak_memory_gib() -> float:
    """The most memory this process has held so far, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def peak_memory() -> dict[str, float | None]:
    """The same for results.json, and what PyTorch has held on its GPU; None without one."""
    gpu = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_initialized() else None
    return {
        "peak_memory_gib": round(peak_memory_gib(), 2),
        "peak_gpu_memory_gib": None if gpu is None else round(gpu, 2),
    }


def _spread(size: int, count: int) -> Sequence[int]:
    count = min(size, count)
    return [size * n // count for n in range(count)]
