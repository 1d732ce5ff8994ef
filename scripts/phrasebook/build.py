"""Writes data/phrasebook/*.tsv from the grammar and the hand-written pairs.

    python scripts/phrasebook/build.py            write the files
    python scripts/phrasebook/build.py --check    only compare; exits with 1 if one differs

Needs nothing but the standard library. The result depends on nothing but this folder and
data/phrasebook/handwritten/, and is the same to the byte on every machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file: find the package it belongs to
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.phrasebook import patterns  # noqa: F401  (importing it registers the patterns)
from scripts.phrasebook.grammar import Pair, generate, key
from scripts.phrasebook.split import split

DATA = Path(__file__).resolve().parents[2] / "data" / "phrasebook"


def read_handwritten(folder: Path, taken: set[str]) -> list[Pair]:
    """Reads every *.tsv of a folder.

    A pair that shares a side with an earlier one is left out; `taken` collects the sides.
    """
    pairs = []
    for path in sorted(folder.glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            zh, en = line.split("\t")
            if key(zh) not in taken and key(en) not in taken:
                taken.update((key(zh), key(en)))
                pairs.append(Pair(zh, en, ""))
    return pairs


def build(data: Path = DATA) -> dict[str, list[Pair]]:
    """Makes the corpus: the name of each split and its pairs, in file order."""
    taken: set[str] = set()
    handwritten = read_handwritten(data / "handwritten", taken)
    return split(generate(taken), handwritten)


def render(pairs: list[Pair]) -> bytes:
    """A split as the bytes of its file: Chinese, tab, English, newline."""
    return "".join(f"{pair.zh}\t{pair.en}\n" for pair in pairs).encode()


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the phrasebook corpus.")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    args = parser.parse_args()
    status = 0
    for name, pairs in build().items():
        path, text = DATA / f"{name}.tsv", render(pairs)
        if not args.check:
            path.write_bytes(text)
        elif not path.exists() or path.read_bytes() != text:
            print(f"{path} differs from what the grammar makes; run build.py", file=sys.stderr)
            status = 1
        by_hand = sum(not pair.pattern for pair in pairs)
        print(f"{name:17}{len(pairs):6} pairs, {by_hand:5} of them hand-written")
    return status


if __name__ == "__main__":
    sys.exit(main())
