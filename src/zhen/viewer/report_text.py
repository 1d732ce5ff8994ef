"""The report of `make data-check` for a terminal."""

from collections.abc import Sequence

from zhen.data.report import Histogram, Section, Table
from zhen.viewer.table import columns

BAR = 40  # columns, the highest of a histogram


def report_text(sections: Sequence[Section]) -> str:
    """The sections one below the other, tables with their columns in line."""
    return "\n\n".join(
        "\n".join([section.title, *(_block(each) for each in section.blocks)])
        for section in sections
    )


def _block(block: str | Table | Histogram) -> str:
    if isinstance(block, Table):
        lines = _table(block)
    elif isinstance(block, Histogram):
        lines = _histogram(block)
    else:
        lines = [block]
    return "\n".join(f"  {line}".rstrip() for line in lines)


def _table(table: Table) -> list[str]:
    lines = [table.head, *table.rows]
    wide = [max(map(columns, cells)) for cells in zip(*lines, strict=True)]
    if table.align.endswith("<"):
        wide[-1] = 0  # it may hold whole sentences, and nothing comes after it
    return [
        "  ".join(
            " " * (width - columns(cell)) + cell
            if side == ">"
            else cell + " " * (width - columns(cell))
            for cell, width, side in zip(line, wide, table.align, strict=True)
        )
        for line in lines
    ]


def _histogram(histogram: Histogram) -> list[str]:
    highest = max(height for _, height in histogram.bars)
    wide = max(len(label) for label, _ in histogram.bars)
    return [
        histogram.title,
        *(
            f"{label:>{wide}} {'█' * round(BAR * height / highest)} {height:,}"
            for label, height in histogram.bars
        ),
    ]
