"""One HTML page that shows every layer and head, and needs nothing beside itself."""

import base64
import json
import re
from collections.abc import Sequence
from importlib.resources import files

from plotly.offline import get_plotlyjs

from zhen.viewer.fonts import cut_font
from zhen.viewer.look import AttentionMap

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
    # As JSON, ASCII alone and without a `<`, no text can end the script that it stands in.
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    labels = [label for each in maps for label in (*each.queries, *each.keys)]
    template = files("zhen.viewer").joinpath("page.html").read_text(encoding="utf-8")
    parts = {
        "plotly": get_plotlyjs(),
        "font": base64.b64encode(cut_font([*labels, source, target, template])).decode("ascii"),
        "data": data,
    }
    # In one pass: what is put in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)
