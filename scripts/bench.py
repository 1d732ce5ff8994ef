"""Measure something and print a Markdown table, with the machine: make bench ARGS='WHAT ...'

    make bench ARGS='decode CHECKPOINT'       decoding beside transformers and CTranslate2
    make bench ARGS='data --pairs 1000000'    the way from a file of pairs to batches
    make bench ARGS='train --corpus T'        training beside its peers

ARGS='WHAT --help' tells the rest.
"""

import importlib
import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file: find the package it belongs to
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from zhen.errors import UserError, one_line

BENCHES = {
    "decode": "scripts.bench_decode",
    "data": "scripts.bench_data",
    "train": "scripts.bench_train",
}


def main(argv: list[str]) -> None:
    what = argv[0] if argv else None
    if what in ("-h", "--help"):
        print(__doc__, end="")
    elif what in BENCHES:
        # Imported only now: each needs libraries that the other does without.
        importlib.import_module(BENCHES[what]).main(argv[1:])
    else:
        raise UserError(
            f"bench: say what to measure, {' or '.join(BENCHES)}, "
            + (f"but not {what}: " if what else "as in: ")
            + "make bench ARGS='decode CHECKPOINT'"
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {one_line(error)}")
