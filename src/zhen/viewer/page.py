"""One HTML page that shows every layer and head, and needs nothing beside itself."""

from collections.abc import Sequence

from plotly.offline import get_plotlyjs

from zhen.viewer.look import AttentionMap
from zhen.viewer.template import as_json, fill

PARTS = 10_000  # weights are written as whole parts of 1


def page(
    maps: Sequence[AttentionMap],
    source: str,
    target: str,
    layer: int | None = None,
    head: int | None = None,
) -> str:
    """The page `page.html` with the maps, plotly's script and a font put in.

    Args:
        source: the sentence, for the heading.
        target: its translation.
        layer: the one to begin with, from 1; None for the mean of all.
        head: the same of heads.
    """
    content = {
        "source": source,
        "target": target,
        "layer": layer,
        "head": head,
        "parts": PARTS,
        "maps": [
            {
                "title": each.title,
                "queries": each.queries,
                "keys": each.keys,
                "following": each.following,
                "weights": (each.weights * PARTS).round().int().tolist(),
            }
            for each in maps
        ],
    }
    labels = [label for each in maps for label in (*each.queries, *each.keys)]
    parts = {"plotly": get_plotlyjs(), "data": as_json(content)}
    return fill("page.html", parts, [*labels, source, target])
