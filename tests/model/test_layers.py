"""Each block = PyTorch's block with the same weights, in values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.reference import (
    assert_close,
    assert_same_gradients,
    copy_weights,
    decoder_layer_pairs,
    encoder_layer_pairs,
    scatter,
)
from torch import nn
from torch.nn import functional as F

from zhen.model import AddNorm, DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention

D, H, FF, B, S, T = 12, 3, 20, 2, 5, 4
TOLERANCE = 1e-10
# The last two positions of the second source are padding.
REAL = torch.tensor([[True] * S, [True] * (S - 2) + [False] * 2])


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def make(kind: type, norm: str, activation: str = "relu") -> nn.Module:
    layer = kind(d_model=D, num_heads=H, d_ff=FF, dropout=0.0, norm=norm, activation=activation)
    scatter(layer)
    return layer.double()


def make_theirs(kind: type, norm: str, activation: str) -> nn.Module:
    return kind(
        D, H, FF, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
    ).double()


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer_equals_torch(norm: str, activation: str) -> None:
    ours = make(EncoderLayer, norm, activation)
    theirs = make_theirs(nn.TransformerEncoderLayer, norm, activation)
    copy_weights(encoder_layer_pairs(ours, theirs))
    x, above = random(B, S, D), random(B, S, D).detach()
    ours_out = ours(x, REAL[:, None, None, :])
    theirs_out = theirs(x, src_key_padding_mask=~REAL)
    assert_close(ours_out, theirs_out, TOLERANCE)
    assert_close(
        *(torch.autograd.grad(y, x, above, retain_graph=True)[0] for y in (ours_out, theirs_out)),
        TOLERANCE,
    )
    ours_out.backward(above)
    theirs_out.backward(above)
    assert_same_gradients(encoder_layer_pairs(ours, theirs), TOLERANCE)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_decoder_layer_equals_torch(norm: str, activation: str) -> None:
    ours = make(DecoderLayer, norm, activation)
    theirs = make_theirs(nn.TransformerDecoderLayer, norm, activation)
    copy_weights(decoder_layer_pairs(ours, theirs))
    x, memory, above = random(B, T, D), random(B, S, D), random(B, T, D).detach()
    ours_out = ours(x, memory, REAL[:, None, None, :])
    theirs_out = theirs(
        x,
        memory,
        tgt_mask=~torch.ones(T, T, dtype=torch.bool).tril(),
        memory_key_padding_mask=~REAL,
    )
    assert_close(ours_out, theirs_out, TOLERANCE)
    for leaf in (x, memory):
        assert_close(
            *(
                torch.autograd.grad(y, leaf, above, retain_graph=True)[0]
                for y in (ours_out, theirs_out)
            ),
            TOLERANCE,
        )
    ours_out.backward(above)
    theirs_out.backward(above)
    assert_same_gradients(decoder_layer_pairs(ours, theirs), TOLERANCE)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoder_steps_equal_the_full_pass(norm: str) -> None:
    layer = make(DecoderLayer, norm)
    x, memory, mask = random(B, T, D), random(B, S, D), REAL[:, None, None, :]
    full = layer(x, memory, mask)
    cache = layer.start(memory)
    for t in range(T):
        assert cache.length == t
        found = layer.step(x[:, t : t + 1], cache, mask, history=None)
        assert_close(found[:, 0], full[:, t], TOLERANCE)


def test_feed_forward_is_the_formula_at_each_position_alone() -> None:
    module = FeedForward(d_model=D, d_ff=FF).double()
    x = random(B, T, D)
    hidden = (x @ module.expand.weight.T + module.expand.bias).clamp(min=0)
    assert_close(module(x), hidden @ module.contract.weight.T + module.contract.bias, TOLERANCE)
    assert_close(module(x)[:, 1:2], module(x[:, 1:2]), TOLERANCE)


def test_add_norm_formulas() -> None:
    x = random(B, T, D)
    post = AddNorm(d_model=D, dropout=0.0, norm="post").double()
    assert_close(post(x, torch.sin), F.layer_norm(x + x.sin(), (D,)), TOLERANCE)
    pre = AddNorm(d_model=D, dropout=0.0, norm="pre").double()
    assert_close(pre(x, torch.sin), x + F.layer_norm(x, (D,)).sin(), TOLERANCE)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_dropout_reaches_the_sublayer_and_never_the_residual(norm: str) -> None:
    module = AddNorm(d_model=1000, dropout=0.5, norm=norm)
    module.norm = nn.Identity()
    output = module(torch.full((1, 1, 1000), 5.0), torch.ones_like)
    assert sorted(set(output.flatten().tolist())) == [5.0, 7.0]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_layer_knows_no_order(norm: str) -> None:
    layer, x = make(EncoderLayer, norm), random(B, S, D)
    order = torch.tensor([3, 0, 4, 1, 2])
    assert_close(layer(x[:, order], None), layer(x, None)[:, order], TOLERANCE)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_parameters_of_a_layer_by_its_formula(head_dim: int, heads: int, d_ff: int) -> None:
    d = head_dim * heads
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * d_ff + d_ff + d, 2 * d
    layer = {"d_model": d, "num_heads": heads, "d_ff": d_ff, "dropout": 0.0, "norm": "post"}
    for module, expected in (
        (MultiHeadAttention(d_model=d, num_heads=heads), attention),
        (FeedForward(d_model=d, d_ff=d_ff), feed_forward),
        (EncoderLayer(**layer), attention + feed_forward + 2 * norm),
        (DecoderLayer(**layer), 2 * attention + feed_forward + 3 * norm),
    ):
        assert sum(parameter.numel() for parameter in module.parameters()) == expected


@pytest.mark.parametrize("norm", ["Pre", "", None])
def test_an_unknown_norm(norm: str) -> None:
    with pytest.raises(ValueError, match="`norm` must be pre or post, but is"):
        AddNorm(d_model=D, dropout=0.0, norm=norm)


def test_an_unknown_activation() -> None:
    with pytest.raises(ValueError, match="`activation` must be relu or gelu, but is 'swish'"):
        FeedForward(d_model=D, d_ff=FF, activation="swish")
