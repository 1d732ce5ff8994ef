"""The same weights in transformers and in CTranslate2: the same logits, the same translations."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import ctranslate2
import pytest
import torch
from scripts.peers import (
    ctranslate2_options,
    names,
    to_ctranslate2,
    to_transformers,
    transformers_options,
)
from tests.decoding.table import BOS, EOS, PAD, V, pad, some_sources
from torch.testing import assert_close

from zhen.decoding import DecodeOptions, Hypothesis, generate
from zhen.model import Transformer

LIMIT = 24
# log P of a sentence is a sum over its pieces, and CTranslate2 has an exponential of its own.
# Against float64, its sums are off by up to 2e-4 and ours by 1e-4.
ROUNDING = 1e-5 * LIMIT
MODELS = [
    {"norm": norm, "tie_embeddings": tied, "activation": activation, "seed": seed}
    for norm in ("post", "pre")
    for tied, activation, seed in [(True, "relu", 0), (True, "gelu", 1), (False, "relu", 0)]
]
MODELS += [{**each, "seed": 11, "source_vocab_size": V + 7} for each in (MODELS[0], MODELS[3])]
each_model = pytest.mark.parametrize(
    "about", MODELS, ids=lambda about: " ".join(str(value) for value in about.values())
)


@cache
def make(seed: int, **about: Any) -> Transformer:
    """Small and untrained, but with opinions: its matrices are enlarged."""
    torch.manual_seed(seed)
    model = Transformer(
        vocab_size=V, d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1,
        num_decoder_layers=2, max_positions=40, **about,
    ).eval()  # fmt: skip
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Zeros and ones would hide a bias or a norm that went to the wrong place.
            if parameter.ndim == 1:
                parameter += 0.1 * torch.randn_like(parameter)
            elif "embedding" not in name:
                parameter *= 3
        model.output.weight[EOS] *= 1.5
    return model


@cache
def in_transformers(**about: Any) -> Any:
    return to_transformers(make(**about), bos_id=BOS, eos_id=EOS)


@cache
def in_ctranslate2(**about: Any) -> ctranslate2.Translator:
    # A copy of its own: converting leaves marks on the configuration.
    return to_ctranslate2(to_transformers(make(**about), bos_id=BOS, eos_id=EOS), threads=1)


SOURCES = some_sources(12)


def search(about: dict[str, Any], count: int, **options: Any) -> list[list[Hypothesis]]:
    """Our `count` best hypotheses of each source."""
    asked = DecodeOptions(**options, num_return_sequences=count)
    return generate(make(**about), pad(SOURCES), asked, bos_id=BOS, eos_id=EOS)


def transformers_search(about: dict[str, Any], count: int, **options: Any) -> Any:
    """What `generate` returns for the same sources and options, `count` rows for each source."""
    source = pad(SOURCES)
    asked = transformers_options(DecodeOptions(**options)) | {
        "num_return_sequences": count,
        "return_dict_in_generate": True,
        "output_scores": True,
    }
    peer = in_transformers(**about)
    return peer.generate(source, attention_mask=(source != PAD).long(), **asked)


def said(row: Sequence[int]) -> list[int]:
    """The pieces between the start piece and the end piece, if there is one."""
    ids = list(row[1:])
    return ids[: ids.index(EOS)] if EOS in ids else ids


def assert_same_beams(about: dict[str, Any], **options: Any) -> list[list[Hypothesis]]:
    """Every hypothesis and score, in order; gives ours."""
    count = options["num_beams"]
    ours, theirs = search(about, count, **options), transformers_search(about, count, **options)
    flat = [hypothesis for best in ours for hypothesis in best]
    assert [h.ids for h in flat] == [said(row) for row in theirs.sequences.tolist()]
    # A penalty below 0 multiplies log P, and its error, by up to this much.
    factor = options["max_new_tokens"] ** max(0, -options.get("length_penalty", 1.0))
    expected = pytest.approx(theirs.sequences_scores.tolist(), abs=1e-4 * factor)
    assert [h.score for h in flat] == expected
    return ours


def assert_same_greedy(about: dict[str, Any], **options: Any) -> list[list[int]]:
    ours = [best[0].ids for best in search(about, 1, **options)]
    found = transformers_search(about, 1, **options)
    assert ours == [said(row) for row in found.sequences.tolist()]
    return ours


@each_model
@torch.no_grad()
def test_logits_are_those_of_transformers(about: dict[str, Any]) -> None:
    model, source, target = make(**about), pad(SOURCES), pad(some_sources(12, seed=1))
    target = torch.cat([torch.full((12, 1), BOS), target], dim=1)
    ours = model(source, target)
    ours[..., [PAD, BOS]] = float("-inf")
    found = in_transformers(**about)(
        input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target
    )
    assert_close(found.logits, ours, atol=1e-5, rtol=0)


@each_model
@pytest.mark.parametrize("limit", [1, 5, LIMIT])
def test_greedy_search_is_that_of_transformers(about: dict[str, Any], limit: int) -> None:
    ours = assert_same_greedy(about, max_new_tokens=limit)
    if limit == LIMIT:  # else the test says little
        assert len({tuple(ids) for ids in ours}) > 3 and any(len(ids) < limit for ids in ours)


@each_model
@pytest.mark.parametrize("num_beams", [2, 5])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 0.6, 1.0, 2.0])
def test_beam_search_is_that_of_transformers(
    about: dict[str, Any], num_beams: int, penalty: float
) -> None:
    for limit in (1, 5, LIMIT):
        assert_same_beams(about, num_beams=num_beams, length_penalty=penalty, max_new_tokens=limit)


@pytest.mark.parametrize("least", [1, 4, 9])
@each_model
def test_the_least_length_is_that_of_transformers(about: dict[str, Any], least: int) -> None:
    options = {"min_new_tokens": least, "max_new_tokens": LIMIT}
    assert min(map(len, assert_same_greedy(about, **options))) >= least
    ours = assert_same_beams(about, num_beams=4, **options)
    assert min(len(hypothesis.ids) for best in ours for hypothesis in best) >= least


@pytest.mark.parametrize("size", [1, 2, 3])
@each_model
def test_what_may_not_repeat_is_that_of_transformers(about: dict[str, Any], size: int) -> None:
    # Shorter than the vocabulary: where no piece is left to say, no order is right.
    options = {"no_repeat_ngram_size": size, "max_new_tokens": 12}
    assert_same_greedy(about, **options)
    assert_same_beams(about, num_beams=4, **options)


def ctranslate2_search(about: dict[str, Any], **options: Any) -> tuple[list, list[float]]:
    """The ids of the best hypothesis of each source, and its score."""
    asked = ctranslate2_options(DecodeOptions(**options))
    found = in_ctranslate2(**about).translate_batch(
        [names(source) for source in SOURCES], return_scores=True, **asked
    )
    ids = [[int(name) for name in result.hypotheses[0]] for result in found]
    return ids, [result.scores[0] for result in found]


@each_model
@torch.no_grad()
def test_probabilities_are_those_of_ctranslate2(about: dict[str, Any]) -> None:
    targets = some_sources(12, seed=1)
    logits = make(**about)(pad(SOURCES), pad([[BOS, *target[:-1]] for target in targets]))
    logits[..., [PAD, BOS]] = float("-inf")
    log_probs = logits.log_softmax(dim=-1)
    found = in_ctranslate2(**about).score_batch(
        [names(source) for source in SOURCES], [names(target[:-1]) for target in targets]
    )
    for row, target, result in zip(log_probs, targets, found, strict=True):
        ours = row[range(len(target)), target].tolist()
        assert result.log_probs == pytest.approx(ours, abs=1e-4)


@each_model
@pytest.mark.parametrize("limit", [1, 5, LIMIT])
def test_greedy_search_is_that_of_ctranslate2(about: dict[str, Any], limit: int) -> None:
    options = {"max_new_tokens": limit, "length_penalty": 0.0}
    ours = search(about, 1, **options)
    ids, scores = ctranslate2_search(about, **options)
    assert [best[0].ids for best in ours] == ids
    assert [best[0].score for best in ours] == pytest.approx(scores, abs=ROUNDING)


@each_model
@pytest.mark.parametrize("num_beams", [2, 5])
def test_beam_search_is_that_of_ctranslate2(about: dict[str, Any], num_beams: int) -> None:
    """Without a length penalty: with one, it stops before it is sure of the best hypothesis."""
    for limit in (1, 5, LIMIT):
        options = {"num_beams": num_beams, "max_new_tokens": limit, "length_penalty": 0.0}
        ours = search(about, 1, **options)
        ids, scores = ctranslate2_search(about, **options)
        assert [best[0].ids for best in ours] == ids
        assert [best[0].score for best in ours] == pytest.approx(scores, abs=ROUNDING)
