"""A page's template with its parts put in, so that one file is all of the page."""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from zhen.viewer.fonts import cut_font


def fill(name: str, parts: Mapping[str, str], texts: Iterable[str] = ()) -> str:
    """The template NAME of this package, each `{{part}}` replaced.

    Its part `font` is made here, with the characters of the template and of `texts`.

    Args:
        parts: what to put in, by name.
        texts: what the page will show beside that.
    """
    template = files("zhen.viewer").joinpath(name).read_text(encoding="utf-8")
    font = cut_font([template, *texts])
    every = {**parts, "font": base64.b64encode(font).decode("ascii")}
    # In one pass: what is put in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: every[match[1]], template)


def as_json(content: Any) -> str:
    """JSON for a `<script>`: ASCII alone and without a `<`, so that no text can end the script."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
