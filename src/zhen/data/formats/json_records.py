"""JSON Lines, one object a line, and JSON files that are one array of objects.

An object has the two sentences under the names of the columns, or inside of `translation`.
"""

import codecs
import json
from collections.abc import Iterator
from typing import Any

from zhen.data.formats.layout import NESTED, Layout
from zhen.data.formats.lines import InputFile, Lines, not_utf8, short
from zhen.data.progress import underway
from zhen.data.source import Fault, Item


def read_json_lines(file: InputFile, layout: Layout) -> Iterator[Item]:
    """The pairs of a JSON Lines file."""
    lines = Lines(file)
    for number, line in enumerate(lines, start=1):
        if isinstance(line, Fault):
            yield line
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", error)
            yield Fault("json", file.name, number, f"no JSON ({reason}): {short(line)}")
        else:
            yield _pair(record, file, layout, number)
    yield from lines.notes()


def read_json(file: InputFile, layout: Layout) -> Iterator[Item]:
    """The pairs of a file that is one array of objects, or JSON Lines under the name of JSON.

    An array is read as a whole, and its items are counted instead of lines: a large corpus is
    better off as JSON Lines.
    """
    start = next(file.blocks(), b"").removeprefix(codecs.BOM_UTF8).lstrip()
    if not start.startswith(b"["):
        yield from read_json_lines(file, layout)
        return
    try:
        with underway(f"reading all of {file.name}"):
            records = json.loads(b"".join(file.blocks()).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        yield Fault("encoding", file.name, line, not_utf8(error))
    except (ValueError, RecursionError) as error:
        reason, line = getattr(error, "msg", error), getattr(error, "lineno", 1)
        yield Fault("json", file.name, line, f"no JSON ({reason}); nothing of the file is read")
    else:
        for number, record in enumerate(records, start=1):
            yield _pair(record, file, layout, number)


def _pair(record: Any, file: InputFile, layout: Layout, number: int) -> Item:
    if isinstance(record, dict) and isinstance(record.get(NESTED), dict):
        # Names at the top were chosen for it, or are the languages themselves.
        record = record if not layout.missing(record, "") else record[NESTED]
    if not isinstance(record, dict):
        found = short(json.dumps(record, ensure_ascii=False))
        message = f"expected an object with the two sentences, but found {found}"
        return Fault("json", file.name, number, message)
    if missing := layout.missing(record, "key"):
        remedy = f"name the two with {file.option('columns')}"
        return Fault("key", file.name, number, f"{missing}: {remedy}")
    source, target = (record[name] for name in layout.names)
    for name, text in zip(layout.names, (source, target), strict=True):
        if not isinstance(text, str):
            found = short(json.dumps(text, ensure_ascii=False))
            message = f"{name!r} must be a string, but is {found}; write the sentence"
            return Fault("value", file.name, number, message)
        try:
            text.encode()
        except UnicodeEncodeError:
            message = f"{name!r} has half of a surrogate pair, which is no character"
            return Fault("encoding", file.name, number, message)
    return number, source, target
