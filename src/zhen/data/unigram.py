"""Learning a unigram vocabulary (Kudo 2018, section 3.2); the `tokenizers` library then runs it.

The library learns one too, but adds up in the order of a hash table, another one in each process,
and so differs from run to run. Here every sum has one order, and no thread has a part in it.

A text is the product of its pieces' probabilities. EM finds them: how often is each piece expected,
over all ways to cut each word, and how probable does that make it? In between, the pieces without
which the text would lose least are taken out, a quarter at a time, until few enough are left.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from zhen.data.progress import counted, underway

LONGEST = 16  # characters of a piece
SEEDS = 10  # pieces to begin with, for each that is wanted
KEPT = 0.75  # in each round
STEPS = 2  # of EM in each round
LEAST = 0.1  # how often at least a piece counts as seen, so that none is impossible

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def learn_unigram(
    words: Mapping[str, int], size: int, min_frequency: int
) -> list[tuple[str, float]]:
    """Pieces and the logarithms of their probabilities, the most probable first.

    Args:
        words: how often each word was seen; pieces lie inside words. All their characters become
            pieces.
        size: pieces at most, not below the number of characters.
        min_frequency: a piece of several characters was seen at least so often.
    """
    words = dict(sorted(words.items()))  # so that sums are made in one order
    text = "".join(words)
    if not text:
        return []
    lengths = np.array([len(word) for word in words])
    counts = np.array(list(words.values()))
    with underway(f"looking for pieces in {len(words):,} words"):
        seeds = _seeds(text, lengths, counts, SEEDS * size, min_frequency)
        whole, inside = _lattices(seeds, lengths)

    single = seeds.lengths == 1
    scores = np.log(seeds.counts / seeds.counts.sum())
    kept = np.arange(len(scores))  # the seeds still there
    rounds, left = [], len(kept)  # how many each round leaves
    while left > size:
        left = max(size, int(left * KEPT))
        rounds.append(left)
    expected, scores = _maximise(whole, scores, counts)
    for left in counted(rounds, f"choosing {size:,} of {len(kept):,} pieces: rounds", len(rounds)):
        loss = expected * (scores - inside.best(scores))
        loss[single[kept]] = np.inf
        best = np.argsort(-loss, kind="stable")[:left]
        stay = np.isin(np.arange(len(kept)), best)
        whole, inside = whole.only(stay), inside.only(stay, words_too=True)
        kept = kept[stay]
        expected, scores = _maximise(whole, scores[stay], counts)

    found = [
        (text[start : start + length], round(float(score), 6))
        for start, length, score in zip(seeds.first[kept], seeds.lengths[kept], scores, strict=True)
    ]
    return sorted(found, key=lambda piece: (-piece[1], piece[0]))


def _maximise(whole: "_Lattice", scores: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """How often each piece is expected, and its score, after some steps of EM."""
    for _ in range(STEPS):
        expected = whole.expected(scores, counts)
        seen = np.maximum(expected, LEAST)
        scores = np.log(seen / seen.sum())
    return expected, scores


@dataclass
class _Seeds:
    """The pieces to begin with, and where they stand in the text of all words."""

    first: Ints  # where each stands for the first time
    lengths: Ints
    counts: Ints
    at: Ints  # all places, rising, the shorter piece first where two stand at the same
    pieces: Ints  # which piece stands there


def _seeds(text: str, lengths: Ints, counts: Ints, most: int, min_frequency: int) -> _Seeds:
    """All characters, and the most frequent longer substrings of words, long ones preferred."""
    letters, characters = np.unique(_code_points(text), return_inverse=True)
    word_end = np.repeat(lengths.cumsum(), lengths)
    weights = np.repeat(counts, lengths)
    found: list[tuple[Ints, Ints, Ints, Ints]] = []
    at, names = np.arange(len(text)), characters
    total = 0
    for length in range(1, LONGEST + 1):
        # Here `names` says which substring of this length stands at each of `at`.
        _, first, names = np.unique(names, return_index=True, return_inverse=True)
        seen = np.bincount(names, weights[at]).astype(np.int64)
        frequent = seen >= (min_frequency if length > 1 else 1)
        first, seen = at[first[frequent]], seen[frequent]
        stays = frequent[names]
        at, names = at[stays], (frequent.cumsum() - 1)[names[stays]]
        found.append((first, seen, at, names + total))
        total += len(seen)
        # A frequent substring is two frequent ones that overlap, its beginning and its end.
        name_at = np.full(len(text) + 1, -1)
        name_at[at] = names
        at = at[(at + length < word_end[at]) & (name_at[at + 1] >= 0)]
        names = name_at[at] * len(letters) + characters[at + length]

    first, seen, at, pieces = (np.concatenate(part) for part in zip(*found, strict=True))
    piece_lengths = np.repeat(np.arange(1, LONGEST + 1), [len(part[0]) for part in found])
    worth = np.where(piece_lengths == 1, np.inf, seen * piece_lengths)
    kept = np.sort(np.argsort(-worth, kind="stable")[:most])
    number = np.full(total, -1)
    number[kept] = np.arange(len(kept))
    stays = number[pieces] >= 0
    at, pieces = at[stays], number[pieces[stays]]
    order = np.argsort(at, kind="stable")
    return _Seeds(first[kept], piece_lengths[kept], seen[kept], at[order], pieces[order])


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


@dataclass
class _Lattice:
    """All ways to cut each of some words: an edge for each piece that stands in one.

    Nodes are the places between characters. Edges are sorted by the depth of their end, which is
    its distance from the beginning of the word, so that all words take their n-th step together.

    Args:
        begins, ends: the nodes of each edge.
        depths: of each edge.
        pieces: the number of the piece that each edge is.
        words: the number of the word that each edge lies in.
        last: the node that each word ends at.
        nodes: how many there are.
    """

    begins: Ints
    ends: Ints
    depths: Ints
    pieces: Ints
    words: Ints
    last: Ints
    nodes: int

    @classmethod
    def of(
        cls, words: Ints, begins: Ints, lengths: Ints, pieces: Ints, word_lengths: Ints
    ) -> "_Lattice":
        """From where in its word each edge begins, and the length of each edge and word."""
        depths = begins + lengths
        order = np.lexsort((begins, words, depths))
        words, begins, depths, pieces = (x[order] for x in (words, begins, depths, pieces))
        last = (word_lengths + 1).cumsum() - 1
        first = last - word_lengths
        return cls(
            first[words] + begins, first[words] + depths, depths, pieces, words, last,
            len(word_lengths) + int(word_lengths.sum()),
        )  # fmt: skip

    def only(self, stay: NDArray[np.bool_], words_too: bool = False) -> "_Lattice":
        """What is left with some of the pieces; where words are pieces, of those words alone."""
        number = stay.cumsum() - 1
        left = stay[self.pieces]
        words, last = self.words, self.last
        if words_too:
            left &= stay[words]
            words, last = number[words], last[stay]
        return _Lattice(
            self.begins[left], self.ends[left], self.depths[left], number[self.pieces[left]],
            words[left], last, self.nodes,
        )  # fmt: skip

    def best(self, scores: Floats) -> Floats:
        """The score of the best way to cut each word."""
        return self._forward(scores, np.maximum)[self.last]

    def expected(self, scores: Floats, counts: Ints) -> Floats:
        """How often each piece is expected, over all ways to cut words seen `counts` times."""
        total = self._forward(scores, np.logaddexp)
        # The share of each edge in what reaches its end, then in all that reaches the word's end.
        flow: Floats = np.exp(total[self.begins] + scores[self.pieces] - total[self.ends])
        through = np.zeros(self.nodes)
        through[self.last] = counts
        for start, stop, _ in reversed(self._levels):
            flow[start:stop] *= through[self.ends[start:stop]]
            np.add.at(through, self.begins[start:stop], flow[start:stop])
        return np.bincount(self.pieces, flow, minlength=len(scores))  # type: ignore[return-value]

    def _forward(self, scores: Floats, join: np.ufunc) -> Floats:
        """What reaches each node, over all ways from the beginning of its word."""
        total = np.zeros(self.nodes)
        for start, stop, groups in self._levels:
            here = total[self.begins[start:stop]] + scores[self.pieces[start:stop]]
            total[self.ends[start + groups]] = join.reduceat(here, groups)
        return total

    @cached_property
    def _levels(self) -> list[tuple[int, int, Ints]]:
        """The edges of each depth, and where among them those to the same node begin."""
        groups = np.flatnonzero(np.diff(self.ends, prepend=-1))
        cuts = np.flatnonzero(np.diff(self.depths[groups], prepend=-1))
        bounds = [*groups[cuts].tolist(), len(self.ends)]
        parts = np.split(groups, cuts)[1:]
        return [
            (start, stop, part - start)
            for (start, stop), part in zip(pairwise(bounds), parts, strict=True)
        ]


def _lattices(seeds: _Seeds, lengths: Ints) -> tuple[_Lattice, _Lattice]:
    """That of the words, and that of the pieces themselves, each without itself."""
    edge_lengths = seeds.lengths[seeds.pieces]
    words = np.repeat(np.arange(len(lengths)), lengths)[seeds.at]
    begins = seeds.at - (lengths.cumsum() - lengths)[words]
    whole = _Lattice.of(words, begins, edge_lengths, seeds.pieces, lengths)

    # The edges from where a piece stands for the first time to where it ends.
    start = np.searchsorted(seeds.at, seeds.first)
    counts = np.searchsorted(seeds.at, seeds.first + seeds.lengths) - start
    owners = np.repeat(np.arange(len(counts)), counts)
    edges = np.arange(counts.sum()) + np.repeat(start - (counts.cumsum() - counts), counts)
    begins = seeds.at[edges] - seeds.first[owners]
    fits = (begins + edge_lengths[edges] <= seeds.lengths[owners]) & (seeds.pieces[edges] != owners)
    edges, owners, begins = edges[fits], owners[fits], begins[fits]
    pieces = seeds.pieces[edges]
    return whole, _Lattice.of(owners, begins, edge_lengths[edges], pieces, seeds.lengths)
