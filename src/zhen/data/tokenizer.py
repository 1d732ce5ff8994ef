"""Text to pieces and back: one BPE vocabulary for both languages (Sennrich et al. 2016).

The round trip is exact for any text: nothing is normalised, spaces are ordinary characters that
lead the word they stand before, and a character outside the vocabulary falls back to its UTF-8
bytes. No text can produce a control piece: a learned piece never mixes letters with punctuation,
and every control piece does.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from zhen.errors import UserError, one_line

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
CONTROLS = (PAD, BOS, EOS)
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))

# What other kinds of tokenizer change: case, width, accents, spaces, rare characters, and text that
# looks like a control piece.
PROBE = f" A，Ａ  e\u0301é\n\t𠮷👍 {PAD}{BOS}{EOS}{BYTES[65]} "

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
        texts = list(texts)
        room = options.vocab_size - len(CONTROLS) - len(BYTES)
        learner = Backend(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
        learner.train_from_iterator(
            texts,
            trainers.BpeTrainer(
                vocab_size=room,
                min_frequency=options.min_frequency,
                # Left alone, the library takes every character, even beyond `vocab_size`.
                initial_alphabet=_most_frequent_characters(texts, room),
                limit_alphabet=room,
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
            UserError: the file is missing, or is no tokenizer of this project.
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
            ValueError: the text is no tokenizer, its control pieces and bytes are not where they
                must be, or a text does not come back as it was.
        """
        try:
            backend = Backend.from_str(text)
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"not a tokenizer.json ({one_line(error)})") from error
        for position, piece in enumerate((*CONTROLS, *BYTES)):
            if backend.token_to_id(piece) != position:
                raise ValueError(f"piece {position} must be {piece!r}; train a tokenizer with zhen")
        tokenizer = cls(backend)
        if tokenizer.decode(tokenizer.encode([PROBE])) != [PROBE]:
            raise ValueError("it does not give a text back as it was; train a tokenizer with zhen")
        return tokenizer

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

    def begins(self, piece: int) -> bool:
        """Whether a character may begin with this piece; false for a byte inside of one."""
        return not 0x80 <= piece - len(CONTROLS) < 0xC0

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids, to look at."""
        names = {i: piece for piece, i in self._backend.get_vocab().items()}
        return [names[i] for i in ids]


def _most_frequent_characters(texts: Iterable[str], count: int) -> list[str]:
    """At most `count` of them; equally frequent ones by code point, so that the choice is fixed."""
    found: Counter[str] = Counter()
    for text in texts:
        found.update(text)
    return sorted(found, key=lambda character: (-found[character], character))[:count]
