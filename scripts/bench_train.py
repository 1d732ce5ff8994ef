"""Measure training beside its peers: make bench ARGS='train --corpus T'

The same architecture, vocabulary, pairs and token budget, in one run on one machine:

    zhen                     `zhen.train`, with its callbacks and loggers
    zhen compiled            the same with --compiled compile=true
    bare loop                the same step on the same batches, with nothing around it
    torch.nn.Transformer     a plain Lightning module
    MarianMT                 transformers' Seq2SeqTrainer, whose batches are drawn at random
    MarianMT by length       the same with train_sampling_strategy=group_by_length
    joeynmt                  joeynmt 2.3.0, with --joeynmt PYTHON (scripts/race/joey.py)

In each round all take turns, each in a process of its own with the same number of threads; a ratio
compares two speeds of one round. The first updates of a process are not counted, nor are
validations and tests. A token is a real target piece, its end included: the labels that are no
padding, counted by the same lines for all (`Clock` in scripts/race/job.py).

What is the same: post-norm Transformer with one tied embedding, sinusoidal positions, dropout of
sub-layer outputs and embeddings, label smoothing, Adam with the inverse square root, a gradient
clipped at a norm of 1. What is each one's own: how batches are made, which is part of what is
measured; initial weights; dropout inside attention and feed-forward, which torch.nn.Transformer
and joeynmt have. zhen cuts batches of --tokens padded pieces, both sides; those with a fixed number
of pairs get zhen's mean; joeynmt cuts --tokens by its own count, rows x the longer side.

With --minutes N each trains for N minutes once, and translates the validation sources greedily
every M updates, while the clock stands still; the table says when each had reached what the fastest
peer has in the end. --set gives zhen alone other settings.

Operations are those of the matrix products, 2·M·N·K each, forward and backward, for the real pieces
and for all that are padded; the share is of one large product measured in the same round, in the
same precision, on as many threads.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from scripts.arguments import count
from scripts.race.job import Job

from zhen.errors import UserError, one_line

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from zhen.data import TranslationData

ROOT = Path(__file__).resolve().parents[1]
Report = dict[str, Any]
SIZES = ("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers")
ZHEN, COMPILED, BARE = "zhen", "zhen compiled", "bare loop"
# What each runs beside zhen, and which packages it needs.
PEERS: dict[str, tuple[list[str], list[str]]] = {
    "torch.nn.Transformer": (["scripts.race.plain"], []),
    "MarianMT": (["scripts.race.marian", "random"], ["transformers", "accelerate"]),
    "MarianMT by length": (
        ["scripts.race.marian", "group_by_length"],
        ["transformers", "accelerate"],
    ),
    "joeynmt": (["scripts.race.joey"], []),
}
NAMES = [ZHEN, COMPILED, BARE, *PEERS]
INSTALL = ".venv/bin/pip install -e '.[bench]'"
JOEYNMT = "give --joeynmt PYTHON"


def main(argv: list[str]) -> None:
    asked = parse(argv)
    with tempfile.TemporaryDirectory(dir=asked.folder, prefix="zhen-race-") as folder:
        race = Race(asked, Path(folder))
        print(race.about(), flush=True)
        if asked.minutes:
            race.time_to_quality()
        else:
            race.speeds()
        if race.failed:
            raise UserError(f"bench train: {', '.join(race.failed)} failed, see above")


class Race:
    """One corpus, one job, and the contestants that can run here."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        self.asked, self.folder = asked, folder
        self.missing: dict[str, str] = {}
        self.failed: list[str] = []
        for name, (_, packages) in PEERS.items():
            if absent := [each for each in packages if find_spec(each) is None]:
                self.missing[name] = f"not installed ({', '.join(absent)}): {INSTALL}"
        if asked.joeynmt is None:
            self.missing["joeynmt"] = f"not installed: {JOEYNMT} (scripts/race/joey.py)"
        self.overrides = self._overrides()
        if reason := self._why_not_compiled():
            self.missing[COMPILED] = reason
        self.names = [name for name in asked.only or NAMES if name not in self.missing]
        self.data, self.job = self._prepare()

    def _overrides(self) -> list[str]:
        """What zhen is told; the others get the same by way of the job."""
        asked, corpus = self.asked, self.asked.corpus
        if corpus is None:
            from scripts.synthetic import write_tsv

            corpus = self.folder
            for seed, (name, size) in enumerate({"train": asked.generated, "val": 200}.items()):
                write_tsv(corpus / f"{name}.tsv", size, seed)
        return [
            "~experiment", "name=race", "data=files", f"seed={asked.seed}",
            f"data.train={corpus.absolute()}/train.tsv", f"data.val={corpus.absolute()}/val.tsv",
            f"data.test={corpus.absolute()}/val.tsv", f"data.batch.tokens={asked.tokens}",
            f"tokenizer.vocab_size={asked.vocab_size}", f"paths.cache={self.folder}/cache",
            f"model={asked.model}", "model.norm=post", "model.dropout=0.1",
            "optimizer=adam", f"optimizer.lr={asked.lr}", "label_smoothing=0.1",
            "scheduler=inverse_sqrt", f"scheduler.warmup={asked.lr_warmup}",
            f"trainer={'gpu' if asked.device == 'cuda' else 'cpu'}", "trainer.max_epochs=-1",
            f"trainer.precision={asked.precision}", "trainer.gradient_clip_val=1.0",
            *asked.set,
        ]  # fmt: skip

    def _why_not_compiled(self) -> str | None:
        if not self.asked.compiled:
            return "not asked for: give --compiled KEY=VALUE"
        try:
            configuration([*self.overrides, *self.asked.compiled])
        except UserError as error:
            return f"not to be had: {one_line(error)}"
        return None

    def _prepare(self) -> tuple[TranslationData, Job]:
        import numpy as np
        from omegaconf import OmegaConf

        from zhen.config import build
        from zhen.data.batching import plan_epoch

        cfg = configuration(self.overrides)
        data: TranslationData = build(
            cfg.data, "data", tokenizer=build(cfg.tokenizer, "tokenizer"), seed=cfg.seed
        )
        OmegaConf.save(cfg, self.folder / "zhen.yaml", resolve=True)
        pairs, tokens = data.split("train"), cfg.data.batch.tokens
        plan = plan_epoch(pairs.lengths, tokens=tokens, seed=0, epoch=0)
        everything = pairs[np.arange(len(pairs))]
        val = data.split("val")
        validation = val[np.arange(len(val))]
        pad = data.tokenizer.pad_id

        def ids(padded: Any) -> list[list[int]]:
            lengths = (padded != pad).sum(dim=1).tolist()
            return [row[: n - 1] for row, n in zip(padded.tolist(), lengths, strict=True)]

        content = {
            "source": ids(everything.source),
            "target": ids(everything.labels),
            "val_source": ids(validation.source),
        }
        (self.folder / "pairs.json").write_text(json.dumps(content))
        sizes = data.tokenizer.vocab_sizes
        asked = self.asked
        return data, Job(
            folder=str(self.folder),
            pairs=str(self.folder / "pairs.json"),
            shape={
                "vocab_size": sizes["vocab_size"],
                **{name: cfg.model[name] for name in SIZES},
            },
            pad_id=pad,
            bos_id=data.tokenizer.bos_id,
            eos_id=data.tokenizer.eos_id,
            tokens=tokens,
            rows=max(1, round(len(pairs) / len(plan))),
            lr=asked.lr,
            lr_warmup=asked.lr_warmup,
            precision=asked.precision,
            device=asked.device,
            threads=asked.threads,
            warmup=0 if asked.minutes else asked.warmup,
            updates=0 if asked.minutes else asked.updates,
            seconds=60 * asked.minutes,
            evaluate_every=asked.every if asked.minutes else 0,
            longest=int(val.lengths[:, 1].max()),
        )

    def command(self, name: str, job: Job) -> list[str]:
        if name in (ZHEN, COMPILED):
            compiled = self.asked.compiled if name == COMPILED else []
            return [
                sys.executable, "-m", "zhen.train", *self.overrides, *compiled, f"seed={job.seed}",
                f"paths.runs={job.folder}/runs", "+trainer.limit_val_batches=0",
                "+callbacks.clock._target_=scripts.race.ours.RaceClock",
                f"+callbacks.clock.job={job.folder}",
            ]  # fmt: skip
        if name == "ceiling":
            return [sys.executable, "-m", "scripts.race.ceiling", job.folder]
        if name == BARE:
            return [sys.executable, "-m", "scripts.race.ours", job.folder]
        module, *rest = PEERS[name][0]
        python = self.asked.joeynmt if name == "joeynmt" else sys.executable
        return [str(python), "-m", module, job.folder, *rest]

    def turn(self, name: str, seed: int) -> Report:
        """Let a contestant run, alone, and give its report."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "zhen.yaml").symlink_to(self.folder / "zhen.yaml")
        job = replace(self.job, folder=str(folder), seed=seed)
        job.write()
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "OMP_NUM_THREADS": str(job.threads),
            # As zhen's commands have it; the same for all.
            "OMP_WAIT_POLICY": "passive",
            "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16384",
            "TOKENIZERS_PARALLELISM": "false",
        }
        log = folder / "log"
        with log.open("w") as out:
            done = subprocess.run(
                self.command(name, job), env=env, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT
            )
        if not (folder / "report.json").exists():
            print(log.read_text(errors="replace")[-4000:], file=sys.stderr)
            raise UserError(f"bench train: {name} ended with status {done.returncode}, see above")
        report: Report = json.loads((folder / "report.json").read_text())
        return report

    def try_turn(self, name: str, seed: int) -> Report | None:
        """One that fails leaves the race; the others' hours are not lost."""
        try:
            return self.turn(name, seed)
        except UserError as error:
            print(one_line(error), file=sys.stderr)
            self.failed.append(name)
            self.missing[name] = "failed"
            return None

    def about(self) -> str:
        import torch

        from zhen.runs.provenance import cpu_name

        job = self.job
        device = torch.cuda.get_device_name() if job.device == "cuda" else cpu_name()
        sizes = ", ".join(f"{name} {value:,}" for name, value in job.shape.items())
        return (
            f"{device}, {job.threads} threads; Python {platform.python_version()}, torch"
            f" {torch.__version__}; {job.precision}; {sizes}; {len(self.data.split('train')):,}"
            f" pairs, {job.tokens:,} tokens a batch, or {job.rows} pairs.\n"
        )

    # --- tokens per second

    def speeds(self) -> None:
        asked = self.asked
        found: dict[str, list[Report]] = {name: [] for name in ["ceiling", *self.names]}
        for number in range(asked.rounds):
            for name in list(found):
                report = self.try_turn(name, asked.seed + number)
                if report is None:
                    del found[name]
                else:
                    found[name].append(report)
        if "ceiling" not in found:
            return
        ceilings = [report["throughput"] for report in found.pop("ceiling")]
        print(
            f"{asked.rounds} rounds of {asked.updates} updates after {asked.warmup}; one large"
            f" product: {median(ceilings) / 1e9:,.0f} billion operations a second"
            f" ({min(ceilings) / 1e9:,.0f}–{max(ceilings) / 1e9:,.0f}).\n"
        )
        header = (
            "contestant | target tokens/s | zhen / it | least–most | real pieces"
            " | of the ceiling, real | with padding | memory, GiB"
        )
        print(f"| {header} |", "|" + "---|" * (header.count("|") + 1), sep="\n")
        for name in asked.only or NAMES:
            if name in self.missing:
                print(f"| {name} | {self.missing[name]} |" + " |" * (header.count("|") - 1))
            else:
                print(f"| {name} | {' | '.join(row(found[name], found.get(ZHEN), ceilings))} |")
        if ZHEN in found and BARE in found:
            costs = sorted(
                100 * (speed(bare) / speed(whole) - 1)
                for bare, whole in zip(found[BARE], found[ZHEN], strict=True)
            )
            print(
                f"\nLightning, callbacks and logs: {median(costs):.1f}% over the bare loop"
                f" ({costs[0]:.1f}–{costs[-1]:.1f})"
            )

    # --- time to quality

    def time_to_quality(self) -> None:
        from zhen.training.scores import score

        data, names = self.data, [name for name in self.names if name != BARE]
        references = data.split("val").targets

        def bleu(found: list[list[int]]) -> float:
            texts = data.tokenizer.target.decode(found)
            return score(texts, references, data.target_lang).bleu

        curves: dict[str, list[tuple[float, float]]] = {}
        reports: dict[str, Report] = {}
        for name in names:
            report = self.try_turn(name, self.asked.seed)
            if report is None:
                continue
            reports[name] = report
            curves[name] = [
                (each["seconds"] / 60, bleu(each["found"])) for each in report["scored"]
            ]
            points = ", ".join(f"{minutes:.1f} min {it:.1f}" for minutes, it in curves[name])
            print(f"{name}, BLEU: {points}", flush=True)
        if not reports:
            return
        peers = [name for name in reports if name not in (ZHEN, COMPILED)] or [*reports]
        fastest = max(peers, key=lambda name: speed(reports[name]))
        wanted = curves[fastest][-1][1]
        print(
            f"\nThe fastest peer is {fastest}; it has BLEU {wanted:.1f} after"
            f" {self.asked.minutes:g} minutes.\n"
        )
        header = f"contestant | updates | target tokens/s | BLEU | minutes to {wanted:.1f}"
        print(f"| {header} |", "|" + "---|" * (header.count("|") + 1), sep="\n")
        for name, report in reports.items():
            curve = curves[name]
            reached = next((f"{at:.1f}" for at, it in curve if it >= wanted), "not reached")
            print(
                f"| {name} | {report['updates']:,} | {speed(report):,.0f} | {curve[-1][1]:.1f}"
                f" | {reached} |"
            )


def configuration(overrides: list[str]) -> DictConfig:
    """That of `zhen.train` with these overrides.

    Raises:
        UserError: they do not compose, or a value is refused.
    """
    from zhen.compose import CompositionError, explain
    from zhen.config import check, compose

    try:
        check(cfg := compose("train", overrides))
    except CompositionError as error:
        if isinstance(error, UserError):
            raise
        raise UserError(explain(error, "train", overrides)) from error
    return cfg


def speed(report: Report) -> float:
    return float(report["tokens"] / report["seconds"])


def row(its: list[Report], ours: list[Report] | None, ceilings: list[float]) -> Iterator[str]:
    yield f"{median(map(speed, its)):,.0f}"
    if ours is None:
        yield from ("", "")
    else:
        ratios = sorted(speed(own) / speed(it) for it, own in zip(its, ours, strict=True))
        yield from (f"{median(ratios):.2f}", f"{ratios[0]:.2f}–{ratios[-1]:.2f}")
    yield f"{median(it['real'] for it in its):.2f}"
    for kind in ("useful", "made"):
        shares = [it[kind] / it["seconds"] / most for it, most in zip(its, ceilings, strict=True)]
        yield f"{100 * median(shares):.0f}%"
    yield f"{max(it['peak_gib'] for it in its):.1f}"


def parse(argv: list[str]) -> argparse.Namespace:
    def whole(text: str) -> int:
        if int(text) < 0:
            raise ValueError
        return int(text)

    def minutes(text: str) -> float:
        if not float(text) > 0:
            raise ValueError
        return float(text)

    parser = argparse.ArgumentParser(
        prog="bench train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--corpus", type=Path, help="a folder with train.tsv and val.tsv; default: generated pairs")
    add("--generated", type=count, default=20_000, help="how many of these; default: 20000")
    add("--rounds", type=count, default=3, help="default: 3")
    add("--updates", type=count, default=50, help="counted in a turn; default: 50")
    add("--warmup", type=whole, default=10, help="updates before these; default: 10")
    add("--minutes", type=minutes, default=0.0, help="measure time to quality instead")
    add("--every", type=count, default=100, help="updates between translations; default: 100")
    add("--only", action="append", choices=NAMES, help="this contestant; may be repeated")
    add("--set", action="append", default=[], help="a setting of zhen alone: KEY=VALUE; repeatable")
    add("--compiled", action="append", default=[], help="what compiles zhen's step: KEY=VALUE")
    add("--joeynmt", type=Path, metavar="PYTHON", help="of an environment with joeynmt 2.3.0")
    add("--model", default="small", help="tiny, small, base or big; default: small")
    add("--tokens", type=count, default=4096, help="padded pieces of a batch; default: 4096")
    add("--vocab-size", type=count, default=8000, help="pieces; default: 8000")
    add("--lr", type=float, default=7e-4, help="peak learning rate; default: 7e-4")
    add("--lr-warmup", type=count, default=400, help="updates up to it; default: 400")
    add("--precision", default="32-true", help="32-true or bf16-mixed; default: 32-true")
    add("--device", choices=["cpu", "cuda"], default="cpu", help="default: cpu")
    add("--threads", type=count, default=os.cpu_count(), help="default: one for each core")
    add("--seed", type=int, default=0, help="of the first round; default: 0")
    add("--folder", type=Path, help="where to keep it all meanwhile; default: the system's choice")
    return parser.parse_args(argv)
