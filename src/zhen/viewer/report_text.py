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
    lines = [[name.removesuffix("#") for name in table.head], *table.rows]
    # Not of the last column: it may hold whole sentences, and nothing comes after it.
    wide = [max(map(columns, cells)) for cells in list(zip(*lines, strict=True))[:-1]]
    padded = []
    for *cells, last in lines:
        shown = []
        for cell, width, name in zip(cells, wide, table.head, strict=False):
            space = " " * (width - columns(cell))
            shown.append(space + cell if name.endswith("#") else cell + space)
        padded.append("  ".join([*shown, last]))
    return padded


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
