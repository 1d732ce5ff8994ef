"""BLEU and chrF of a whole split, with the signatures that make them comparable."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

from zhen.data.scripts import is_chinese


@dataclass(frozen=True)
class Scores:
    """Corpus scores from 0 to 100 and their sacreBLEU signatures."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> Scores:
    """Score raw text against raw text (Papineni et al. 2002, Popović 2015, Post 2018).

    Equal to `sacrebleu REFERENCES -i HYPOTHESES -l xx-TARGET -m bleu chrf` on the same lines, where
    TARGET is zh for every code of Chinese, as zh-TW. For Japanese and Korean, sacreBLEU would have
    tokenizers that need packages of their own; here they are cut as English is: go by chrF.
    """
    # sacreBLEU's file reader strips line ends; so must we, to give the same number.
    hypotheses = [line.rstrip() for line in hypotheses]
    references = [line.rstrip() for line in references]
    bleu = BLEU(tokenize="zh" if is_chinese(target_lang) else "13a")
    chrf = CHRF()
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
