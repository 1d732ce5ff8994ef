"""Reading files of pairs: one pair a line, the two sentences separated by a tab.

Lines end with `\\n` or `\\r\\n` and nothing else: U+2028, NEL and their like stay inside the text,
where other readers would split a pair in two. A byte-order mark is no part of the text.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zhen.errors import UserError


@dataclass(frozen=True)
class Corpus:
    """The pairs of one split, as written, in file order."""

    sources: list[str]
    targets: list[str]
    fingerprint: str  # SHA-256 of the pairs, the same for \n and \r\n files

    def __len__(self) -> int:
        return len(self.sources)

    def texts(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        """Sources and targets of the pairs from `start` to before `stop`."""
        return self.sources[start:stop], self.targets[start:stop]


def read_corpus(
    path: Path, *, key: str, languages: Sequence[str], source_lang: str, target_lang: str
) -> Corpus:
    """Read a TSV of pairs.

    Args:
        path: the file.
        key: the configuration key that names it, for messages.
        languages: what its columns hold, in order.
        source_lang: the column to translate from.
        target_lang: the column to translate into.

    Raises:
        UserError: the file is missing or empty, is not UTF-8, or a line has not exactly one
            non-empty sentence for each language; names the file and the line.
    """
    pairs: list[list[str]] = []
    for number, line in enumerate(_lines(path, key), start=1):
        fields = line.split("\t")
        if len(fields) != len(languages):
            raise UserError(
                f"{key}: {path}:{number}: expected {len(languages)} sentences separated by a tab"
                f" ({' TAB '.join(languages)}), but found {len(fields)}: {_short(line)}"
            )
        for language, field in zip(languages, fields, strict=True):
            if not field.strip():
                raise UserError(
                    f"{key}: {path}:{number}: the {language} side is empty: {_short(line)};"
                    " write the sentence or delete the line"
                )
        pairs.append(fields)
    if not pairs:
        raise UserError(f"{key}: {path} has no pairs; write one pair a line, separated by a tab")
    source, target = languages.index(source_lang), languages.index(target_lang)
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(f"{pair[source]}\t{pair[target]}\n".encode())
    return Corpus(
        [pair[source] for pair in pairs], [pair[target] for pair in pairs], digest.hexdigest()
    )


def _lines(path: Path, key: str) -> list[str]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{key}: {path} does not exist; give the path of a TSV of pairs") from None
    except OSError as error:
        raise UserError(f"{key}: cannot read {path}: {error.strerror}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The decoder counts from after the byte-order mark; so does `error.object`.
        number = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{key}: {path}:{number}: byte 0x{error.object[error.start]:02X} is not UTF-8;"
            " convert the file to UTF-8"
        ) from error
    lines = text.split("\n")
    if lines[-1] == "":  # the end of the last line, not a line of its own
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _short(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")
