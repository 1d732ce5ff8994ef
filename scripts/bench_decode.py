"""Measure decoding beside transformers and CTranslate2: make bench ARGS='decode CHECKPOINT'

All have the same weights in float32, get the same source sentences as piece ids, give piece ids
back, and may use the same number of CPU threads. In each round they take turns, so that they meet
the same machine; a ratio compares two times of one round. Prints a Markdown table.

    zhen                          sorted by length, in batches
    transformers                  `generate` on batches in the order of the text
    transformers, sorted          the same on the batches of zhen
    CTranslate2                   `translate_batch` on everything; it sorts and cuts by itself

One sentence a batch means one call a sentence. Beam search has a length penalty of 1, which lets
CTranslate2 stop before zhen and transformers do: see `ctranslate2_options` in peers.py.
"""

import argparse
import os
import platform
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

# As zhen's commands have it, and the only fair way where two libraries keep threads of their own:
# those of one would spin while the other computes. Read when they are loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import ctranslate2
import torch
import transformers
from scripts.arguments import count
from scripts.peers import (
    ctranslate2_options,
    names,
    to_ctranslate2,
    to_transformers,
    transformers_options,
)

from zhen.compose import ROOT
from zhen.data.ragged import pad
from zhen.data.tokenizer import Tokenizer
from zhen.decoding import DecodeOptions, generate
from zhen.errors import UserError
from zhen.model import Transformer
from zhen.runs.directory import newest_checkpoint
from zhen.runs.provenance import cpu_name
from zhen.translator import Translator

PAD, BOS, EOS = Tokenizer.pad_id, Tokenizer.bos_id, Tokenizer.eos_id
SEARCHES = {"greedy": 1, "beam 5": 5}
BATCHES = (1, 64)
SORTED = "transformers, sorted"
Ids = list[int]
# Sources, options, sentences a batch -> the best hypothesis of each source.
Decoder = Callable[[list[Ids], DecodeOptions, int], list[Ids]]


def by_zhen(model: Transformer, sources: list[Ids], options: DecodeOptions, size: int) -> list[Ids]:
    def decode(batch: list[Ids]) -> list[Ids]:
        found = generate(model, pad(batch, PAD), options, bos_id=BOS, eos_id=EOS)
        return [best[0].ids for best in found]

    return sorted_by_length(decode, sources, size)


def by_transformers(
    peer: transformers.GenerationMixin,
    sources: list[Ids],
    options: DecodeOptions,
    size: int,
    sort: bool = False,
) -> list[Ids]:
    asked = transformers_options(options)

    def decode(batch: list[Ids]) -> list[Ids]:
        source = pad(batch, PAD)
        found = peer.generate(source, attention_mask=(source != PAD).long(), **asked)
        rows = [row[1:] for row in found.tolist()]  # without the start piece
        return [row[: row.index(EOS)] if EOS in row else row for row in rows]

    if sort:
        return sorted_by_length(decode, sources, size)
    return [ids for i in range(0, len(sources), size) for ids in decode(sources[i : i + size])]


def by_ctranslate2(
    translator: ctranslate2.Translator, sources: list[Ids], options: DecodeOptions, size: int
) -> list[Ids]:
    asked = ctranslate2_options(options)
    calls = [[source] for source in sources] if size == 1 else [sources]
    return [
        [int(name) for name in result.hypotheses[0]]
        for call in calls
        for result in translator.translate_batch(
            [names(source) for source in call], max_batch_size=size, **asked
        )
    ]


def sorted_by_length(
    decode: Callable[[list[Ids]], list[Ids]], sources: list[Ids], size: int
) -> list[Ids]:
    """Decode batches of similar length, the longest first, and return to the order given."""
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    found: list[Ids] = [[] for _ in sources]
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        for i, ids in zip(batch, decode([sources[i] for i in batch]), strict=True):
            found[i] = ids
    return found


def measure(
    decoders: dict[str, Decoder],
    sources: list[Ids],
    options: DecodeOptions,
    size: int,
    rounds: int,
) -> list[str]:
    """Table rows: the median speed, how much faster zhen is, and how many outputs are the same."""
    seconds: dict[str, list[float]] = {name: [] for name in decoders}
    outputs = {}
    for decode in decoders.values():
        decode(sources[:size], options, size)  # warms up
    for _ in range(rounds):
        for name, decode in decoders.items():
            begin = time.perf_counter()
            outputs[name] = decode(sources, options, size)
            seconds[name].append(time.perf_counter() - begin)
    rows = []
    for name, own in seconds.items():
        ratios = sorted(its / ours for its, ours in zip(own, seconds["zhen"], strict=True))
        same = sum(its == ours for its, ours in zip(outputs[name], outputs["zhen"], strict=True))
        rows.append(
            f"{name} | {len(sources) / median(own):.1f} | {median(ratios):.2f} "
            f"| {ratios[0]:.2f}–{ratios[-1]:.2f} | {same} of {len(sources)}"
        )
    return rows


def profile(decode: Decoder, sources: list[Ids], options: DecodeOptions, size: int) -> str:
    """Where the time goes, by operator."""
    decode(sources[:size], options, size)  # warms up
    with torch.profiler.profile() as profiler:
        decode(sources, options, size)
    return profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=15)


def read_sources(text: Path | None, checkpoint: Path, translator: Translator) -> list[Ids]:
    """Sentences of `text`, or of the tests of the checkpoint's run, as ids with the end piece.

    Those that are empty or do not fit the model are left out. The order is random, and always the
    same: test files may be sorted in a way that a user's text is not.
    """
    texts = [text] if text else sorted(checkpoint.parent.parent.glob("test*.src"))
    lines: list[str] = []
    for path in texts:
        try:
            # Not splitlines(), which would break a sentence at U+2028 and its like.
            lines += path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeError) as error:
            raise UserError(f"--text: cannot read {path}: {error}") from error
    encoded = translator.tokenizer.source.encode([line.strip() for line in lines])
    sources = [[*ids, EOS] for ids in encoded if 0 < len(ids) < translator.model.max_positions]
    if not sources:
        place = text or checkpoint.parent.parent / "test*.src"
        raise UserError(f"no sentence in {place}: give a file of them with --text FILE")
    random.Random(0).shuffle(sources)
    return sources


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench decode",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("checkpoint", nargs="?", type=Path, help="default: the newest run's best")
    add("--text", type=Path, help="source sentences, one a line; default: the run's tests")
    add("--sentences", type=count, default=256, help="in batches of 64; default: 256")
    add("--single", type=count, default=32, help="sentences in batches of 1; default: 32")
    add("--rounds", type=count, default=3, help="default: 3")
    add("--threads", type=count, default=os.cpu_count(), help="default: one for each core")
    add("--longest", type=count, default=128, help="pieces of an output at most; default: 128")
    add("--profile", action="store_true", help="print where zhen's time goes, and no more")
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    asked = parse(argv)
    torch.set_num_threads(asked.threads)
    transformers.logging.set_verbosity_error()
    checkpoint = asked.checkpoint or newest_checkpoint(ROOT / "runs")
    translator = Translator.load(checkpoint)
    model, sources = translator.model, read_sources(asked.text, checkpoint, translator)
    longest = min(asked.longest, model.max_positions)
    settings = [
        (search, size, DecodeOptions(num_beams=num_beams, max_new_tokens=longest))
        for search, num_beams in SEARCHES.items()
        for size in BATCHES
    ]
    part = {size: sources[: asked.single if size == 1 else asked.sentences] for size in BATCHES}
    if asked.profile:
        for search, size, options in settings:
            print(f"{search}, batch {size}, {len(part[size])} sentences")
            print(profile(partial(by_zhen, model), part[size], options, size))
        return

    peer = to_transformers(model, bos_id=BOS, eos_id=EOS)
    decoders: dict[str, Decoder] = {
        "zhen": partial(by_zhen, model),
        "transformers": partial(by_transformers, peer),
        SORTED: partial(by_transformers, peer, sort=True),
        "CTranslate2": partial(by_ctranslate2, to_ctranslate2(peer, asked.threads)),
    }
    print(
        f"{cpu_name()}, {asked.threads} threads; Python {platform.python_version()}, torch "
        f"{torch.__version__}, transformers {transformers.__version__}, CTranslate2 "
        f"{ctranslate2.__version__}; {sum(p.numel() for p in model.parameters()):,} parameters, "
        f"outputs of at most {longest} pieces, {asked.rounds} rounds.\n"
    )
    header = "search | batch | decoder | sentences/s | zhen / decoder | least–most | output as zhen"
    print(f"| {header} |", "|" + "---|" * (header.count("|") + 1), sep="\n")
    for search, size, options in settings:
        # One sentence at a time, there is nothing to sort.
        turns = {name: each for name, each in decoders.items() if size > 1 or name != SORTED}
        for row in measure(turns, part[size], options, size, asked.rounds):
            print(f"| {search} | {size} | {row} |", flush=True)
