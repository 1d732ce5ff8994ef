"""The printed scores: a line for each piece, what it looks at most first, in straight columns."""

import torch

from zhen.viewer.look import AttentionMap
from zhen.viewer.table import columns, table

# One layer of two heads.
WEIGHTS = torch.tensor([[[[0.7, 0.3, 0.0], [0.1, 0.9, 0.0]], [[0.5, 0.1, 0.4], [0.3, 0.5, 0.2]]]])
MAP = AttentionMap("Cross-attention", ["你", "␣are"], ["很", "漂亮", "</s>"], None, WEIGHTS)


def test_the_mean() -> None:
    assert table([MAP], None, None) == (
        "Cross-attention (layer: mean of 1, head: mean of 2): each piece and what it looks at\n"
        "  你    很 0.60  漂亮 0.20  </s> 0.20\n"
        "  ␣are  漂亮 0.70  很 0.20  </s> 0.10"
    )


def test_one_layer_and_head_without_what_is_nothing() -> None:
    one, other = table([MAP, MAP], 1, 1).split("\n\n")
    assert (
        one
        == other
        == (
            "Cross-attention (layer: 1 of 1, head: 1 of 2): each piece and what it looks at\n"
            "  你    很 0.70  漂亮 0.30\n"
            "  ␣are  漂亮 0.90  很 0.10"
        )
    )


def test_a_long_row_ends_after_the_strongest() -> None:
    keys = [f"k{i}" for i in range(30)]
    weights = (torch.arange(30.0) / 435)[None, None, None]
    line = table([AttentionMap("x", ["q"], keys, None, weights)], None, None).splitlines()[1]
    assert line == "  q  k29 0.07  k28 0.06  k27 0.06  k26 0.06  k25 0.06  k24 0.06"


def test_columns_of_a_terminal() -> None:
    assert [columns(text) for text in ("", "abc", "漂亮", "，", "e\u0301", "␣")] == [
        0,
        3,
        4,
        2,
        1,
        1,
    ]
