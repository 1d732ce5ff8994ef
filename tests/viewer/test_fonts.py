"""The font has the Chinese characters, cut down to those that are asked for."""

import subprocess
import sys
from io import BytesIO

from fontTools.ttLib import TTFont

from zhen.viewer.fonts import FAMILY, cut_font, font_file


def test_the_cut_font_has_these_characters_and_ascii() -> None:
    content = cut_font(["蝴蝶", "它🦋"])
    characters = set(TTFont(BytesIO(content)).getBestCmap())
    assert characters == {*range(0x20, 0x7F), *map(ord, "蝴蝶它")}
    assert content[:4] == b"wOFF" and len(content) < 50_000


def test_the_family_is_the_font_s_own_name() -> None:
    assert TTFont(font_file())["name"].getDebugName(1) == FAMILY


def test_matplotlib_is_left_as_it_was() -> None:
    program = (
        "import sys, matplotlib; before = dict(matplotlib.rcParams);"
        "from zhen.viewer.fonts import cut_font; cut_font(['蝴']);"
        "assert 'zhplot' not in sys.modules and dict(matplotlib.rcParams) == before"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
