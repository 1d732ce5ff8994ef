"""Turning a trained model's probabilities into sentences, one cached step at a time.

Reading order: options -> next_piece -> greedy -> sampling -> beam -> threads -> search.
"""

from zhen.decoding.options import DecodeOptions, Hypothesis
from zhen.decoding.search import generate

__all__ = ["DecodeOptions", "Hypothesis", "generate"]
