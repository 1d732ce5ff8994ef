"""BLEU and chrF of a whole split, with the signatures that make them comparable."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

# sacreBLEU's tokenizers for languages written without spaces; every other language has "13a".
BLEU_TOKENIZERS = {"zh": "zh"}


@dataclass(frozen=True)
class Scores:
    """Corpus scores from 0 to 100 and their sacreBLEU signatures."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> Scores:
    """Score raw text against raw text (Papineni et al. 2002, Popović 2015, Post 2018).

    Equal to `sacrebleu REFERENCES -i HYPOTHESES -l xx-TARGET -m bleu chrf` on the same lines.
    """
    # sacreBLEU's file reader strips line ends; so must we, to give the same number.
    hypotheses = [line.rstrip() for line in hypotheses]
    references = [line.rstrip() for line in references]
    bleu = BLEU(tokenize=BLEU_TOKENIZERS.get(target_lang, "13a"))
    chrf = CHRF()
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
