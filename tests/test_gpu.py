"""What holds on the CPU holds on a GPU; ZHEN_GPU_TESTS_ON=cpu tries these tests without one."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.plugins import MixedPrecision
from tests.conftest import Maker
from torch.nn import functional as F

from zhen.data import Batch
from zhen.decoding import DecodeOptions, generate
from zhen.model import Transformer
from zhen.model.attention import attention, fused_attention
from zhen.model.dropout import Dropout
from zhen.training.checkpoints import Checkpoints
from zhen.training.loss import token_loss

pytestmark = pytest.mark.gpu
PAD, BOS, EOS = 0, 1, 2
VOCAB = 50


@pytest.fixture
def device() -> torch.device:
    name = os.environ.get("ZHEN_GPU_TESTS_ON") or "cuda"
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return torch.device(name)


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        vocab_size=VOCAB, d_model=64, num_heads=4, d_ff=128, num_encoder_layers=2,
        num_decoder_layers=2, dropout=0.1, max_positions=64,
    )  # fmt: skip


def ids(*lengths: int) -> torch.Tensor:
    """Random pieces, a row of each length, padded."""
    rng = torch.Generator().manual_seed(0)
    rows = [torch.randint(3, VOCAB, (length,), generator=rng) for length in lengths]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def batch(device: torch.device) -> Batch:
    source, labels = ids(9, 5, 12), ids(7, 11, 3)
    target = F.pad(labels[:, :-1], (1, 0), value=BOS).masked_fill(labels == PAD, PAD)
    tokens = int((labels != PAD).sum())
    return Batch([0, 1, 2], source, target, labels, tokens, tokens).to(device)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("masked", ["padding", "causal", "nothing"])
def test_the_fused_kernel_is_the_formula(
    device: torch.device, dtype: torch.dtype, atol: float, masked: str
) -> None:
    torch.manual_seed(0)
    length = 17
    query, key, value = (
        torch.randn(3, 4, length, 32).to(device, dtype).requires_grad_() for _ in range(3)
    )
    padding = (torch.arange(length) < torch.tensor([[17], [9], [1]]))[:, None, None]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    mask = {"padding": padding, "causal": causal, "nothing": None}[masked]
    mask = None if mask is None else mask.to(device)
    wanted, _ = attention(query, key, value, mask)
    own = None if masked == "causal" else mask
    found = fused_attention(query, key, value, own, is_causal=masked == "causal")
    torch.testing.assert_close(found, wanted, atol=atol, rtol=atol)
    weights = torch.randn_like(found)
    gradients = [
        torch.autograd.grad((each * weights).sum(), (query, key, value)) for each in (found, wanted)
    ]
    for ours, formula in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, formula, atol=4 * atol, rtol=4 * atol)


def test_the_loss_is_that_of_the_cpu(device: torch.device, model: Transformer) -> None:
    model.eval()
    there = token_loss(model, batch(torch.device("cpu")), 0.1).smoothed.item()
    here = token_loss(model.to(device), batch(device), 0.1).smoothed.item()
    assert here == pytest.approx(there, rel=1e-4)


def test_a_step_in_bf16_is_near_that_in_float32(device: torch.device, model: Transformer) -> None:
    """Weights, gradients and the loss itself stay float32."""
    model.to(device).eval()  # no dropout: the two must see the same

    def step(mixed: bool) -> tuple[torch.Tensor, torch.Tensor]:
        model.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            found = token_loss(model, batch(device), 0.1)
        (loss := found.smoothed / found.tokens).backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert {each.dtype for each in (loss, *gradients, *model.parameters())} == {torch.float32}
        return loss.detach(), torch.cat([each.flatten() for each in gradients])

    (loss, gradient), (mixed_loss, mixed_gradient) = step(False), step(True)
    assert mixed_loss.item() == pytest.approx(loss.item(), rel=1e-2)
    assert mixed_loss.item() != loss.item(), "nothing was done in bfloat16"
    assert F.cosine_similarity(gradient, mixed_gradient, dim=0) > 0.99


@pytest.mark.parametrize("p", [0.1, 0.3])
def test_dropout_drops_its_share_and_keeps_the_mean(device: torch.device, p: float) -> None:
    dropout, x = Dropout(p), torch.ones(1000, 1000, device=device)
    torch.manual_seed(0)
    first = dropout(x)
    assert (first == 0).float().mean().item() == pytest.approx(p, abs=3e-3)
    assert first.max().item() == pytest.approx(1 / (1 - p), rel=1e-4)
    assert not torch.equal(first, dropout(x))
    torch.manual_seed(0)
    assert torch.equal(first, dropout(x))
    assert torch.equal(dropout.eval()(x), x)


def test_cached_decoding_is_the_whole_forward_pass(
    device: torch.device, model: Transformer
) -> None:
    """Each step's logits are those of the last position of `forward`, up to float32."""
    model.to(device).eval()
    source, target = ids(9, 5, 12).to(device), F.pad(ids(8, 8, 8), (1, 0), value=BOS).to(device)
    with torch.no_grad():
        whole = model(source, target)  # (B, T, V)
        cache = model.start(source)
        steps = [model.step(target[:, i : i + 1], cache)[:, 0] for i in range(target.size(1))]
    torch.testing.assert_close(torch.stack(steps, dim=1), whole, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_translation_is_that_of_the_cpu(
    device: torch.device, model: Transformer, beams: int
) -> None:
    model.eval()
    options = DecodeOptions(num_beams=beams, max_new_tokens=12)
    found = []
    for where in (torch.device("cpu"), device):
        model.to(where)
        hypotheses = generate(model, ids(9, 5, 12).to(where), options, bos_id=BOS, eos_id=EOS)
        found.append([each[0].ids for each in hypotheses])
    assert found[0] == found[1] and any(found[0])


def test_16_mixed_goes_on_where_it_was(
    device: torch.device, tmp_path: Path, make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    """The scale of its loss, for how long that has not grown, and the random numbers."""

    def train(name: str, updates: int) -> dict[str, Any]:
        """Go on from last.ckpt, if there is one, up to `updates`; gives the new one."""
        keeper = Checkpoints(dirpath=str(tmp_path / name), monitor=None)
        keeper.dirpath.mkdir(exist_ok=True)
        saved = keeper.last if keeper.last.exists() else None
        scaler = torch.amp.GradScaler(device.type, init_scale=64.0, growth_interval=3)
        data = make_data()
        module = make_module(data)
        torch.manual_seed(1 if saved is None else 2)  # as if it were another process
        trainer = make_trainer(
            accelerator=device.type, devices=1, max_epochs=-1, max_steps=updates,
            limit_val_batches=0, enable_checkpointing=True, callbacks=[keeper],
            plugins=[MixedPrecision("16-mixed", device.type, scaler)],
        )  # fmt: skip
        trainer.fit(module, datamodule=data, ckpt_path=saved)
        return torch.load(keeper.last, weights_only=True)

    whole = train("whole", 7)
    for updates, scale, tracker in ((4, 128, 1), (7, 256, 1)):
        found = train("parts", updates)
        kept = found["MixedPrecision"]
        assert (kept["scale"], kept["_growth_tracker"]) == (scale, tracker)
    assert kept == whole["MixedPrecision"]
    # The weights may differ: a GPU adds up gradients in whatever order.
    ours, theirs = (each["resume"]["random"][0] for each in (found, whole))
    assert ours.keys() == theirs.keys()
    assert ("cuda" in ours) == (device.type == "cuda")
    for name in ours.keys() & {"torch", "cuda"}:
        assert torch.equal(ours[name], theirs[name]), name
