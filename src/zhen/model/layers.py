"""The encoder and the decoder block (Vaswani et al. 2017, sections 3.1 and 3.3, figure 1)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from .attention import MultiHeadAttention
from .dropout import Dropout


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, at each position alone (section 3.3, equation 2).

    Args:
        d_model: width of input and output, D.
        d_ff: width between the two matrices.
        activation: "relu" as in the paper, or "gelu".

    Raises:
        ValueError: `activation` is none of the two.
    """

    def __init__(
        self, *, d_model: int, d_ff: int, activation: Literal["relu", "gelu"] = "relu"
    ) -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"`activation` must be relu or gelu, but is {activation!r}")
        self.expand = nn.Linear(d_model, d_ff)
        self.activation = nn.ReLU() if activation == "relu" else nn.GELU()
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.contract(self.activation(self.expand(x)))


class AddNorm(nn.Module):
    """The residual connection and layer norm around every sub-layer.

    Post-norm, as in the paper (section 3.1): LayerNorm(x + Dropout(sublayer(x))).
    Pre-norm (Xiong et al. 2020): x + Dropout(sublayer(LayerNorm(x))), which trains without a
    long warm-up; the stack then ends with one more LayerNorm.

    Args:
        d_model: width, D.
        dropout: probability of dropping an element of the sub-layer's output.
        norm: "post" or "pre".

    Raises:
        ValueError: `norm` is none of the two.
    """

    def __init__(self, *, d_model: int, dropout: float, norm: Literal["pre", "post"]) -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f"`norm` must be pre or post, but is {norm!r}")
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, Add & Norm, feed-forward, Add & Norm (figure 1, left).

    Args:
        d_model: width, D.
        num_heads: heads, H; divides `d_model`.
        d_ff: inner width of the feed-forward network.
        dropout: residual dropout (section 5.4).
        norm: "post" (the paper) or "pre".
        activation: of the feed-forward network.

    Raises:
        ValueError: what `MultiHeadAttention`, `FeedForward` and `AddNorm` refuse.
    """

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        norm: Literal["pre", "post"],
        activation: Literal["relu", "gelu"] = "relu",
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model=d_model, num_heads=num_heads)
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff, activation=activation)
        self.add_norm_1 = AddNorm(d_model=d_model, dropout=dropout, norm=norm)
        self.add_norm_2 = AddNorm(d_model=d_model, dropout=dropout, norm=norm)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Encode x (B, S, D); mask is broadcastable to (B, H, S, S), True = attend."""
        x = self.add_norm_1(x, lambda y: self.self_attention(y, y, mask))
        return self.add_norm_2(x, self.feed_forward)


@dataclass
class LayerCache:
    """What one decoder layer keeps between steps; all are (B, H, positions, head_dim).

    Keys and values of the memory are projected once. A step adds those of the k newest positions,
    one for each beam of the sentence.
    """

    memory_keys: Tensor
    memory_values: Tensor
    keys: Tensor  # the first `length` positions are in use
    values: Tensor
    length: int = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add keys and values (B, H, k, head_dim) of the newest positions; gives all of them."""
        end = self.length + keys.size(2)
        if end > self.keys.size(2):  # the room doubles, so that few steps copy what is there
            self.keys, self.values = (F.pad(x, (0, 0, 0, end)) for x in (self.keys, self.values))
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def select(self, rows: Tensor) -> None:
        """Keep the sentences at `rows` (B',)."""
        self.keys, self.values = self.keys[rows], self.values[rows]
        self.memory_keys, self.memory_values = self.memory_keys[rows], self.memory_values[rows]


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each with Add & Norm (figure 1, right).

    Takes the arguments of `EncoderLayer`, and refuses the same.
    """

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        norm: Literal["pre", "post"],
        activation: Literal["relu", "gelu"] = "relu",
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model=d_model, num_heads=num_heads)
        self.cross_attention = MultiHeadAttention(d_model=d_model, num_heads=num_heads)
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff, activation=activation)
        self.add_norm_1 = AddNorm(d_model=d_model, dropout=dropout, norm=norm)
        self.add_norm_2 = AddNorm(d_model=d_model, dropout=dropout, norm=norm)
        self.add_norm_3 = AddNorm(d_model=d_model, dropout=dropout, norm=norm)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None) -> Tensor:
        """Decode all positions at once, as in training.

        Position t sees positions 0..t. Padding stands at the end, so no real position ever sees
        it and self-attention needs no mask beside the causal one.

        Args:
            x: (B, T, D).
            memory: the encoder's output, (B, S, D).
            memory_mask: broadcastable to (B, H, T, S), True = attend.

        Returns:
            (B, T, D).
        """
        x = self.add_norm_1(x, lambda y: self.self_attention(y, y, is_causal=True))
        x = self.add_norm_2(x, lambda y: self.cross_attention(y, memory, memory_mask))
        return self.add_norm_3(x, self.feed_forward)

    def start(self, memory: Tensor) -> LayerCache:
        """A cache for decoding from `memory` (B, S, D), without a position yet."""
        memory_keys, memory_values = self.cross_attention.keys_values(memory)
        nothing = memory_keys[:, :, :0]  # (B, H, 0, head_dim)
        return LayerCache(memory_keys, memory_values, nothing, nothing)

    def step(
        self, x: Tensor, cache: LayerCache, memory_mask: Tensor | None, history: Tensor | None
    ) -> Tensor:
        """Decode the newest position of each beam, (B, k, D) -> (B, k, D), and keep it in `cache`.

        Equal to the last position of `forward` for each beam alone: the newest position may see
        every earlier one of its own beam, which is what `history` (B, 1, k, positions) tells;
        None: all of them.
        """

        def self_attend(y: Tensor) -> Tensor:
            keys, values = cache.append(*self.self_attention.keys_values(y))
            return self.self_attention.attend(y, keys, values, history)

        def cross_attend(y: Tensor) -> Tensor:
            keys, values = cache.memory_keys, cache.memory_values
            return self.cross_attention.attend(y, keys, values, memory_mask)

        x = self.add_norm_1(x, self_attend)
        x = self.add_norm_2(x, cross_attend)
        return self.add_norm_3(x, self.feed_forward)
