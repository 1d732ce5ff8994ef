"""The benchmark of decoding runs, compares every decoder with ours, and refuses in one line."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from scripts import bench_decode
from tests.toy_tokenizer import learn

from zhen.errors import UserError
from zhen.model import Transformer
from zhen.translator import Translator

SENTENCES = ["你很漂亮。", "", "我喜欢你！", "It is 3.5 metres long."]
DECODERS = ["zhen", "transformers", "transformers, sorted", "CTranslate2"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Of an untrained model, in a run whose test has three sentences."""
    tokenizer = learn(SENTENCES, vocab_size=280)
    torch.manual_seed(0)
    model = Transformer(
        **tokenizer.vocab_sizes, d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1,
        num_decoder_layers=1, norm="pre", max_positions=64,
    )  # fmt: skip
    about = Translator(model, tokenizer, "zh", "en").description()
    weights = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    path = tmp_path / "run/checkpoints/best.ckpt"
    path.parent.mkdir(parents=True)
    torch.save({"zhen": about, "state_dict": weights}, path)
    (tmp_path / "run/test.one.src").write_text("\n".join(SENTENCES), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_each_decoder_is_measured_at_each_setting(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--sentences 3 --single 2 --rounds 2 --threads 1 --longest 6".split()
    bench_decode.main([str(checkpoint), *words])
    about, table = capsys.readouterr().out.split("\n\n")
    assert "1 threads" in about and "2 rounds" in about and "at most 6 pieces" in about
    header, rule, *rows = [line.split("|")[1:-1] for line in table.splitlines()]
    assert set(rule) == {"---"} and {len(row) for row in rows} == {len(header)}
    cells = [[cell.strip() for cell in row] for row in rows]
    assert [row[:3] for row in cells] == [
        [search, batch, decoder]
        for search in ("greedy", "beam 5")
        for batch in ("1", "64")
        for decoder in DECODERS
        if (batch, decoder) != ("1", "transformers, sorted")
    ]
    for _, batch, decoder, speed, ratio, spread, same in cells:
        least, most = map(float, spread.split("–"))
        assert float(speed) > 0 and least <= float(ratio) <= most
        if decoder != "CTranslate2":  # its beam search is another
            assert same == ("2 of 2" if batch == "1" else "3 of 3")
        if decoder == "zhen":
            assert ratio == "1.00"


def test_the_profile_is_of_every_setting(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--profile --sentences 2 --single 1 --threads 1 --longest 3".split()
    bench_decode.main([str(checkpoint), *words])
    out = capsys.readouterr().out
    assert out.count("Self CPU time total") == 4 and "aten::addmm" in out


def test_sentences_may_come_from_a_file(checkpoint: Path, tmp_path: Path) -> None:
    """In an order that is always the same; those that the model cannot take are left out."""
    translator = Translator.load(checkpoint)
    text = tmp_path / "text"
    text.write_text("\n".join([*map(str, range(20)), "", "  ", "字" * 100, "a\u2028b"]))
    found = [bench_decode.read_sources(text, checkpoint, translator) for _ in range(2)]
    assert found[0] == found[1] and len(found[0]) == 21
    assert all(ids[-1] == translator.tokenizer.eos_id for ids in found[0])


def test_without_sentences_one_line_says_so(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n\n")
    for words in ([], ["--text", str(tmp_path / "empty")]):
        (checkpoint.parent.parent / "test.one.src").unlink(missing_ok=True)
        with pytest.raises(UserError, match="--text FILE"):
            bench_decode.main([str(checkpoint), *words])


def test_a_text_that_cannot_be_read_is_named(checkpoint: Path, tmp_path: Path) -> None:
    for text in (tmp_path / "nowhere", checkpoint):
        with pytest.raises(UserError, match=f"--text: cannot read {text}"):
            bench_decode.main([str(checkpoint), "--text", str(text)])


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--threads", "x"], ["--unknown"]])
def test_a_wrong_argument_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_decode.main(words)
    assert words[0] in capsys.readouterr().err
