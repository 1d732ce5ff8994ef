"""The whole model: equal to torch.nn.Transformer, blind to padding and future, cached = full."""

import ast
import copy
import math
import random
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.model.reference import (
    assert_close,
    assert_same_gradients,
    copy_weights,
    scatter,
    transformer_pairs,
)
from torch import Tensor, nn
from torch.nn import functional as F

import zhen
from zhen.model import Transformer

PAD, V, D, H, FF = 0, 17, 12, 3, 20
SOURCES = Path(zhen.__file__).parent
MODELS = pytest.mark.parametrize("norm", ["pre", "post"])


def make(norm: str = "post", dtype: torch.dtype = torch.float64, **changes) -> Transformer:
    torch.manual_seed(0)
    sizes = {"vocab_size": V, "d_model": D, "num_heads": H, "d_ff": FF, "max_positions": 32}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
    model = Transformer(**(sizes | layers | {"norm": norm} | changes))
    scatter(model)
    return model.to(dtype)


MADE = {norm: make(norm) for norm in ("pre", "post")}


def sentences(most: int = 7) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, V - 1), min_size=1, max_size=most)


Pairs = list[tuple[list[int], list[int]]]
PAIRS = st.lists(st.tuples(sentences(), sentences()), min_size=1, max_size=3)


def batch(*rows: list[int]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


SOURCE = batch([3, 4, 5, 6, 2], [7, 8, 2])
TARGET = batch([1, 9, 10, 11], [1, 12])
NOTHING = SOURCE * torch.tensor([[1], [0]])  # the second source is padding alone


def make_theirs(ours: Transformer) -> nn.Transformer:
    """Its stacks by hand: nn.Transformer alone would add a last norm after post-norm too."""
    pre = ours.config["norm"] == "pre"
    kwargs = {"dropout": 0.0, "batch_first": True, "norm_first": pre}
    last = [nn.LayerNorm(D) if pre else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, H, FF, **kwargs),
        len(ours.encoder),
        last[0],
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(D, H, FF, **kwargs), len(ours.decoder), last[1]
    )
    theirs = nn.Transformer(
        D, H, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    ).to(ours.output.weight)
    copy_weights(transformer_pairs(ours, theirs))
    return theirs


def positions(length: int) -> Tensor:
    """The table in float64; the model's own is float32."""
    return torch.tensor(
        [
            [(math.cos if i % 2 else math.sin)(t / 10000 ** (i // 2 * 2 / D)) for i in range(D)]
            for t in range(length)
        ],
        dtype=torch.float64,
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@MODELS
@given(pairs=PAIRS, depths=st.tuples(st.integers(1, 4), st.integers(1, 4)))
@example(pairs=[([3], [1])], depths=(1, 1))  # lengths 1
@example(pairs=[([3, 4, 2], [1, 9]), ([5, 6, 2], [1, 8])], depths=(2, 3))  # no padding
@settings(max_examples=10, deadline=None)
def test_equals_torch(
    norm: str, dtype: torch.dtype, tolerance: float, pairs: Pairs, depths: tuple[int, int]
) -> None:
    ours = make(norm, dtype, num_encoder_layers=depths[0], num_decoder_layers=depths[1])
    theirs = make_theirs(ours)
    source, target = (batch(*side) for side in zip(*pairs, strict=True))
    padding = source == PAD
    future = ~torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()
    if dtype == torch.float64:
        assert_close(ours.embedding.positions, positions(32), 1e-6)
        ours.embedding.positions = positions(32)
    matrix = ours.embedding.pieces.weight.detach().clone().requires_grad_()

    def embed(ids: Tensor) -> Tensor:
        return matrix[ids] * math.sqrt(D) + positions(ids.size(1)).to(dtype)

    hidden = theirs(
        embed(source),
        embed(target),
        tgt_mask=future,
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    theirs_logits = hidden @ matrix.T
    logits = ours(source, target)
    assert_close(logits, theirs_logits, tolerance)
    above = torch.randn_like(logits) / logits.numel() ** 0.5
    logits.backward(above)
    theirs_logits.backward(above)
    assert_close(ours.embedding.pieces.weight.grad, matrix.grad, tolerance)
    assert_same_gradients(transformer_pairs(ours, theirs), tolerance)


@pytest.mark.parametrize("norm", MADE)
@given(sentences(), sentences(), st.data())
@settings(max_examples=20, deadline=None)
def test_later_pieces_never_change_earlier_outputs(
    norm: str, source: list[int], target: list[int], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(target)))
    rest = data.draw(sentences())
    model, ids = MADE[norm], batch(source)
    expected = model(ids, batch(target))[:, :at]
    assert_close(model(ids, batch(target[:at] + rest))[:, :at], expected, 1e-12)


@pytest.mark.parametrize("norm", MADE)
@given(st.lists(st.tuples(sentences(), sentences()), min_size=2, max_size=4))
@settings(max_examples=20, deadline=None)
def test_padding_and_neighbours_never_change_real_positions(norm: str, pairs: Pairs) -> None:
    model = MADE[norm]
    together = model(batch(*(s for s, _ in pairs)), batch(*(t for _, t in pairs)))
    for row, (source, target) in zip(together, pairs, strict=True):
        alone = model(batch(source), batch(target))[0]
        assert_close(row[: len(target)], alone, 1e-12)


@pytest.mark.parametrize("norm", MADE)
@given(PAIRS, st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=20, deadline=None)
def test_added_padding_columns_change_nothing(
    norm: str, pairs: Pairs, more_source: int, more_target: int
) -> None:
    model = MADE[norm]
    source, target = (batch(*side) for side in zip(*pairs, strict=True))
    wide = (F.pad(source, (0, more_source), value=PAD), F.pad(target, (0, more_target), value=PAD))
    assert_close(model(*wide)[:, : target.size(1)], model(source, target), 1e-12)


@MODELS
def test_positions_alone_tell_the_order_of_the_source(norm: str) -> None:
    model, order = make(norm), torch.tensor([3, 0, 4, 1, 2])

    def difference() -> Tensor:
        memory, shuffled = (model.encode(ids)[0] for ids in (SOURCE[:1], SOURCE[:1, order]))
        return (shuffled - memory[:, order]).abs().amax()

    assert difference() > 0.1
    model.embedding.positions.zero_()
    assert difference() < 1e-12


@MODELS
def test_an_empty_source_stays_finite_and_disturbs_no_other(norm: str) -> None:
    gradients = []
    for source in (NOTHING, NOTHING[:1]):
        model = make(norm)
        output = model(source, TARGET[: len(source)])
        assert output.isfinite().all()
        output[0].sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
        first = output[0].detach()
    assert_close(model(NOTHING, TARGET)[0], first, 1e-12)
    for one, other in zip(*gradients, strict=True):
        assert one.isfinite().all()
        assert_close(one, other, 1e-10)
    model(NOTHING, TARGET).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@MODELS
def test_low_precision_stays_finite(norm: str, dtype: torch.dtype) -> None:
    model = make(norm, dtype)
    output = model(NOTHING, TARGET)
    assert output.dtype == dtype
    output.float().logsumexp(-1).sum().backward()
    assert output.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@MODELS
def test_autocast_is_close_to_float32(norm: str) -> None:
    model = make(norm, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = model(SOURCE, TARGET)
    torch.testing.assert_close(low.float(), model(SOURCE, TARGET), atol=0.15, rtol=0.1)


@pytest.mark.parametrize("norm", MADE)
@given(st.lists(sentences(), min_size=1, max_size=3), sentences(8))
@settings(max_examples=20, deadline=None)
def test_cached_steps_equal_the_full_pass(
    norm: str, sources: list[list[int]], target: list[int]
) -> None:
    model, source = MADE[norm], batch(*sources)
    rows = torch.tensor([target] * len(sources))
    full = model(source, rows)
    cache = model.start(source)
    for t in range(len(target)):
        assert_close(model.step(rows[:, t : t + 1], cache)[:, 0], full[:, t], 1e-10)
    assert cache.steps == len(target)


@torch.no_grad()
def test_cached_steps_equal_the_full_pass_in_float32() -> None:
    model = make(dtype=torch.float32)
    full, cache = model(SOURCE, TARGET), model.start(SOURCE)
    for t in range(TARGET.size(1)):
        assert_close(model.step(TARGET[:, t : t + 1], cache)[:, 0], full[:, t], 1e-5)


@pytest.mark.parametrize("norm", MADE)
@given(
    st.lists(sentences(), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 9),
    st.randoms(),
)
@settings(max_examples=30, deadline=None)
def test_beams_that_multiply_swap_and_leave(
    norm: str, sources: list[list[int]], k: int, steps: int, rng: random.Random
) -> None:
    """Each beam's logits are those of the full pass over its own pieces alone."""
    model, source = MADE[norm], batch(*sources)
    cache = model.start(source)
    left = list(range(len(sources)))
    beams = [[[] for _ in range(k)] for _ in sources]
    for _ in range(steps):
        for of_sentence in beams:
            for beam in of_sentence:
                beam.append(rng.randrange(3, V))
        found = model.step(torch.tensor([[beam[-1] for beam in each] for each in beams]), cache)
        for at, of_sentence in enumerate(beams):
            rows = source[left[at]].expand(k, -1)
            assert_close(found[at], model(rows, torch.tensor(of_sentence))[:, -1], 1e-10)
        if len(left) > 1 and rng.random() < 0.3:
            keep = rng.sample(range(len(left)), len(left) - 1)
            left, beams = [left[at] for at in keep], [beams[at] for at in keep]
            cache.select(torch.tensor(keep))
        if k > 1:
            parents = [[rng.randrange(k) for _ in range(k)] for _ in left]
            beams = [
                [list(each[parent]) for parent in of]
                for each, of in zip(beams, parents, strict=True)
            ]
            cache.follow(torch.tensor(parents))


def test_tied_embeddings_are_one_matrix() -> None:
    tied, untied = make(), make(tie_embeddings=False)

    def size(model: Transformer) -> int:
        return sum(parameter.numel() for parameter in model.parameters())

    assert size(untied) - size(tied) == V * D
    tied.load_state_dict(copy.deepcopy(tied.state_dict()))
    for model in (tied, copy.deepcopy(tied), make(dtype=torch.bfloat16)):
        assert model.output.weight is model.embedding.pieces.weight
        with torch.no_grad():
            model.embedding.pieces.weight[3] += 1
        assert torch.equal(model.output.weight[3], model.embedding.pieces.weight[3])
    assert untied.output.weight is not untied.embedding.pieces.weight
    assert not torch.equal(untied.output.weight, untied.embedding.pieces.weight)


@MODELS
@pytest.mark.parametrize("tied", [True, False])
def test_two_embeddings_that_are_equal_are_one(norm: str, tied: bool) -> None:
    """A source with a vocabulary of its own changes which matrix embeds it, and nothing else."""
    one = make(norm, tie_embeddings=tied)
    two = make(norm, tie_embeddings=tied, source_vocab_size=V)
    assert not torch.equal(two(SOURCE, TARGET), one(SOURCE, TARGET))
    extra = {"source_embedding.pieces.weight": one.embedding.pieces.weight}
    two.load_state_dict(one.state_dict() | extra)
    assert torch.equal(two(SOURCE, TARGET), one(SOURCE, TARGET))
    assert torch.equal(
        two.step(TARGET[:, :1], two.start(SOURCE)), one.step(TARGET[:, :1], one.start(SOURCE))
    )


def test_each_side_has_its_vocabulary() -> None:
    model = make(source_vocab_size=V + 6)
    assert model.output.weight is model.embedding.pieces.weight
    assert model.source_embedding.pieces.weight.shape == (V + 6, D)
    assert sum(p.numel() for p in model.parameters()) == (
        sum(p.numel() for p in make().parameters()) + (V + 6) * D
    )
    source = torch.tensor([[V + 5, 3]])
    output = model(source, TARGET[:1])
    assert output.shape == (1, TARGET.size(1), V)
    output.sum().backward()
    rows = model.source_embedding.pieces.weight.grad.abs().sum(dim=1).nonzero().flatten()
    assert rows.tolist() == [3, V + 5]
    with pytest.raises(IndexError):
        make()(source, TARGET[:1])
    padded = torch.tensor([[V + 5, 3, PAD, PAD]])
    assert_close(model(padded, TARGET[:1]), output, 1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"tie_embeddings": False, "activation": "gelu"},
        {"pad_id": 3},
        {"source_vocab_size": 23},
    ],
)
def test_config_and_weights_rebuild_the_model(changes: dict) -> None:
    model = make(**changes)
    again = Transformer(**model.config).double()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(SOURCE, TARGET), model(SOURCE, TARGET))
    assert all(isinstance(value, int | float | str | bool) for value in model.config.values())


def test_the_pad_piece_is_an_argument() -> None:
    model = make(pad_id=5)
    real = torch.tensor([[3, 4, 6]])
    padded = torch.tensor([[3, 4, 6, 5, 5]])
    assert_close(model(padded, TARGET[:1]), model(real, TARGET[:1]), 1e-12)


def test_the_same_seed_gives_the_same_weights() -> None:
    one, other = make().state_dict(), make().state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_dropout_acts_in_training_alone() -> None:
    model = make(dropout=0.3)
    assert not torch.equal(model.train()(SOURCE, TARGET), model(SOURCE, TARGET))
    assert torch.equal(model.eval()(SOURCE, TARGET), make()(SOURCE, TARGET))


@pytest.mark.parametrize(
    ("changes", "millions"),
    [({}, 65), ({"d_model": 1024, "num_heads": 16, "d_ff": 4096}, 213)],
    ids=["base", "big"],
)
def test_the_paper_s_sizes(changes: dict, millions: int) -> None:
    """Table 3, with the vocabulary of section 5.1."""
    with torch.device("meta"):
        model = Transformer(vocab_size=37_000, **changes)
    found = sum(parameter.numel() for parameter in model.parameters())
    assert found / 1e6 == pytest.approx(millions, rel=0.05)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 0}, "`vocab_size` must be at least 1, but is 0"),
        ({"source_vocab_size": 0}, "`source_vocab_size` must be at least 1, but is 0"),
        ({"num_encoder_layers": 0}, "`num_encoder_layers` must be at least 1, but is 0"),
        ({"max_positions": -1}, "`max_positions` must be at least 1, but is -1"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1, but is 1.0"),
        ({"dropout": float("nan")}, "`dropout` must be at least 0 and below 1, but is nan"),
        ({"d_model": 256, "num_heads": 3}, "`num_heads` must divide `d_model` (256), but is 3"),
        ({"d_model": 9}, "`d_model` must be even for sinusoidal positions, but is 9"),
        ({"norm": "both"}, "`norm` must be pre or post, but is 'both'"),
    ],
)
def test_what_the_constructor_refuses(changes: dict, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make(**changes)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("side", ["source", "target"])
def test_more_pieces_than_positions(side: str) -> None:
    ids = {"source": SOURCE[:1], "target": TARGET[:1]} | {side: torch.ones(1, 33).long()}
    with pytest.raises(ValueError, match=r"33 pieces is longer than `max_positions` \(32\)"):
        make()(**ids)


def trees(folder: Path) -> list[tuple[Path, ast.AST]]:
    found = [(path, ast.parse(path.read_text("utf-8"))) for path in sorted(folder.rglob("*.py"))]
    assert found
    return found


def test_the_model_is_built_from_standard_layers_alone() -> None:
    for path, tree in trees(SOURCES):
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("nn"):
                names = [node.attr]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.nn"):
                names = [alias.name for alias in node.names]
            for name in names:
                ready_made = name.startswith("Transformer") or name == "MultiheadAttention"
                assert not ready_made, f"{path}:{node.lineno} uses torch.nn.{name}"


def test_the_model_imports_torch_alone() -> None:
    for path, tree in trees(SOURCES / "model"):
        for node in ast.walk(tree):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level != 1:  # 1: from .attention ...
                modules = [node.module or ""]
                assert node.level == 0, f"{path}: imports from above model/"
            for module in modules:
                root = module.split(".")[0]
                fine = root == "torch" or root in sys.stdlib_module_names
                assert fine, f"{path}: imports {module}"
