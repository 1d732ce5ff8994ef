"""All layers and heads in one picture: a PNG to look over, or to put into a text."""

import math
import warnings
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib
from matplotlib.axis import Axis
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from zhen.viewer.fonts import FAMILY, font_file
from zhen.viewer.look import AttentionMap
from zhen.viewer.table import columns

# Inches. The squares of a side take at most LIMIT, unless SMALLEST_MAP asks for more, so that a
# viewer of pictures can still open it; titles and labels come on top.
SQUARE, SMALLEST_MAP, LIMIT = 0.18, 1.1, 60.0
HEADING, TITLE, GAP = 0.45, 0.25, 0.15
LINE, LETTER = 0.12, 0.06  # a label's height, and the width of one of its columns
DPI = 100
# The same for every map. The root lets the small weights of a long sentence show.
SHADE = PowerNorm(0.5, vmin=0, vmax=1)
STYLE: dict[Any, Any] = {
    "font.family": [FAMILY, "DejaVu Sans"],  # the second for what the first lacks
    "font.size": 7,
    "text.parse_math": False,  # a dollar is a piece like others
    "xtick.major.size": 2,
    "ytick.major.size": 2,
}


def picture(maps: Sequence[AttentionMap]) -> bytes:
    """A PNG with a row for each layer of each map and a column for each head.

    White is a weight of 0 and the darkest blue one of 1. A row of a map is a piece that looks, a
    column one that is looked at. Where there are more pieces than labels have room for, only every
    n-th has one.
    """
    fontManager.addfont(font_file())
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # drawn as a box
        content = BytesIO()
        _draw(maps).savefig(content, format="png")
    return content.getvalue()


def _draw(maps: Sequence[AttentionMap]) -> Figure:
    heads = maps[0].weights.size(1)
    wide = heads * max(len(each.keys) for each in maps)
    high = sum(len(each.weights) * len(each.queries) for each in maps)
    square = min(SQUARE, LIMIT / max(wide, high))

    def side(pieces: int) -> float:
        return max(SMALLEST_MAP, pieces * square)

    margin = max(_room(each.queries) for each in maps)
    width = margin + heads * (max(side(len(each.keys)) for each in maps) + GAP)
    height = GAP + sum(
        HEADING + _room(each.keys) + len(each.weights) * (side(len(each.queries)) + TITLE)
        for each in maps
    )
    figure = Figure(figsize=(width, height), dpi=DPI)
    top = height
    for each in maps:
        across, down = side(len(each.keys)), side(len(each.queries))
        figure.text(GAP / width, (top - HEADING / 2) / height, each.title, size=10, va="center")
        top -= HEADING
        for layer, of_layer in enumerate(each.weights.numpy()):
            top -= TITLE + down
            for head, weights in enumerate(of_layer):
                left = margin + head * (across + GAP)
                axes = figure.add_axes((left / width, top / height, across / width, down / height))
                axes.imshow(weights, cmap="Blues", norm=SHADE, aspect="auto")
                axes.set_title(f"layer {layer + 1}, head {head + 1}", pad=3)
                _label(axes.yaxis, each.queries if head == 0 else [], down)
                is_last = layer == len(each.weights) - 1
                _label(axes.xaxis, each.keys if is_last else [], across, rotation=90)
        top -= _room(each.keys)
    return figure


def _room(labels: Sequence[str]) -> float:
    return GAP + LETTER * max(map(columns, labels))


def _label(axis: Axis, labels: Sequence[str], length: float, rotation: int = 0) -> None:
    """Labels along an axis of this length, as many as it has lines for."""
    step = math.ceil(len(labels) * LINE / length)
    shown = range(0, len(labels), max(step, 1))
    axis.set_ticks(shown, [labels[i] for i in shown], rotation=rotation)
