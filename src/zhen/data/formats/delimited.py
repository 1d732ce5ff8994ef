"""TSV, where a tab always ends a column, and CSV, where quotes may enclose commas and lines.

Line 1 names the columns if `header` says so. Where that is null, it does so in a CSV; where columns
are chosen by name; and where two of its fields are the codes of the languages, which is no pair.
"""

import csv
from collections.abc import Iterable, Iterator
from itertools import chain

from zhen.data.formats.layout import Layout
from zhen.data.formats.lines import LONGEST, InputFile, Lines, short
from zhen.data.source import Fault, Item

Row = tuple[int, list[str]]  # number of its first line, fields


def read_tsv(file: InputFile, layout: Layout) -> Iterator[Item]:
    """The pairs of a TSV."""
    lines = Lines(file)
    yield from _pairs(_split(lines), file, layout, "\t", header=False)
    yield from lines.notes()


def read_csv(file: InputFile, layout: Layout) -> Iterator[Item]:
    """The pairs of a CSV as RFC 4180 describes it; a line end inside quotes is read as `\\n`."""
    lines = Lines(file)
    yield from _pairs(_parsed(lines, file), file, layout, ",", header=True)
    yield from lines.notes()


def _split(lines: Lines) -> Iterator[Row | Fault]:
    for number, line in enumerate(lines, start=1):
        yield (number, line.split("\t")) if isinstance(line, str) else line


def _parsed(lines: Lines, file: InputFile) -> Iterator[Row | Fault]:
    numbers: list[int] = []  # of the lines that the parser took for this record
    faults: list[Fault] = []

    def taken() -> Iterator[str]:
        for number, line in enumerate(lines, start=1):
            if isinstance(line, Fault):
                faults.append(line)
            else:
                numbers.append(number)
                yield line + "\n"

    csv.field_size_limit(LONGEST)  # of all readers; the usual one is shorter than a long text
    records = csv.reader(taken(), strict=True)
    while True:
        row: Row | Fault | None = None
        try:
            fields = next(records, None)
            if fields is not None:
                row = numbers[0], fields
        except csv.Error as error:
            reason = str(error).split(" - ")[0]  # without advice for programmers
            message = f"no CSV ({reason}); enclose a text with quotes or line ends in quotes"
            row = Fault("csv", file.name, numbers[0], message)
        yield from faults
        if row is None:
            return
        yield row
        numbers.clear()
        faults.clear()


def _pairs(
    rows: Iterable[Row | Fault], file: InputFile, layout: Layout, separator: str, header: bool
) -> Iterator[Item]:
    """The pairs in `rows`, of which each must have as many fields as the first.

    Args:
        header: whether the first row names the columns, where neither the layout nor the row tells.
    """
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    if layout.header is not None:
        header = layout.header
    else:
        header = header or layout.named
        if not isinstance(first, Fault):
            header = header or set(layout.languages) <= set(first[1])
    count: int | None = None  # fields of a row
    source, target = layout.numbers if not layout.named else (0, 0)
    if header:
        places = first if isinstance(first, Fault) else _places(first[1], file, layout)
        if isinstance(places, Fault):  # without its names, nothing of the file can be read
            yield places
            return
        source, target, count = places
    else:
        rows = chain([first], rows)
        if layout.columns is None:
            count = 2
    for row in rows:
        if isinstance(row, Fault):
            yield row
            continue
        number, fields = row
        if len(fields) != count:
            if count is None and len(fields) > max(source, target):
                count = len(fields)
            else:
                wanted = _wanted(layout, separator, header, count)
                found = f"but found {len(fields)}: {short(separator.join(fields))}"
                yield Fault("columns", file.name, number, f"expected {wanted}, {found}")
                continue
        yield number, fields[source], fields[target]


def _places(names: list[str], file: InputFile, layout: Layout) -> tuple[int, int, int] | Fault:
    """The columns of source and target and the number of columns, by a line of names."""
    if layout.columns is not None and not layout.named:
        if max(layout.numbers) < len(names):
            return *layout.numbers, len(names)
        wanted = _wanted(layout, "", header=False, count=None)
        return Fault("columns", file.name, 1, f"expected {wanted}, but found {len(names)}")
    missing = layout.missing(names, "column")
    if missing:
        remedy = f"name the two with {file.option('columns')}, or, if line 1 is a pair, say"
        remedy += f" {file.option('header')}=false"
        return Fault("columns", file.name, 1, f"{missing}: {remedy}")
    for name in layout.names:
        if names.count(name) > 1:
            message = f"{names.count(name)} columns are named {name!r}; rename all but one"
            return Fault("columns", file.name, 1, message)
    source, target = layout.names
    return names.index(source), names.index(target), len(names)


def _wanted(layout: Layout, separator: str, header: bool, count: int | None) -> str:
    """What a row should have, in words."""
    if count is None:
        return f"at least {max(layout.numbers) + 1} columns"
    if header or layout.columns is not None:
        return f"{count} columns, as in the first line"
    if separator == "\t":
        return f"2 sentences separated by a tab ({' TAB '.join(layout.languages)})"
    return f"2 sentences separated by a comma ({', '.join(layout.languages)})"
