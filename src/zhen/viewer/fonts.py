"""Noto Sans SC, so that Chinese shows on machines that have no Chinese font."""

from collections.abc import Iterable
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

FAMILY = "Noto Sans SC"


def font_file() -> Path:
    """The font's TTF, 10 MB, in the package `zhplot`.

    It is looked up and not imported: importing zhplot changes matplotlib's settings.
    """
    return Path(str(distribution("zhplot").locate_file("zhplot/fonts/NotoSansSC-Regular.ttf")))


def cut_font(texts: Iterable[str]) -> bytes:
    """The font as WOFF, with the characters of these texts and of ASCII alone."""
    subsetter = Subsetter(Options(hinting=False, layout_features=[]))
    subsetter.populate(text="".join([*map(chr, range(0x20, 0x7F)), *texts]))
    content = BytesIO()
    with TTFont(font_file(), lazy=True) as font:
        subsetter.subset(font)
        font.flavor = "woff"
        font.save(content)
    return content.getvalue()
