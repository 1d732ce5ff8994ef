"""Measure what is usually said of attention: python scripts/measure_attention.py

Prints the three tables of docs/attention.md: the parameters of a layer, the time of all positions
at once against one step at a time, and the path between two positions. The times want a machine
that does nothing else.
"""

import time
from collections.abc import Callable
from itertools import count
from statistics import median

import torch
from torch import Tensor, nn

from zhen.model import DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention

D, H, F = 512, 8, 2048
BATCH, REPEATS = 4, 5
LENGTHS = (16, 64, 256, 512)
PATH_LENGTHS = (4, 16, 64)
Function = Callable[[Tensor], Tensor]


def parameters() -> list[str]:
    """The formula of each layer beside the count."""
    attention, feed_forward, norm = 4 * (D * D + D), 2 * D * F + F + D, 2 * D
    layer = {"d_model": D, "num_heads": H, "d_ff": F, "dropout": 0.0, "norm": "post"}
    formulas: list[tuple[nn.Module, str, int]] = [
        (MultiHeadAttention(d_model=D, num_heads=H), "A = 4 (D² + D)", attention),
        (FeedForward(d_model=D, d_ff=F), "N = 2 D F + F + D", feed_forward),
        (EncoderLayer(**layer), "A + N + 2 · 2 D", attention + feed_forward + 2 * norm),
        (DecoderLayer(**layer), "2 A + N + 3 · 2 D", 2 * attention + feed_forward + 3 * norm),
        (nn.GRU(D, D), "6 (D² + D)", 6 * (D * D + D)),
    ]
    rows = []
    for module, formula, expected in formulas:
        counted = sum(parameter.numel() for parameter in module.parameters())
        rows.append(f"| `{type(module).__name__}` | {formula} | {expected:,} | {counted:,} |")
    return rows


def milliseconds(function: Function, x: Tensor) -> float:
    begin = time.perf_counter()
    function(x).sum().backward()
    return (time.perf_counter() - begin) * 1000


def times() -> list[str]:
    """Forward and backward of the two layers in turn, so that both meet the same machine."""
    attention, gru = MultiHeadAttention(d_model=D, num_heads=H), nn.GRU(D, D, batch_first=True)
    rows = []
    for length in LENGTHS:
        x = torch.randn(BATCH, length, D, requires_grad=True)
        pairs = [
            (milliseconds(lambda x: attention(x, x), x), milliseconds(lambda x: gru(x)[0], x))
            for _ in range(REPEATS + 2)
        ][2:]  # two to warm up
        at_once, steps = (median(column) for column in zip(*pairs, strict=True))
        ratios = sorted(step / once for once, step in pairs)
        rows.append(
            f"| {length} | {at_once:.1f} | {steps:.1f} "
            f"| {median(ratios):.1f} | {ratios[0]:.1f} | {ratios[-1]:.1f} |"
        )
    return rows


def reach(last: Function, x: Tensor) -> tuple[bool, float]:
    """Whether the last output depends on the first input, and how much beside the last input."""
    (gradient,) = torch.autograd.grad(last(x).sum(), x)
    first, own = gradient[0].norm().item(), gradient[-1].norm().item()
    return first > 0, first / own


def paths() -> list[str]:
    """Through how many layers or steps the first input reaches the last output."""
    width = 64
    attention = MultiHeadAttention(d_model=width, num_heads=H).double()
    gru = nn.GRUCell(width, width).double()

    def layers(x: Tensor, number: int) -> Tensor:
        for _ in range(number):
            x = attention(x[None], x[None])[0]
        return x[-1]

    def steps(x: Tensor, number: int) -> Tensor:
        """Gradients flow through the last `number` steps alone."""
        state = x.new_zeros(width)
        for t, each in enumerate(x):
            state = gru(each, state.detach() if t == len(x) - number else state)
        return state

    rows = []
    for length in PATH_LENGTHS:
        x = torch.randn(length, width, dtype=torch.float64, requires_grad=True)
        cells = []
        for function in (layers, steps):
            for number in count(1):
                reached, share = reach(lambda x, f=function, n=number: f(x, n), x)
                if reached:
                    break
            cells.append((number, share))
        (layer_count, layer_share), (step_count, step_share) = cells
        rows.append(
            f"| {length} | {layer_count} | {step_count} | {layer_share:.1g} | {step_share:.1g} |"
        )
    return rows


def main() -> None:
    for header, measure in (
        ("layer | formula | by the formula | counted", parameters),
        ("length | attention, ms | GRU, ms | GRU / attention | least | most", times),
        ("length | layers | GRU steps | gradient share, attention | gradient share, GRU", paths),
    ):
        torch.manual_seed(0)
        print(f"| {header} |", "|" + "---|" * (header.count("|") + 1), *measure(), "", sep="\n")


if __name__ == "__main__":
    main()
