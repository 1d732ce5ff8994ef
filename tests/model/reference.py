"""PyTorch's own modules with the weights of ours, to compare values and gradients with."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from zhen.model import (
    AddNorm,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    Transformer,
)

# One parameter of theirs is several of ours, one below the other.
Pair = tuple[list[nn.Parameter], nn.Parameter]


def attention_pairs(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Iterator[Pair]:
    projections = [ours.query_proj, ours.key_proj, ours.value_proj]
    yield [each.weight for each in projections], theirs.in_proj_weight
    yield [each.bias for each in projections], theirs.in_proj_bias
    yield from simple_pairs(ours.output_proj, theirs.out_proj)


def encoder_layer_pairs(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> Iterator[Pair]:
    yield from attention_pairs(ours.self_attention, theirs.self_attn)
    yield from feed_forward_pairs(ours.feed_forward, theirs)
    for our_norm, their_norm in (
        (ours.add_norm_1, theirs.norm1),
        (ours.add_norm_2, theirs.norm2),
    ):
        yield from norm_pairs(our_norm, their_norm)


def decoder_layer_pairs(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> Iterator[Pair]:
    yield from attention_pairs(ours.self_attention, theirs.self_attn)
    yield from attention_pairs(ours.cross_attention, theirs.multihead_attn)
    yield from feed_forward_pairs(ours.feed_forward, theirs)
    for our_norm, their_norm in (
        (ours.add_norm_1, theirs.norm1),
        (ours.add_norm_2, theirs.norm2),
        (ours.add_norm_3, theirs.norm3),
    ):
        yield from norm_pairs(our_norm, their_norm)


def transformer_pairs(ours: Transformer, theirs: nn.Transformer) -> Iterator[Pair]:
    """The parameters of both stacks; ours has the embedding and the output matrix besides."""
    for our_layer, their_layer in zip(ours.encoder, theirs.encoder.layers, strict=True):
        yield from encoder_layer_pairs(our_layer, their_layer)
    for our_layer, their_layer in zip(ours.decoder, theirs.decoder.layers, strict=True):
        yield from decoder_layer_pairs(our_layer, their_layer)
    if theirs.encoder.norm is not None:
        yield from simple_pairs(ours.encoder_norm, theirs.encoder.norm)
        yield from simple_pairs(ours.decoder_norm, theirs.decoder.norm)


def feed_forward_pairs(
    ours: FeedForward, theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
) -> Iterator[Pair]:
    yield from simple_pairs(ours.expand, theirs.linear1)
    yield from simple_pairs(ours.contract, theirs.linear2)


def norm_pairs(ours: AddNorm, theirs: nn.LayerNorm) -> Iterator[Pair]:
    yield from simple_pairs(ours.norm, theirs)


def simple_pairs(ours: nn.Module, theirs: nn.Module) -> Iterator[Pair]:
    yield [ours.weight], theirs.weight
    yield [ours.bias], theirs.bias


@torch.no_grad()
def scatter(module: nn.Module) -> None:
    """Random parameters: zeros and ones would hide a bias or a norm that is left out."""
    for parameter in module.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.2)


@torch.no_grad()
def copy_weights(pairs: Iterator[Pair]) -> None:
    for ours, theirs in pairs:
        theirs.copy_(torch.cat(list(ours)))


def assert_same_gradients(pairs: Iterator[Pair], tolerance: float) -> None:
    for ours, theirs in pairs:
        gradients = [parameter.grad for parameter in ours]
        assert all(gradient is not None for gradient in gradients)
        assert_close(torch.cat(gradients), theirs.grad, tolerance)


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)
