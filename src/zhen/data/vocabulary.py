"""One vocabulary: text to ids and back.

The round trip is exact: spaces are ordinary characters that lead the word they stand before, and a
character without a piece falls back to its UTF-8 bytes. No text can produce a control piece: a
learned piece never mixes letters with punctuation, and every control piece does.

Ids are in this order: control pieces, 256 bytes (or <unk> in their place), learned pieces.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from zhen.data.bpe_dropout import Merges, mix
from zhen.errors import one_line

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
CONTROLS = (PAD, BOS, EOS)
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
# Without bytes, this stands for every character that has no piece, and reads as the sign below.
UNK, UNKNOWN_CHARACTER = "<unk>", "\ufffd"

NORMALIZERS = {"nfc": normalizers.NFC, "nfkc": normalizers.NFKC}
Normalization = Literal["nfc", "nfkc"] | None

# What other kinds of tokenizer change: case, width, accents, spaces, rare characters, and text that
# looks like a control piece.
PROBE = f" A，Ａ  e\u0301é\n\t𠮷👍 {PAD}{BOS}{EOS}{UNK}{BYTES[65]} "

# What may become one piece: a run of Han; a word of any other script, with the apostrophes of
# "don't"; a single digit; a run of punctuation and symbols; each with the space before it, if any.
# Left-over white space stands alone.
WORDS = (
    r" ?\p{Han}+"
    r"| ?[\p{L}\p{M}&&[^\p{Han}]]+(?:'[\p{L}\p{M}&&[^\p{Han}]]+)*"
    r"| ?\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+"
    r"|\s"
)


class Vocabulary:
    """Encodes and decodes; pads with id 0, starts with 1, ends with 2."""

    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._has_bytes = backend.token_to_id(BYTES[0]) is not None

    @classmethod
    def of(cls, model: "models.BPE | models.Unigram", normalization: Normalization) -> "Vocabulary":
        """The vocabulary around a model whose pieces are in the order that this module wants."""
        backend = Backend(model)
        if normalization is not None:
            backend.normalizer = NORMALIZERS[normalization]()
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
        vocabulary = cls(backend)
        rare = (
            decoders.ByteFallback()
            if vocabulary._has_bytes
            else decoders.Replace(UNK, UNKNOWN_CHARACTER)
        )
        backend.decoder = decoders.Sequence([rare, decoders.Fuse()])
        return vocabulary

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """The vocabulary that `to_json` wrote.

        Raises:
            ValueError: the text is no tokenizer, its control pieces and bytes are not where they
                must be, or a text does not come back as it was.
        """
        try:
            backend = Backend.from_str(text)
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"not a tokenizer.json ({one_line(error)})") from error
        vocabulary = cls(backend)
        layout = (*CONTROLS, *(BYTES if vocabulary._has_bytes else [UNK]))
        for position, piece in enumerate(layout):
            if backend.token_to_id(piece) != position:
                raise ValueError(f"piece {position} must be {piece!r}; train a tokenizer with zhen")
        about = json.loads(text)
        normalizer = about["normalizer"]
        if normalizer is not None and normalizer["type"].lower() not in NORMALIZERS:
            raise ValueError(
                f"its normalizer must be NFC, NFKC or none, but is {normalizer['type']};"
                " train a tokenizer with zhen"
            )
        if about["model"].get("dropout"):
            raise ValueError("it has a dropout of its own: set that to null")
        (probe,) = vocabulary.normalise([PROBE])
        if not vocabulary._has_bytes:
            probe = "".join(c for c in probe if backend.token_to_id(c) is not None)
        (ids,) = vocabulary.encode([probe])
        if vocabulary.decode([ids]) != [probe]:
            raise ValueError("it does not give a text back as it was; train a tokenizer with zhen")
        return vocabulary

    def to_json(self) -> str:
        """The whole vocabulary as text; equal vocabularies give equal text."""
        return self._backend.to_str()

    def __len__(self) -> int:
        return self._backend.get_vocab_size()

    def normalise(self, texts: Sequence[str]) -> list[str]:
        """The texts as `decode` gives them back."""
        normalizer = self._backend.normalizer
        return [normalizer.normalize_str(text) if normalizer else text for text in texts]

    def encode(
        self,
        texts: Sequence[str],
        dropout: float = 0.0,
        rng: np.random.Generator | None = None,
    ) -> list[list[int]]:
        """Ids of each text, without control pieces.

        Args:
            texts: any text.
            dropout: probability of leaving a merge out (BPE-dropout), for training alone.
            rng: what is left out follows from it, and from the text alone: it gives one number for
                each text, so that texts may be encoded a few at a time with the same result.

        Raises:
            ValueError: a dropout above 0 without `rng`, or for a vocabulary that has no merges.
        """
        if not dropout:
            return [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts))]
        if rng is None:
            raise ValueError("`dropout` needs `rng`")
        characters = self._characters.encode_batch(list(texts))
        of_texts = [encoding.ids for encoding in characters]
        pieces = np.fromiter(chain.from_iterable(of_texts), dtype=np.int64)
        lengths = np.array([len(ids) for ids in of_texts], dtype=np.int64)
        bounds = np.concatenate([[0], lengths.cumsum()])  # of each text in `pieces`
        # A word ends where the library's number of it changes, or with its text.
        numbers = np.fromiter(
            chain.from_iterable(encoding.word_ids for encoding in characters), dtype=np.int64
        )
        begins = np.diff(numbers, prepend=-1) != 0
        begins[bounds[:-1][lengths > 0]] = True
        keys = rng.integers(0, 2**64, size=len(texts), dtype=np.uint64)
        places = np.arange(len(pieces)) - np.repeat(bounds[:-1], lengths)
        keys = mix(np.repeat(keys, lengths), places)
        merged = self._merges(pieces, begins.cumsum(), keys, dropout)
        left = merged >= 0
        ends = np.concatenate([[0], left.cumsum()])[bounds]
        ids = merged[left].tolist()
        return [ids[start:end] for start, end in pairwise(ends.tolist())]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Text of each sequence; control pieces are left out."""
        real = [[i for i in row if i >= len(CONTROLS)] for row in ids]
        return self._backend.decode_batch(real, skip_special_tokens=False)

    def begins(self, piece: int) -> bool:
        """Whether a character may begin with this piece; false for a byte inside of one."""
        return not (self._has_bytes and 0x80 <= piece - len(CONTROLS) < 0xC0)

    def fallbacks(self, ids: Sequence[int]) -> int:
        """How many characters have no piece: those in bytes, and <unk>."""
        learned = len(CONTROLS) + (len(BYTES) if self._has_bytes else 1)
        return sum(len(CONTROLS) <= i < learned and self.begins(i) for i in ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids, to look at."""
        names = {i: piece for piece, i in self._backend.get_vocab().items()}
        return [names[i] for i in ids]

    @property
    def has_merges(self) -> bool:
        """Whether there is something for `dropout` to leave out."""
        return isinstance(self._backend.model, models.BPE) and bool(self._model["merges"])

    @cached_property
    def _model(self) -> dict[str, Any]:
        return json.loads(self.to_json())["model"]

    @cached_property
    def _characters(self) -> Backend:
        """The same without any merge: what a text is before the first."""
        if not self.has_merges:
            raise ValueError("`dropout` is for a vocabulary of the kind bpe")
        about = json.loads(self.to_json())
        about["model"]["merges"] = []
        return Backend.from_str(json.dumps(about))

    @cached_property
    def _merges(self) -> Merges:
        vocab = self._model["vocab"]
        pairs = [(vocab[left], vocab[right]) for left, right in self._model["merges"]]
        return Merges(pairs, [vocab[left + right] for left, right in self._model["merges"]])
