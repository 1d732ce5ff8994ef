"""The Transformer, from scratch. Needs torch alone, so this package can be lifted out as it stands.

Reading order: attention -> embedding -> layers -> transformer -> attention_weights.

Shapes: B batch, S source length, T target length, Q/K query/key length, D d_model, H heads,
V vocabulary. Masks are boolean and True means "attend", everywhere.
"""

from .attention import MultiHeadAttention, attention, fused_attention
from .attention_weights import AttentionWeights, attention_weights
from .embedding import Embedding, sinusoidal_positions
from .layers import AddNorm, DecoderLayer, EncoderLayer, FeedForward
from .transformer import DecoderCache, Transformer

__all__ = [
    "AddNorm",
    "AttentionWeights",
    "DecoderCache",
    "DecoderLayer",
    "Embedding",
    "EncoderLayer",
    "FeedForward",
    "MultiHeadAttention",
    "Transformer",
    "attention",
    "attention_weights",
    "fused_attention",
    "sinusoidal_positions",
]
