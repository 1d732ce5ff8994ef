"""The report of `make data-check` as one HTML page that needs nothing beside itself."""

from collections.abc import Sequence
from html import escape

from zhen.data.report import Histogram, Section, Table
from zhen.viewer.template import fill

# Pixels of a histogram: a line, its labels, its longest bar, and the number after that.
LINE, LABELS, BAR, NUMBERS = 18, 90, 400, 90


def report_page(title: str, sections: Sequence[Section]) -> str:
    """The page `report.html` with the sections and a font put in."""
    parts = {
        "title": escape(title),
        "sections": "\n".join(
            "\n".join([f"<h2>{escape(each.title)}</h2>", *map(_block, each.blocks)])
            for each in sections
        ),
    }
    # HTML has no NUL: parsers drop it, keep it or replace it, each as it likes.
    parts = {name: part.replace("\x00", "\ufffd") for name, part in parts.items()}
    return fill("report.html", parts, parts.values())


def _block(block: str | Table | Histogram) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Histogram):
        return _histogram(block)
    return f"<p>{escape(block)}</p>"


def _table(table: Table) -> str:
    kinds = [' class="number"' if side == ">" else "" for side in table.align]

    def row(tag: str, cells: Sequence[str]) -> str:
        # <bdi>: Arabic in one cell must not turn around what stands beside it.
        return "".join(
            f"<{tag}{kind}><bdi>{escape(cell)}</bdi></{tag}>"
            for kind, cell in zip(kinds, cells, strict=True)
        )

    head = row("th", table.head)
    body = "\n".join(f"<tr>{row('td', cells)}</tr>" for cells in table.rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _histogram(histogram: Histogram) -> str:
    highest = max(height for _, height in histogram.bars)
    lines = []
    for i, (label, height) in enumerate(histogram.bars):
        top, length = i * LINE, BAR * height / highest
        lines += [
            f'<text x="{LABELS - 8}" y="{top + 13}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{LABELS}" y="{top + 2}" width="{length:.1f}" height="{LINE - 4}"/>',
            f'<text x="{LABELS + length + 6:.1f}" y="{top + 13}">{height:,}</text>',
        ]
    wide, high = LABELS + BAR + NUMBERS, LINE * len(histogram.bars)
    title = escape(histogram.title)
    return (
        f"<figure><figcaption>{title}</figcaption>\n"
        f'<svg width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" role="img"'
        f' aria-label="{title}">\n' + "\n".join(lines) + "\n</svg></figure>"
    )
