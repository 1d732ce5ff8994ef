"""Translate line by line: N lines in, N lines out, in order.

With several translations of a line (`decode.num_return_sequences`), each is a line: the number of
its source, its score and the text, separated by tabs.

    echo "你很漂亮。" | python -m zhen.translate

Reads configs/translate.yaml. On a terminal each line is answered at once; otherwise lines are
translated in blocks.
"""

import io
import itertools
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from omegaconf import DictConfig

from zhen.config import build, run_command
from zhen.errors import UserError

BLOCK = 2048  # lines sorted by length and translated together


def translate(cfg: DictConfig) -> None:
    """Translate `cfg.input`, or standard input, with `cfg.ckpt` or the newest best checkpoint."""
    from zhen.files import check_writable, write_atomic
    from zhen.runs.directory import newest_checkpoint
    from zhen.translator import Translator, pick_device

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    decode = build(cfg.decode, "decode")
    if cfg.output:
        check_writable(cfg.output, key="output")
    checkpoint = Path(cfg.ckpt) if cfg.ckpt else newest_checkpoint(cfg.paths.runs)
    device = pick_device(cfg.device)
    translator = Translator.load(checkpoint, device=device, weights=cfg.weights)
    source = open_input(cfg.input)
    if sys.stderr.isatty():
        hint = "; one sentence a line, end with Ctrl-D" if source.isatty() else ""
        direction = f"{translator.source_lang} to {translator.target_lang}"
        print(f"{checkpoint}: {direction}{hint}", file=sys.stderr)
    # A file appears whole or not at all; the terminal or pipe gets each block as it is ready.
    target: BinaryIO = io.BytesIO() if cfg.output else sys.stdout.buffer
    lines = decoded(source, name=cfg.input or "standard input")
    done = 0
    while block := list(itertools.islice(lines, 1 if source.isatty() else BLOCK)):
        found = translator.n_best(block, decode, cfg.batch.tokens, first_line=done + 1)
        for number, translations in enumerate(found, start=done + 1):
            for each in translations:
                about = f"{number}\t{each.score:.6g}\t" if decode.num_return_sequences > 1 else ""
                target.write(f"{about}{each.text}\n".encode())
        target.flush()
        done += len(block)
    if isinstance(target, io.BytesIO):
        write_atomic(cfg.output, target.getvalue(), key="output")


def open_input(path: str | None) -> BinaryIO:
    """The file, or standard input for None.

    Raises:
        UserError: the file cannot be read.
    """
    if path is None:
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"input: cannot read {path}: {error.strerror}") from error


def decoded(source: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a byte stream, ended by `\\n` alone, without a byte-order mark.

    Raises:
        UserError: a line is not UTF-8.
    """
    for number, line in enumerate(source, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"input: {name}:{number}: byte 0x{error.object[error.start]:02X} is not UTF-8;"
                " convert the text to UTF-8"
            ) from error
        yield text.removesuffix("\n")


if __name__ == "__main__":
    run_command(translate, config_name="translate")
