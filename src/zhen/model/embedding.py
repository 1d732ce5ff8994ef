"""Word embedding plus positional encoding (Vaswani et al. 2017, sections 3.4 and 3.5)."""

import math

import torch
from torch import Tensor, nn

from .dropout import Dropout


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """The table of positional encodings (section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same angle).

    Returns:
        (length, d_model), float32.

    Raises:
        ValueError: `d_model` is odd, so sines and cosines would not pair up.
    """
    if d_model % 2:
        raise ValueError(f"`d_model` must be even for sinusoidal positions, but is {d_model}")
    # float64 while the angles are large, so that late positions keep their precision.
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)  # (length, 1)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # (d_model / 2,)
    angle = position / 10000**exponent  # (length, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class Embedding(nn.Module):
    """Piece ids to vectors: √d_model · E[id] + PE[position], then dropout (sections 3.4, 5.4).

    Args:
        vocab_size: number of pieces, V.
        d_model: width of the vectors, D; even.
        max_positions: longest sequence, in pieces.
        dropout: probability of dropping an element of the sum.

    Raises:
        ValueError: `d_model` is odd.
    """

    positions: Tensor  # (max_positions, D)

    def __init__(
        self, *, vocab_size: int, d_model: int, max_positions: int, dropout: float
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.pieces = nn.Embedding(vocab_size, d_model)
        # A constant, rebuilt with the module: it has no place in a checkpoint.
        self.register_buffer(
            "positions", sinusoidal_positions(max_positions, d_model), persistent=False
        )
        self.dropout = Dropout(dropout)
        # Variance 1 after the scale, and logits of variance 1 where the matrix is tied.
        nn.init.normal_(self.pieces.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor, offset: int = 0) -> Tensor:
        """Embed `ids` (B, T) whose first column stands at position `offset`; gives (B, T, D).

        Raises:
            ValueError: the sequence ends beyond `max_positions`.
        """
        end = offset + ids.size(1)
        if end > self.positions.size(0):
            raise ValueError(
                f"a sequence of {end} pieces is longer than `max_positions` "
                f"({self.positions.size(0)})"
            )
        x = self.pieces(ids) * self.scale + self.positions[offset:end]  # (B, T, D)
        return self.dropout(x)
