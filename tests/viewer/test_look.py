"""The maps are the model's own weights, and every row and column says which piece it is."""

from dataclasses import replace

import pytest
import torch
from tests.toy_tokenizer import learn
from tests.viewer.toy import (
    BUTTERFLY,
    DECODER_LAYERS,
    ENCODER_LAYERS,
    HEADS,
    POSITIONS,
    TOKENIZER,
    make,
)

from zhen.data import Tokenizer
from zhen.decoding import DecodeOptions
from zhen.errors import UserError
from zhen.model import attention_weights
from zhen.viewer.look import best_translation, labels, look, read_sentence

TRANSLATOR = make()


def ids(text: str) -> list[int]:
    return TOKENIZER.source.encode([text])[0]


def test_the_maps_are_what_the_model_looked_at() -> None:
    source, target = ids("你很漂亮"), ids("you are beautiful")
    encoder, decoder, cross = look(TRANSLATOR, source, target)
    found = attention_weights(
        TRANSLATOR.model,
        torch.tensor([[*source, TOKENIZER.eos_id]]),
        torch.tensor([[TOKENIZER.bos_id, *target]]),
    )
    assert torch.equal(encoder.weights, found.encoder[:, 0])
    assert torch.equal(decoder.weights, found.decoder[:, 0])
    assert torch.equal(cross.weights, found.cross[:, 0])


def test_each_row_and_column_has_its_piece() -> None:
    source, target = ids("你很漂亮"), ids("you are beautiful")
    encoder, decoder, cross = look(TRANSLATOR, source, target)
    sources = [*labels(TOKENIZER.source, source), "</s>"]
    assert "".join(sources) == "你很漂亮</s>" and len(sources) > 2
    read = ["<s>", *labels(TOKENIZER.target, target)]
    assert "".join(read) == "<s>you␣are␣beautiful"
    assert (encoder.queries, encoder.keys, encoder.following) == (sources, sources, None)
    assert (decoder.queries, decoder.keys) == (read, read)
    assert (cross.queries, cross.keys) == (read, sources)
    assert decoder.following == cross.following == [*read[1:], "</s>"]
    for each, layers in ((encoder, ENCODER_LAYERS), (decoder, DECODER_LAYERS)):
        assert each.weights.shape == (layers, HEADS, len(each.queries), len(each.keys))


def test_each_side_is_cut_and_named_by_its_own_vocabulary() -> None:
    zh = learn(["你很漂亮"] * 3, vocab_size=262, byte_fallback=False).source
    tokenizer = Tokenizer(zh, TOKENIZER.target)
    translator = replace(make(**tokenizer.vocab_sizes), tokenizer=tokenizer)
    source = read_sentence(translator, "你很漂亮", key="text", side="source")
    target = read_sentence(translator, "you are", key="target", side="target")
    assert (source, target) == (zh.encode(["你很漂亮"])[0], ids("you are"))
    cross = look(translator, source, target)[2]
    assert cross.keys == [*zh.pieces(source), "</s>"]
    assert "".join(cross.queries) == "<s>you␣are"


def test_a_layer_a_head_and_their_means() -> None:
    cross = look(TRANSLATOR, ids("你很漂亮"), ids("you"))[2]
    torch.testing.assert_close(cross.mean(2, 3), cross.weights[1, 2])
    torch.testing.assert_close(cross.mean(layer=1), cross.weights[0].mean(dim=0))
    torch.testing.assert_close(cross.mean(head=4), cross.weights[:, 3].mean(dim=0))
    torch.testing.assert_close(cross.mean(), cross.weights.flatten(0, 1).mean(dim=0))
    torch.testing.assert_close(cross.mean().sum(dim=-1), torch.ones(len(cross.queries)))


def test_labels_show_what_prints_nothing() -> None:
    text = " a\t你\u200b\u3000\u2028"
    # What the vocabulary lacks is bytes, and a byte's name is visible already.
    assert "".join(labels(TOKENIZER.source, ids(text))).startswith("␣a<0x09>你<0xE2>")
    assert "<0xF0>" in labels(TOKENIZER.source, ids("🦋"))
    knows = learn(["你\u3000好"] * 3, vocab_size=300).source
    assert "".join(labels(knows, knows.encode(["你\u3000好"])[0])) == "你U+3000好"


def test_a_translation_that_fills_every_position_is_looked_at_whole() -> None:
    longest = [5] * POSITIONS  # as beam search gives it at its limit, without an end piece
    cross = look(TRANSLATOR, ids("你"), longest)[2]
    assert len(cross.queries) == len(cross.following or []) == POSITIONS
    assert "</s>" not in cross.following


def test_an_empty_translation_has_the_row_of_the_start() -> None:
    _, decoder, cross = look(TRANSLATOR, ids("你"), [])
    assert decoder.queries == ["<s>"] and cross.following == ["</s>"]
    assert decoder.weights.flatten().tolist() == [1.0] * DECODER_LAYERS * HEADS


@pytest.mark.parametrize("beams", [1, 3])
def test_the_translation_is_that_of_the_translator(beams: int) -> None:
    options = DecodeOptions(num_beams=beams, max_new_tokens=8)
    found = best_translation(TRANSLATOR, ids(BUTTERFLY), options)
    assert TOKENIZER.target.decode([found]) == TRANSLATOR.translate([BUTTERFLY], options)


def test_the_longest_sentence_still_fits() -> None:
    text = "$" * 2 * POSITIONS
    while len(ids(text)) > POSITIONS - 1:
        text = text[:-1]
    found = read_sentence(TRANSLATOR, f"  {text}\n", key="text", side="source")
    assert len(found) == POSITIONS - 1
    look(TRANSLATOR, found, found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`text` is empty: give one sentence"),
        (" \u3000\t\n", "`text` is empty: give one sentence"),
        ("你\n好\n", "`text` has 2 lines: give one sentence, on one line"),
        ("龘" * 14, f"`text` has 42 pieces, but the model takes at most {POSITIONS - 1}: shorten"),
    ],
)
def test_what_is_no_sentence(text: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        read_sentence(TRANSLATOR, text, key="text", side="source")
    assert str(refused.value).startswith(message)
