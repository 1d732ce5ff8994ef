"""BLEU and chrF equal to the sacrebleu command on the same lines."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from zhen.training.scores import score

ZH = (
    ["我喜欢茶。", "他们看见了三只黑猫 ", "“2023 年”……", "", "a\u2028b", "𠮷野家的 dog"],
    ["我很喜欢茶。", "他们看见三只黑猫。", "“2023年”……", "花", "a\u2028b c", "𠮷野家有 dog"],
)
EN = (
    ["I like tea.", "  they saw  three black cats", "in 2023 .", "", "a\u2028b\u3000", "it's\r5%"],
    ["I like tea.", "They saw three black cats. ", "in 2023.", "flower", "a\u2028b c", "it's\r5 %"],
)


@pytest.mark.parametrize(
    ("target_lang", "lines", "tokenizer"), [("zh", ZH, "zh"), ("en", EN, "13a")]
)
def test_equal_to_the_command_line_on_the_written_files(
    tmp_path: Path, target_lang: str, lines: tuple[list[str], list[str]], tokenizer: str
) -> None:
    hypotheses, references = lines
    for name, texts in (("test.hyp", hypotheses), ("test.ref", references)):
        (tmp_path / name).write_bytes("".join(f"{text}\n" for text in texts).encode())
    line = [sys.executable, "-m", "sacrebleu", "test.ref", "-i", "test.hyp", "-m", "bleu", "chrf"]
    line += ["-l", f"xx-{target_lang}", "-w", "12"]
    printed = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    bleu, chrf = json.loads(printed)
    found = score(hypotheses, references, target_lang)
    assert found.bleu == pytest.approx(bleu["score"], abs=1e-9)
    assert found.chrf == pytest.approx(chrf["score"], abs=1e-9)
    assert found.bleu_signature == bleu["signature"]
    assert found.chrf_signature == chrf["signature"]
    assert f"|tok:{tokenizer}|" in found.bleu_signature


def test_the_target_language_chooses_the_tokenizer() -> None:
    same = ["我喜欢喝绿茶。"]
    assert score(same, same, "zh").bleu == pytest.approx(100)
    assert score(same, same, "en").bleu < 100  # one word for 13a: no pair of words to match
    for lang in ("zh-CN", "zh_TW", "zh-Hant", "cmn"):
        assert "tok:zh|" in score(same, same, lang).bleu_signature
    for lang in ("de", "zh-Latn"):
        assert "tok:13a|" in score(same, same, lang).bleu_signature


def test_a_corpus_score_is_no_mean_of_sentence_scores() -> None:
    hypotheses, references = ["a b c d e f", "x"], ["a b c d e f", "y y y"]
    whole = score(hypotheses, references, "en").bleu
    singles = [score([h], [r], "en").bleu for h, r in zip(hypotheses, references, strict=True)]
    assert whole != pytest.approx(sum(singles) / 2)
    assert score(hypotheses[::-1], references[::-1], "en").bleu == pytest.approx(whole)
