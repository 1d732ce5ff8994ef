"""The report of `make compare` as one HTML page that needs nothing beside itself."""

from collections.abc import Iterator
from typing import Any

from plotly.offline import get_plotlyjs

from zhen.viewer.template import as_json, fill


def comparison_page(content: dict[str, Any]) -> str:
    """The page `comparison.html` with its content, plotly's script and a font put in.

    Args:
        content: `zhen.runs.report.content(...)`.
    """
    parts = {"plotly": get_plotlyjs(), "data": as_json(content)}
    return fill("comparison.html", parts, _texts(content))


def _texts(node: Any) -> Iterator[str]:
    """Every text that is shown, for the font."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
