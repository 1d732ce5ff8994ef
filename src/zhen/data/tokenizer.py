"""Text to pieces and back: one BPE vocabulary for both languages (Sennrich et al. 2016).

The round trip is exact for any text: nothing is normalised, spaces are ordinary characters that
lead the word they stand before, and a character outside the vocabulary falls back to its UTF-8
bytes. No text can produce a control piece: a learned piece never mixes letters with punctuation,
and every control piece does.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from zhen.errors import UserError

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
CONTROLS = (PAD, BOS, EOS)
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))

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


@dataclass(frozen=True)
class TokenizerOptions:
    """How the vocabulary is made.

    Args:
        vocab_size: pieces in all, the 3 control pieces and 256 bytes included.
        min_frequency: a pair of pieces is merged only when seen this often.
        path: an existing tokenizer.json to use instead of training one.

    Raises:
        ValueError: `vocab_size` leaves no room for a piece, or `min_frequency` is below 1.
    """

    vocab_size: int = 4000
    min_frequency: int = 2
    path: str | None = None

    def __post_init__(self) -> None:
        least = len(CONTROLS) + len(BYTES) + 1
        if self.vocab_size < least:
            raise ValueError(f"`vocab_size` must be at least {least}, but is {self.vocab_size}")
        if self.min_frequency < 1:
            raise ValueError(f"`min_frequency` must be at least 1, but is {self.min_frequency}")


class Tokenizer:
    """Encodes and decodes with a trained vocabulary; pads with id 0, starts with 1, ends with 2."""

    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @classmethod
    def train(cls, texts: Iterable[str], options: TokenizerOptions) -> "Tokenizer":
        """Learn the merges from `texts`, or read `options.path` where that is given."""
        if options.path is not None:
            return cls.load(Path(options.path))
        learner = Backend(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
        learner.train_from_iterator(
            texts,
            trainers.BpeTrainer(
                vocab_size=options.vocab_size - len(CONTROLS) - len(BYTES),
                min_frequency=options.min_frequency,
                show_progress=False,
            ),
        )
        learned = json.loads(learner.to_str())["model"]
        # Controls and bytes are put into the vocabulary only now, and not as "special tokens",
        # which the library would look for in the text.
        pieces = [*CONTROLS, *BYTES, *sorted(learned["vocab"], key=learned["vocab"].__getitem__)]
        backend = Backend(
            models.BPE(
                vocab={piece: i for i, piece in enumerate(pieces)},
                merges=[tuple(merge) for merge in learned["merges"]],
                byte_fallback=True,
            )
        )
        backend.pre_tokenizer = learner.pre_tokenizer
        backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        return cls(backend)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a tokenizer.json.

        Raises:
            UserError: the file is missing, is no tokenizer, or lacks the control pieces.
        """
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"tokenizer.path: cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"tokenizer.path: {path}: {error}") from error

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """The tokenizer that `to_json` wrote.

        Raises:
            ValueError: the text is no tokenizer, or its control pieces are not where they must be.
        """
        try:
            backend = Backend.from_str(text)
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"not a tokenizer.json ({error})") from error
        for position, piece in enumerate(CONTROLS):
            if backend.token_to_id(piece) != position:
                raise ValueError(f"piece {position} must be {piece!r}; train a tokenizer with zhen")
        return cls(backend)

    def to_json(self) -> str:
        """The whole tokenizer as text; equal tokenizers give equal text."""
        return self._backend.to_str()

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without control pieces."""
        return [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts))]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Text of each sequence; control pieces are left out."""
        real = [[i for i in row if i >= len(CONTROLS)] for row in ids]
        return self._backend.decode_batch(real, skip_special_tokens=False)

    def pieces(self, text: str) -> list[str]:
        """The pieces of one text, to look at."""
        return self._backend.encode(text).tokens
