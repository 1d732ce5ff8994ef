"""Scaled dot-product attention and its multi-head form (Vaswani et al. 2017, section 3.2).

Shapes: B batch, H heads, Q/K query/key length, D d_model, head_dim = D / H.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(Q Kᵀ / √d_k) V, written out (section 3.2.1, equation 1).

    This is the formula to read and to look at. Training uses PyTorch's fused kernel, which gives
    the same output without ever storing the weights; the tests hold the two equal.

    Args:
        query: (..., Q, d_k).
        key: (..., K, d_k).
        value: (..., K, d_v).
        mask: boolean, broadcastable to (..., Q, K); True = attend.

    Returns:
        The output (..., Q, d_v) and the weights (..., Q, K). Each row of the weights sums to 1;
        a row with nothing to attend to is all zeros, in value and in gradient.
    """
    d_k = query.size(-1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)  # (..., Q, K)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        # The smallest finite number instead of -inf: the softmax of a row of -inf alone is NaN.
        # The second fill turns such a row into zeros.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)
    return weights @ value, weights


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False
) -> Tensor:
    """The output of `attention` from PyTorch's fused kernel, for training and decoding.

    `is_causal` lets position i see keys 0..i only and replaces `mask`.
    """
    if query.is_cpu and query.dtype == torch.bfloat16:
        # The CPU's bfloat16 kernel packs the matrices of each head anew, which at the length of a
        # sentence costs 15 times the float32 kernel.
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(
                query.float(), key.float(), value.float(), mask, is_causal=is_causal
            ).to(query.dtype)
    return F.scaled_dot_product_attention(query, key, value, mask, is_causal=is_causal)


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own subspace (section 3.2.2).

    MultiHead(Q, K, V) = Concat(head_1, ..., head_H) W^O,
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    The projections of all heads are one matrix of D x D, split into H parts of head_dim. Each has a
    bias too, as PyTorch's has; the paper writes none.

    Args:
        d_model: width of the input and of the output, D.
        num_heads: number of heads, H.

    Raises:
        ValueError: `num_heads` is below 1 or does not divide `d_model`.
    """

    def __init__(self, *, d_model: int, num_heads: int) -> None:
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            divisors = [n for n in (1, 2, 4, 8, 16, 32) if d_model % n == 0]
            raise ValueError(
                f"`num_heads` must divide `d_model` ({d_model}), but is {num_heads}; "
                f"try one of {divisors}"
            )
        self.num_heads = num_heads
        self.head_dim = d_model // num_heads
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, d_model)
        self.value_proj = nn.Linear(d_model, d_model)
        self.output_proj = nn.Linear(d_model, d_model)

    def forward(
        self, query: Tensor, source: Tensor, mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """Let each position of `query` look at the positions of `source`.

        Self-attention passes the same tensor twice; cross-attention passes the decoder's states
        and the encoder's output.

        Args:
            query: (B, Q, D).
            source: (B, K, D), where keys and values come from.
            mask: boolean, broadcastable to (B, H, Q, K); True = attend.
            is_causal: position i sees keys 0..i only; instead of `mask`.

        Returns:
            (B, Q, D).
        """
        if torch.is_autocast_enabled(source.device.type):
            # Here, once: else each projection converts it, and adds up its gradient, anew.
            converted = source.to(torch.get_autocast_dtype(source.device.type))
            query, source = converted if query is source else query, converted
        keys, values = self.keys_values(source)
        return self.attend(query, keys, values, mask, is_causal)

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Project `source` (B, K, D) to keys and values, (B, H, K, head_dim) each.

        Decoding keeps the result, so that no position is projected twice.
        """
        return self._split(self.key_proj(source)), self._split(self.value_proj(source))

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attend from `query` (B, Q, D) to projected keys and values (B, H, K, head_dim)."""
        queries = self._split(self.query_proj(query))  # (B, H, Q, head_dim)
        heads = fused_attention(queries, keys, values, mask, is_causal)  # (B, H, Q, head_dim)
        return self.output_proj(heads.transpose(1, 2).flatten(2))  # Concat(heads) W^O

    def weights(
        self, query: Tensor, source: Tensor, mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """The weights (B, H, Q, K) behind the output of `forward` for the same arguments."""
        keys, values = self.keys_values(source)
        if is_causal:
            everything = keys.new_ones(query.size(1), source.size(1), dtype=torch.bool)
            mask = everything.tril()  # (Q, K)
        return attention(self._split(self.query_proj(query)), keys, values, mask)[1]

    def _split(self, x: Tensor) -> Tensor:
        # (B, L, D) -> (B, H, L, head_dim)
        batch, length, _ = x.shape
        return x.view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
