"""The written-out formula = the fused kernel = PyTorch's module, in values and gradients."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.reference import (
    assert_close,
    assert_same_gradients,
    attention_pairs,
    copy_weights,
    scatter,
)
from torch import Tensor, nn

from zhen.model import MultiHeadAttention, attention
from zhen.model.attention import fused_attention

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
MASKS = ("none", "causal", "padding", "both", "random", "nothing")
Case = tuple[list[Tensor], Tensor | None, Tensor]


def make_mask(kind: str, b: int, q: int, k: int) -> Tensor | None:
    if kind == "none":
        return None
    if kind == "causal":
        return torch.ones(q, k, dtype=torch.bool).tril()
    if kind in ("padding", "both"):
        real = (torch.arange(k) < torch.randint(1, k + 1, (b, 1)))[:, None, None, :]
        return real if kind == "padding" else real & make_mask("causal", b, q, k)
    mask = torch.rand(b, 1, q, k) < 0.6
    if kind == "nothing":  # at least one row with nothing to attend to
        mask[0, :, 0] = False
    return mask


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Query, key and value (B, H, Q or K, head_dim), a mask, and a gradient from above."""
    b, h, q, k, d = (draw(st.integers(1, most)) for most in (3, 3, 6, 6, 8))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    inputs = [torch.randn(b, h, length, d, dtype=torch.float64) for length in (q, k, k)]
    mask = make_mask(draw(st.sampled_from(MASKS)), b, q, k)
    return inputs, mask, torch.randn(b, h, q, d, dtype=torch.float64)


def value_and_gradients(function, inputs: list[Tensor], above: Tensor) -> list[Tensor]:
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    output = function(*leaves)
    return [output.detach(), *torch.autograd.grad(output, leaves, above)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@given(cases())
@settings(max_examples=80, deadline=None)
def test_the_formula_equals_the_fused_kernel(dtype: torch.dtype, case: Case) -> None:
    inputs, mask, above = case
    inputs = [tensor.to(dtype) for tensor in inputs]
    plain = value_and_gradients(lambda *qkv: attention(*qkv, mask)[0], inputs, above.to(dtype))
    fused = value_and_gradients(lambda *qkv: fused_attention(*qkv, mask), inputs, above.to(dtype))
    for ours, theirs in zip(plain, fused, strict=True):
        assert ours.isfinite().all()
        assert_close(ours, theirs, TOLERANCE[dtype])


def test_the_formula_equals_a_plain_loop() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)
    mask = torch.rand(3, 5) < 0.7
    output, weights = attention(query, key, value, mask)
    for i in range(3):
        seen = [j for j in range(5) if mask[i, j]]
        exponentials = {j: math.exp(float(query[i] @ key[j]) / math.sqrt(4)) for j in seen}
        expected = sum(exponentials[j] * value[j] for j in seen) / sum(exponentials.values())
        assert_close(output[i], expected, 1e-5)
        for j in range(5):
            share = exponentials.get(j, 0.0) / sum(exponentials.values())
            assert float(weights[i, j]) == pytest.approx(share, abs=1e-6)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_weights_sum_to_one_over_what_may_be_seen(case: Case) -> None:
    (query, key, value), mask, _ = case
    _, weights = attention(query, key, value, mask)
    allowed = torch.ones_like(weights).bool() if mask is None else mask.expand_as(weights)
    assert (weights[~allowed] == 0).all()
    assert_close(weights.sum(-1), allowed.any(-1).to(weights.dtype), 1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", [lambda *x: attention(*x)[0], fused_attention])
def test_a_row_with_nothing_to_attend_to_is_zero_and_disturbs_no_other(
    function, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 2, 4, 8).to(dtype) for _ in range(3)]
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    mask[0, :, 1] = False
    above = torch.randn(2, 2, 4, 8).to(dtype)
    free = value_and_gradients(function, inputs, above)[0]
    output, *gradients = value_and_gradients(lambda *x: function(*x, mask), inputs, above)
    assert (output[0, :, 1] == 0).all()
    assert (gradients[0][0, :, 1] == 0).all()
    assert all(gradient.isfinite().all() for gradient in gradients)
    rows = [0, 2, 3]
    low = dtype in (torch.bfloat16, torch.float16)
    assert_close(output[0][:, rows], free[0][:, rows], 2e-2 if low else 1e-5)
    assert_close(output[1], free[1], 2e-2 if low else 1e-5)

    # The row's own gradient from above reaches neither keys nor values.
    above[0, :, 1] = 1000.0
    again = value_and_gradients(lambda *x: function(*x, mask), inputs, above)[2:]
    assert all(torch.equal(one, other) for one, other in zip(again, gradients[1:], strict=True))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_row_with_nothing_to_attend_to_makes_no_nan_on_the_way() -> None:
    """None that a later fill would hide: Lightning's `detect_anomaly` stops at those too."""
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 3, 4) for _ in range(3)]
    mask = make_mask("nothing", 1, 3, 3)
    with torch.autograd.detect_anomaly():
        value_and_gradients(lambda *qkv: attention(*qkv, mask)[0], inputs, torch.ones(1, 2, 3, 4))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("kind", MASKS)
def test_large_scores_stay_finite(dtype: torch.dtype, kind: str) -> None:
    torch.manual_seed(0)
    inputs = [(torch.randn(2, 2, 6, 8) * 20).to(dtype) for _ in range(3)]
    mask = make_mask(kind, 2, 6, 6)
    for function in (lambda *x: attention(*x)[0], fused_attention):
        results = value_and_gradients(
            lambda *x, f=function: f(*x, mask), inputs, torch.randn(2, 2, 6, 8).to(dtype)
        )
        assert all(result.dtype == dtype and result.isfinite().all() for result in results)


def test_bfloat16_under_autocast_equals_float32() -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 2, 6, 8).bfloat16() for _ in range(3)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = fused_attention(*inputs)
    assert low.dtype == torch.bfloat16
    assert_close(low.float(), fused_attention(*(x.float() for x in inputs)), 1e-2)


@pytest.mark.parametrize("function", [attention, fused_attention])
def test_true_means_attend(function) -> None:
    """One key may be seen: its value is the output."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 4)
    mask = torch.zeros(3, 5, dtype=torch.bool)
    mask[:, 2] = True
    output = function(query[None], key[None], value[None], mask[None])
    output = output[0] if isinstance(output, tuple) else output
    assert_close(output[0], value[2].expand(3, 4), 1e-6)


def test_is_causal_equals_the_triangular_mask() -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, 7, 4, dtype=torch.float64) for _ in range(3)]
    expected, _ = attention(*inputs, make_mask("causal", 2, 7, 7))
    assert_close(fused_attention(*inputs, is_causal=True), expected, 1e-10)


@st.composite
def layers(draw: st.DrawFn) -> tuple[MultiHeadAttention, Tensor, Tensor, Tensor | None]:
    """A layer with random weights, its two inputs, (B, Q, D) and (B, K, D), and a mask."""
    b, h, q, k, head_dim = (draw(st.integers(1, most)) for most in (3, 4, 6, 6, 6))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    module = MultiHeadAttention(d_model=h * head_dim, num_heads=h).double()
    scatter(module)
    query, source = (torch.randn(b, n, h * head_dim, dtype=torch.float64) for n in (q, k))
    if q == k and draw(st.booleans()):
        source = query  # self-attention
    return module, query, source, make_mask(draw(st.sampled_from(MASKS)), b, q, k)


@pytest.mark.parametrize("dtype", TOLERANCE)
@given(layers())
@settings(max_examples=60, deadline=None)
def test_multi_head_equals_torch(dtype: torch.dtype, case) -> None:
    ours, query, source, mask = case
    ours = copy.deepcopy(ours).to(dtype)
    query, source = query.to(dtype), source.to(dtype)
    theirs = nn.MultiheadAttention(query.size(-1), ours.num_heads, batch_first=True).to(dtype)
    copy_weights(attention_pairs(ours, theirs))
    shape = (query.size(0), ours.num_heads, query.size(1), source.size(1))
    ignore = None if mask is None else ~mask.expand(shape).flatten(0, 1)  # theirs: True = ignore

    def run_theirs(x: Tensor, y: Tensor) -> Tensor:
        return theirs(x, y, y, attn_mask=ignore, need_weights=False)[0]

    above = torch.randn_like(query)
    found = []
    for function in (lambda x, y: ours(x, y, mask), run_theirs):
        x = query.clone().requires_grad_()
        y = x if source is query else source.clone().requires_grad_()
        output = function(x, y)
        output.backward(above)
        found.append((output, x.grad, y.grad))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, TOLERANCE[dtype])
    assert_same_gradients(attention_pairs(ours, theirs), TOLERANCE[dtype])

    their_weights = theirs(query, source, source, attn_mask=ignore, average_attn_weights=False)[1]
    # Theirs is NaN in a row with nothing to attend to, where ours is zero.
    assert_close(ours.weights(query, source, mask), their_weights.nan_to_num(0.0), TOLERANCE[dtype])


@given(layers())
@settings(max_examples=40, deadline=None)
def test_one_projection_split_equals_one_projection_per_head(case) -> None:
    module, query, source, mask = case
    mask = None if mask is None else mask.expand(query.size(0), 1, -1, -1)[:, 0]
    heads = []
    for rows in torch.arange(query.size(-1)).chunk(module.num_heads):
        q, k, v = (
            x @ projection.weight[rows].T + projection.bias[rows]
            for x, projection in (
                (query, module.query_proj),
                (source, module.key_proj),
                (source, module.value_proj),
            )
        )
        heads.append(attention(q, k, v, mask)[0])
    expected = module.output_proj(torch.cat(heads, dim=-1))
    assert_close(module(query, source, mask if mask is None else mask[:, None]), expected, 1e-10)


@given(layers(), st.data())
@settings(max_examples=40, deadline=None)
@torch.no_grad()
def test_a_head_s_query_meets_only_its_own_keys(case, data: st.DataObject) -> None:
    """Another query, or other keys and values, in one head: the other heads never notice."""
    module, query, source, _ = case
    changed = data.draw(st.integers(0, module.num_heads - 1))
    others = [head for head in range(module.num_heads) if head != changed]
    module.output_proj.load_state_dict(
        {"weight": torch.eye(query.size(-1)), "bias": torch.zeros(query.size(-1))}
    )

    def heads(keys: Tensor, values: Tensor) -> Tensor:
        return module.attend(query, keys, values).unflatten(-1, (module.num_heads, -1))

    keys, values = module.keys_values(source)
    before, weights = heads(keys, values), module.weights(query, source)
    new_keys, new_values = keys.clone(), values.clone()
    new_keys[:, changed] += torch.randn_like(keys[:, changed])
    new_values[:, changed] += 1
    after = heads(new_keys, new_values)
    assert_close(after[:, :, others], before[:, :, others], 1e-12)
    assert not torch.allclose(after[:, :, changed], before[:, :, changed])

    rows = torch.arange(query.size(-1)).chunk(module.num_heads)[changed]
    module.query_proj.weight[rows] += 1
    again = module.weights(query, source)
    assert_close(again[:, others], weights[:, others], 1e-12)
    assert source.size(1) == 1 or not torch.equal(again[:, changed], weights[:, changed])


@given(layers(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_permuting_the_inputs_permutes_the_outputs(case, random) -> None:
    """And the order in which keys and values come never matters to a query."""
    module, query, source, _ = case
    order = list(range(query.size(1)))
    random.shuffle(order)
    assert_close(module(query[:, order], query[:, order]), module(query, query)[:, order], 1e-10)
    order = list(range(source.size(1)))
    random.shuffle(order)
    assert_close(module(query, source[:, order]), module(query, source), 1e-10)


@pytest.mark.parametrize("num_heads", [3, 0, -1, 300])
def test_heads_that_do_not_divide_are_refused(num_heads: int) -> None:
    with pytest.raises(ValueError, match=rf"`d_model` \(256\), but is {num_heads}; try one of"):
        MultiHeadAttention(d_model=256, num_heads=num_heads)
