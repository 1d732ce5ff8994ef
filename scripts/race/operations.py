"""What a batch costs: the multiply-adds of the matrix products in training on it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Shape:
    """Sizes of a Transformer, as in zhen.model."""

    vocab_size: int
    d_model: int
    d_ff: int
    num_heads: int
    num_encoder_layers: int
    num_decoder_layers: int

    def operations(
        self, source: ArrayLike, target: ArrayLike, labels: ArrayLike | None = None
    ) -> float:
        """Operations of one update, a product of M x N by N x K being 2 · M · N · K.

        The backward pass has two products for each one of the forward pass, so everything counts
        three times. Counted are projections, feed-forward networks, Q Kᵀ and its product with V
        (whole, not the half that a causal mask leaves), and the output matrix; not the element-wise
        rest, nor looking up embeddings.

        Args:
            source: length of each source, (B,).
            target: length of each target, (B,).
            labels: positions of each target that reach the output matrix, (B,); None: all.
        """
        s, t = np.asarray(source, np.float64), np.asarray(target, np.float64)
        out = t if labels is None else np.asarray(labels, np.float64)
        d = self.d_model
        feed_forward = 2 * d * self.d_ff
        encoder = s * (4 * d**2 + feed_forward) + 2 * s**2 * d
        decoder = t * (6 * d**2 + feed_forward) + s * 2 * d**2 + 2 * (t**2 + s * t) * d
        forward = (
            self.num_encoder_layers * encoder
            + self.num_decoder_layers * decoder
            + out * d * self.vocab_size
        )
        return float(3 * 2 * forward.sum())
