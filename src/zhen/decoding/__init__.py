"""Turning a trained model's probabilities into sentences, one cached step at a time."""

from zhen.decoding.options import DecodeOptions, Hypothesis
from zhen.decoding.search import beam_search, generate, greedy_search

__all__ = ["DecodeOptions", "Hypothesis", "beam_search", "generate", "greedy_search"]
