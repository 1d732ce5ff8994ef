"""N lines in, N lines out, whatever they hold; and one file that holds a translator, or is refused.

Where the model's words do not matter, it is replaced by an echo that says its source again: then
the translation is the line itself, and anything lost, doubled or out of order shows.
"""

import json
import logging
import os
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.toy_tokenizer import learn

from zhen import translator as module
from zhen.data import Tokenizer, Vocabulary
from zhen.decoding import DecodeOptions, Hypothesis
from zhen.errors import UserError
from zhen.model import Transformer
from zhen.translator import Translator, read_checkpoint

POSITIONS = 24
TRAINING = ["你很漂亮。我喜欢你！", "It is 3.5 metres long. Is it?", '他说："你好。"'] * 3
TOKENIZER = learn(TRAINING, vocab_size=320)
GREEDY, BEAM = DecodeOptions(max_new_tokens=12), DecodeOptions(num_beams=3, max_new_tokens=12)


def make(positions: int = POSITIONS, **changes: Any) -> Translator:
    torch.manual_seed(0)
    sizes = {
        **TOKENIZER.vocab_sizes, "d_model": 16, "num_heads": 2, "d_ff": 32,
        "num_encoder_layers": 1, "num_decoder_layers": 1, "max_positions": positions,
    }  # fmt: skip
    return Translator(Transformer(**(sizes | changes)).eval(), TOKENIZER, "en", "zh")


def make_two(source: Vocabulary, target: Vocabulary) -> Translator:
    """A translator with a vocabulary for each side."""
    tokenizer = Tokenizer(source, target)
    return replace(make(**tokenizer.vocab_sizes), tokenizer=tokenizer)


ENGLISH = learn(["It is 3.5 metres long."] * 3, vocab_size=300).source
CHINESE = learn(["你很漂亮。"] * 3, vocab_size=270).source


TRANSLATOR = make()
LINES = [
    "你很漂亮。", "", "It is 3.5 metres long.", "   ", "\u3000\t", "我喜欢你！" * 20, "<pad> </s>",
    "\x00", "👨‍👩‍👧", "a b", "你很漂亮。", "\u200b", "x" * 300, "\r", "a\x85b\u2028c",
]  # fmt: skip
BLANK = [number for number, line in enumerate(LINES) if not line.strip()]


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Replace decoding by saying the source again; gives the parts that were decoded."""
    heard: list[list[int]] = []

    def say_again(model, source, options, *, bos_id: int, eos_id: int) -> list[list[Hypothesis]]:
        rows = [[i for i in row if i != TOKENIZER.pad_id] for row in source.tolist()]
        assert all(row[-1] == eos_id and eos_id not in row[:-1] for row in rows)
        assert all(len(row) <= model.max_positions for row in rows)
        heard.extend(rows)
        return [[Hypothesis(row[:-1], 0.0)] for row in rows]

    monkeypatch.setattr(module, "generate", say_again)
    return heard


@pytest.mark.parametrize("options", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_as_many_lines_out_as_in(options: DecodeOptions) -> None:
    found = TRANSLATOR.translate(LINES, options)
    assert len(found) == len(LINES)
    assert all("\n" not in text for text in found)
    assert [number for number, text in enumerate(found) if not text] == BLANK
    assert found[0] == found[10]


@pytest.mark.parametrize("lines", [[], [""], ["", "  ", "\t"]])
def test_nothing_to_translate(lines: list[str]) -> None:
    assert TRANSLATOR.translate(lines, GREEDY) == [""] * len(lines)


@pytest.mark.parametrize("options", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_a_translation_depends_neither_on_its_batch_nor_on_the_order(
    options: DecodeOptions,
) -> None:
    expected = TRANSLATOR.translate(LINES, options)
    assert len(set(expected)) > 5  # else the test says nothing
    assert [TRANSLATOR.translate([line], options)[0] for line in LINES] == expected
    assert TRANSLATOR.translate(LINES[::-1], options) == expected[::-1]
    for tokens in (1, 30, 10**6):
        assert TRANSLATOR.translate(LINES, options, tokens=tokens) == expected


def test_several_translations_of_a_line() -> None:
    several = DecodeOptions(num_beams=3, num_return_sequences=3, max_new_tokens=8)
    found = TRANSLATOR.n_best(LINES, several)
    assert [each[0].text for each in found] == TRANSLATOR.translate(LINES, several)
    for number, translations in enumerate(found):
        scores = [each.score for each in translations]
        assert len(scores) == (1 if number in BLANK else 3)
        assert scores == sorted(scores, reverse=True)


def test_several_translations_of_a_line_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Best goes with best; the score is the sum."""

    def two(model, source, options, **ids: int) -> list[list[Hypothesis]]:
        rows = [[i for i in row if i != TOKENIZER.pad_id] for row in source.tolist()]
        return [[Hypothesis(row[:-1], -1.0), Hypothesis(row[:1], -2.0)] for row in rows]

    monkeypatch.setattr(module, "generate", two)
    text = "你很漂亮。" * 3
    each = len(TOKENIZER.source.encode(["你很漂亮。"])[0])
    best, second = make(positions=each + 1).n_best([text], GREEDY)[0]
    assert (best.text, best.score) == (text, -3.0)
    assert len(second.text) < len(text) and second.score == -6.0


SENTENCES = st.sampled_from([*TRAINING[:3], "", " ", "word", "。", "……", ".", "扫帚𠮷", "a\tb"])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=80) | st.lists(SENTENCES, max_size=12).map(
    "".join
)


@given(lines=st.lists(TEXTS, max_size=6), positions=st.sampled_from([5, 8, POSITIONS, 1000]))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(lines=["𠮷" * 50, "你" * 50, "a𠮷𠮷é" * 20], positions=6)
def test_no_piece_is_lost_doubled_or_out_of_order(
    lines: list[str], positions: int, echo: list
) -> None:
    """However often a line is cut, and though no cut falls inside a character."""
    found = make(positions).translate(lines, GREEDY, tokens=64)
    assert found == [" ".join(line.strip().split("\n")) for line in lines]


def parts_of(heard: list[list[int]], text: str) -> list[str]:
    """The parts as text, in the order they stand in `text`."""
    return sorted(TOKENIZER.source.decode(heard), key=text.index)


@pytest.mark.parametrize(
    "sentences",
    [
        ["第一句很短。", "第二句话比第一句长？", "第三句！", "最后一句没有句号"],
        ["It is long.", " It is 3.5 metres long, is it?", " Yes!", " It is"],
        ["他说：“你好。”", "我说：“你很漂亮！”", "他很喜欢。"],
        ["See a.b.c;", " it is 1.2.3.4.5.6.7.8 now.", " Is it?"],
        ["它很长……。", "你很漂亮。"],
    ],
)
def test_a_long_line_is_cut_at_the_ends_of_sentences(sentences: list[str], echo: list) -> None:
    text = "".join(sentences)
    lengths = [len(ids) for ids in TOKENIZER.source.encode(sentences)]
    translator = make(positions=max(lengths) + 1)
    assert translator.translate([text], GREEDY) == [text]
    ends = {len("".join(sentences[: i + 1])) for i in range(len(sentences))}
    found, at = parts_of(echo, text), 0
    assert len(found) > 1
    for part in found:
        at += len(part)
        assert at in ends, found


def test_as_many_sentences_to_a_part_as_fit(echo: list) -> None:
    text = "你很漂亮。" * 10
    each = len(TOKENIZER.source.encode(["你很漂亮。"])[0])
    make(positions=3 * each + 1).translate([text], GREEDY)
    assert sorted(TOKENIZER.source.decode(echo)) == ["你很漂亮。", *["你很漂亮。" * 3] * 3]


def test_a_long_line_is_named_and_the_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    fits, too_long = "a" * (POSITIONS - 1), "a" * POSITIONS
    assert [len(ids) for ids in TOKENIZER.source.encode([fits, too_long])] == [23, 24]
    with caplog.at_level(logging.WARNING):
        TRANSLATOR.n_best(["你", fits, too_long, "", too_long * 3], GREEDY, first_line=101)
    assert [record.getMessage() for record in caplog.records] == [
        f"line {line} has {pieces} pieces, more than the model's 24 positions: translated in"
        f" {parts} parts"
        for line, pieces, parts in ((103, 25, 2), (105, 73, 4))
    ]


@pytest.mark.parametrize(("target_lang", "between"), [("zh", ""), ("en", " ")])
def test_parts_are_joined_as_the_target_language_is(
    target_lang: str, between: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ids,) = TOKENIZER.source.encode(["ok"])
    monkeypatch.setattr(
        module, "generate", lambda _, source, *a, **k: [[Hypothesis(ids, 0.0)] for _ in source]
    )
    translator = replace(TRANSLATOR, target_lang=target_lang)
    assert translator.translate(["a" * 60, "a"], GREEDY) == [between.join(["ok"] * 3), "ok"]


def test_line_breaks_in_the_output_become_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    (ids,) = TOKENIZER.source.encode(["one\ntwo\n"])
    monkeypatch.setattr(module, "generate", lambda *a, **k: [[Hypothesis(ids, 0.0)]])
    assert TRANSLATOR.translate(["a"], GREEDY) == ["one two "]


def test_the_best_hypothesis_is_the_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    best, other = TOKENIZER.source.encode(["best", "other"])
    monkeypatch.setattr(
        module, "generate", lambda *a, **k: [[Hypothesis(best, -1.0), Hypothesis(other, -2.0)]]
    )
    assert TRANSLATOR.translate(["a"], BEAM) == ["best"]


def content_of(translator: Translator) -> dict[str, Any]:
    """What training writes, with something besides, as Lightning adds."""
    weights = {f"model.{name}": tensor for name, tensor in translator.model.state_dict().items()}
    return {
        "zhen": translator.description(),
        "state_dict": weights | {"loss.weight": torch.ones(1)},
        "epoch": 3,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "best.ckpt"
    torch.save(content_of(TRANSLATOR), path)
    return path


def test_one_file_holds_a_translator(path: Path) -> None:
    found = Translator.load(path)
    assert found.description() == TRANSLATOR.description()
    assert not found.model.training
    assert found.translate(LINES, BEAM) == TRANSLATOR.translate(LINES, BEAM)
    assert Translator.load(str(path)).source_lang == "en"


@pytest.mark.parametrize(
    "changes", [{"norm": "pre"}, {"tie_embeddings": False, "activation": "gelu", "dropout": 0.3}]
)
def test_every_kind_of_model_comes_back(changes: dict[str, Any], tmp_path: Path) -> None:
    translator = make(**changes)
    torch.save(content_of(translator), tmp_path / "x.ckpt")
    found = Translator.load(tmp_path / "x.ckpt")
    assert found.model.config == translator.model.config
    assert found.translate(LINES, GREEDY) == translator.translate(LINES, GREEDY)


def test_two_vocabularies_come_back(tmp_path: Path) -> None:
    translator = make_two(ENGLISH, CHINESE)
    torch.save(content_of(translator), tmp_path / "x.ckpt")
    found = Translator.load(tmp_path / "x.ckpt")
    assert found.description() == translator.description()
    assert found.translate(LINES, BEAM) == translator.translate(LINES, BEAM)


def test_each_vocabulary_has_its_side(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[list[int]] = []

    def answer(model, source, *args, **ids: int) -> list[list[Hypothesis]]:
        heard.extend(source.tolist())
        (said,) = CHINESE.encode(["漂亮"])
        return [[Hypothesis(said, 0.0)] for _ in source]

    monkeypatch.setattr(module, "generate", answer)
    assert make_two(ENGLISH, CHINESE).translate(["It is long"], GREEDY) == ["漂亮"]
    assert heard == [[*ENGLISH.encode(["It is long"])[0], ENGLISH.eos_id]]


@pytest.mark.parametrize(
    ("source", "target"),
    [(CHINESE, ENGLISH), (ENGLISH, ENGLISH), (CHINESE, CHINESE)],
    ids=["turned", "English twice", "Chinese twice"],
)
def test_vocabularies_of_another_model(
    source: Vocabulary, target: Vocabulary, tmp_path: Path
) -> None:
    content = content_of(make_two(ENGLISH, CHINESE))
    content["zhen"]["tokenizer"] = Tokenizer(source, target).to_json()
    torch.save(content, tmp_path / "x.ckpt")
    assert "its tokenizer is of another model" in refusal(tmp_path / "x.ckpt")


def test_one_vocabulary_is_described_as_before_there_could_be_two() -> None:
    """So that older checkpoints load, and older versions load these."""
    about = TRANSLATOR.description()
    assert "source_vocab_size" not in about["model"]
    assert json.loads(about["tokenizer"])["model"]["type"] == "BPE"


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        Translator.load(path)
    message = str(caught.value)
    assert message.startswith("ckpt: ") and str(path) in message
    assert "\n" not in message and len(message) < 500
    return message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "no.ckpt")
    assert "cannot read" in refusal(tmp_path)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.9, 0.999])
def test_a_truncated_file(share: float, path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert "is truncated or no checkpoint" in refusal(path)


@given(
    content=st.binary(max_size=200),
    head=st.sampled_from([b"", b"PK\x03\x04", b"\x80\x02", b"\x80\x04\x95"]),
)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_bytes(content: bytes, head: bytes, tmp_path: Path) -> None:
    (tmp_path / "random.ckpt").write_bytes(head + content)
    refusal(tmp_path / "random.ckpt")


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.ckpt", "w") as archive:
        archive.writestr("hello.txt", "hello")
    assert "is damaged" in refusal(tmp_path / "x.ckpt")


CONTENTS = [None, 5, "text", [1, 2], {}, {"zhen": None}, {"zhen": {}, "state_dict": {}}, {1: 2}]


@pytest.mark.parametrize("content", CONTENTS, ids=repr)
@pytest.mark.parametrize("save", [torch.save, lambda x, f: f.write_bytes(pickle.dumps(x))])
def test_other_pickles(save: Callable[[Any, Path], None], content: Any, tmp_path: Path) -> None:
    save(content, tmp_path / "x.ckpt")
    refusal(tmp_path / "x.ckpt")


class Hostile:
    """Unpickling it makes a directory."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("where", ["whole", "zhen", "state_dict", "epoch"])
@pytest.mark.parametrize("save", [torch.save, lambda x, f: f.write_bytes(pickle.dumps(x))])
def test_a_hostile_pickle_runs_nothing(
    save: Callable[[Any, Path], None], where: str, tmp_path: Path
) -> None:
    hostile = Hostile(tmp_path / "proof")
    save(
        hostile if where == "whole" else content_of(TRANSLATOR) | {where: hostile},
        tmp_path / "x.ckpt",
    )
    assert "nothing in it was run" in refusal(tmp_path / "x.ckpt")
    assert not (tmp_path / "proof").exists()
    # The trap works where the file is trusted.
    with (tmp_path / "trap").open("wb") as file:
        pickle.dump(hostile, file)
    pickle.loads((tmp_path / "trap").read_bytes())
    assert (tmp_path / "proof").exists()


def other_tokenizer() -> str:
    return learn(TRAINING, vocab_size=270).to_json()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"d_model": 32}, "size mismatch"),
        ({"num_encoder_layers": 2}, "Missing key"),
        ({"norm": "pre"}, "Missing key"),
        ({"num_heads": 3}, "`num_heads` must divide `d_model`"),
        ({"d_model": "wide"}, "TypeError"),
        ({"depth": 3}, "depth"),
    ],
    ids=str,
)
def test_weights_of_another_size(changes: dict[str, Any], reason: str, path: Path) -> None:
    content = content_of(TRANSLATOR)
    content["zhen"]["model"] = content["zhen"]["model"] | changes
    torch.save(content, path)
    message = refusal(path)
    assert "is no checkpoint of zhen" in message and reason in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer", "no tokenizer"),
        ("tokenizer", 5),
        ("tokenizer", other_tokenizer()),
        ("model", None),
        ("model", [1]),
    ],
    ids=["text", "number", "another", "no model", "list"],
)
def test_a_description_that_is_wrong(name: str, value: Any, path: Path) -> None:
    content = content_of(TRANSLATOR)
    content["zhen"][name] = value
    torch.save(content, path)
    refusal(path)


@pytest.mark.parametrize("name", ["tokenizer", "model", "source_lang", "target_lang"])
def test_a_description_that_lacks_something(name: str, path: Path) -> None:
    content = content_of(TRANSLATOR)
    del content["zhen"][name]
    torch.save(content, path)
    assert f"'{name}'" in refusal(path)


@pytest.mark.parametrize(
    "weights",
    [{}, {1: 2}, [], {"model.output.weight": "text"}, {"encoder": torch.ones(1)}],
    ids=str,
)
def test_weights_that_are_none(weights: Any, path: Path) -> None:
    torch.save(content_of(TRANSLATOR) | {"state_dict": weights}, path)
    refusal(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_of_a_training_that_diverged(value: float, path: Path) -> None:
    content = content_of(TRANSLATOR)
    content["state_dict"]["model.output.weight"] = torch.full_like(
        content["state_dict"]["model.output.weight"], value
    )
    torch.save(content, path)
    assert "not all finite: the training diverged" in refusal(path)


def test_the_content_is_plain_data_on_the_cpu(path: Path) -> None:
    content = read_checkpoint(path)
    assert content["epoch"] == 3
    assert all(tensor.device.type == "cpu" for tensor in content["state_dict"].values())
    description = content["zhen"]
    assert set(description) == {"version", "model", "tokenizer", "source_lang", "target_lang"}
