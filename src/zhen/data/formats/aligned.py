"""Two plain files, line by line: what Moses reads, and OPUS gives."""

from collections.abc import Iterator
from itertools import zip_longest

from zhen.data.formats.lines import InputFile, Lines
from zhen.data.source import Fault, Item


def read_aligned(source: InputFile, target: InputFile) -> Iterator[Item]:
    """The pairs of two files of which the lines with the same number belong together."""
    sources, targets = Lines(source), Lines(target)
    for number, (one, other) in enumerate(zip_longest(sources, targets), start=1):
        if isinstance(one, str) and isinstance(other, str):
            yield number, one, other
        else:  # undecodable on one side or both, or, where a file has ended, None
            yield from (each for each in (one, other) if isinstance(each, Fault))
    yield from sources.notes()
    yield from targets.notes()
    if sources.count != targets.count:
        message = (
            f"has {sources.count} lines, but {target.name} has {targets.count}: where a line is"
            " missing, the pairs after it are wrong; find it and put it back"
        )
        yield Fault("lines", source.name, None, message)
