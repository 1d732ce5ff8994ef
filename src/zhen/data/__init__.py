"""From files of pairs to padded batches: corpus -> tokenizer -> cache -> batching -> batch."""

from zhen.data.cleaning import CleanOptions
from zhen.data.datamodule import BatchOptions, TranslationData
from zhen.data.files import Files
from zhen.data.hub import Hub
from zhen.data.learning import TokenizerOptions
from zhen.data.pairs import Batch, EncodedPairs
from zhen.data.tokenizer import Tokenizer
from zhen.data.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "BatchOptions",
    "CleanOptions",
    "EncodedPairs",
    "Files",
    "Hub",
    "Tokenizer",
    "TokenizerOptions",
    "TranslationData",
    "Vocabulary",
]
