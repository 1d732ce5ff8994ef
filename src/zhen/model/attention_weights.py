"""Which positions every head looks at, from the very model that trains with the fused kernel.

Shapes: B batch, S source length, T target length, H heads, L layers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .attention import MultiHeadAttention
from .transformer import Transformer


@dataclass(frozen=True)
class AttentionWeights:
    """The weights of each kind of attention; row t says how position t shares its attention out."""

    encoder: Tensor  # (L, B, H, S, S)
    decoder: Tensor  # (L, B, H, T, T), masked self-attention
    cross: Tensor  # (L, B, H, T, S)


@torch.no_grad()
def attention_weights(model: Transformer, source: Tensor, target: Tensor) -> AttentionWeights:
    """Run the model once and keep what its heads attend to.

    The fused kernel never stores the weights, so each attention also computes the written-out
    formula on its own inputs. The model is left as it was; put it into `eval()` first, or dropout
    acts as in training.

    Args:
        source: ids (B, S).
        target: ids (B, T), beginning with the start piece.
    """
    kept: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        assert isinstance(module, MultiHeadAttention)
        kept[module] = module.weights(*args, **kwargs)

    hooks = [
        module.register_forward_pre_hook(keep, with_kwargs=True)
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    ]
    try:
        model.hidden(source, target)
    finally:
        for hook in hooks:
            hook.remove()

    def of(layers: Iterable[nn.Module], name: str) -> Tensor:
        return torch.stack([kept[layer.get_submodule(name)] for layer in layers])

    return AttentionWeights(
        encoder=of(model.encoder, "self_attention"),
        decoder=of(model.decoder, "self_attention"),
        cross=of(model.decoder, "cross_attention"),
    )
