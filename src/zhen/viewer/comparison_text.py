"""Tables of runs: in columns for people, as tab-separated values for programs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

GAP, WIDEST = 2, 40  # columns of the terminal: between two cells, and of the widest
STYLES = {
    "finished": "green",
    "running": "cyan",
    "pruned": "yellow",
    "interrupted": "yellow",
    "crashed": "red",
}


@dataclass(frozen=True)
class Head:
    """What stands above a column."""

    key: str  # for a program
    title: str = ""  # for people, may have several lines; empty: not shown to them
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells, each as a program reads it and as people do."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[str]]
    shown: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = field(default_factory=frozenset)  # cells: row, column


def print_tables(tables: Sequence[Table]) -> None:
    """To a terminal in columns that fit it, else as tab-separated values in full."""
    if sys.stdout.isatty():
        print_for_people(tables, Console(highlight=False))
    else:
        print("\n".join(map(as_tsv, tables)), end="")


def as_tsv(table: Table) -> str:
    """A line for the heads and one for each row."""
    lines = [[head.key for head in table.heads], *table.rows]
    return "".join("\t".join(" ".join(cell.split()) for cell in line) + "\n" for line in lines)


def print_for_people(tables: Sequence[Table], console: Console) -> None:
    """What is too wide goes on below, with the first column again, so that nothing is left out."""
    for i, table in enumerate(tables):
        if i:
            console.print()
        if table.title:
            console.print(Text(table.title, style="bold"))
        for part, columns in enumerate(folded(table, console.width)):
            if part:
                console.print()
            console.print(_rich(table, columns))


def folded(table: Table, width: int) -> list[list[int]]:
    """The columns of each part of a table, so that none is wider than the terminal."""
    there = [i for i, head in enumerate(table.heads) if head.title]
    wide = {i: _width(table, i) for i in there}
    first, *others = there
    parts, room = [[first]], width - wide[first]
    for i in others:
        if wide[i] + GAP > room and len(parts[-1]) > 1:
            parts.append([first])
            room = width - wide[first]
        parts[-1].append(i)
        room -= wide[i] + GAP
    return parts


def _width(table: Table, column: int) -> int:
    cells = [*table.heads[column].title.split("\n"), *(row[column] for row in table.shown)]
    return min(WIDEST, max(map(cell_len, cells)))


def _rich(table: Table, columns: Sequence[int]) -> RichTable:
    made = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for i in columns:
        head = table.heads[i]
        made.add_column(
            Text(head.title),
            justify="right" if head.is_number else "left",
            vertical="bottom",
            no_wrap=True,
            overflow="ellipsis",
            max_width=WIDEST,
        )
    for number, row in enumerate(table.shown):
        made.add_row(
            *(
                Text(row[i], "bold" if (number, i) in table.best else STYLES.get(row[i], ""))
                for i in columns
            )
        )
    return made
