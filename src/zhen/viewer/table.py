"""The weights in print: each piece, and the pieces that it looks at most."""

import unicodedata
from collections.abc import Sequence

from zhen.viewer.look import AttentionMap

STRONGEST = 6  # in a row


def table(maps: Sequence[AttentionMap], layer: int | None, head: int | None) -> str:
    """For each map a block of text, a line for each query, its strongest keys first.

    Weights that round to 0.00 are left out, and with them what a mask hides.

    Args:
        layer: from 1; None for the mean of all.
        head: from 1; None for the mean of all.
    """
    return "\n\n".join(_block(each, layer, head) for each in maps)


def _block(each: AttentionMap, layer: int | None, head: int | None) -> str:
    layers, heads = each.weights.shape[:2]
    where = f"layer: {layer or 'mean'} of {layers}, head: {head or 'mean'} of {heads}"
    room = max(map(columns, each.queries))
    lines = [f"{each.title} ({where}): each piece and what it looks at"]
    for query, weights in zip(each.queries, each.mean(layer, head).tolist(), strict=True):
        ranked = sorted(zip(weights, each.keys, strict=True), key=lambda pair: -pair[0])
        looked_at = [f"{key} {weight:.2f}" for weight, key in ranked if weight >= 0.005]
        padding = " " * (room - columns(query))
        lines.append(f"  {query}{padding}  {'  '.join(looked_at[:STRONGEST])}")
    return "\n".join(lines)


def columns(text: str) -> int:
    """The columns that a text takes on a terminal: two for a Chinese character."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
