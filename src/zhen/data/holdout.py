"""Validation and test pairs taken from the training pairs, where none are given.

Pairs that share a sentence go together, so that no sentence of one split stands in another: pairs
are the edges of a graph whose nodes are sentences, and its connected components are dealt out
whole. Which ones follows from the sentences alone: neither the order of the lines nor a seed
changes it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zhen.data.cache import key_of
from zhen.data.corpus import Corpus
from zhen.data.progress import counted, underway
from zhen.data.repeats import Hashes, Rows, hash_texts, mix
from zhen.data.source import Chunk, Source
from zhen.errors import UserError

log = logging.getLogger(__name__)

# Part of every key; raise it when other pairs would be chosen.
VERSION = 2

# What is taken where no size is given: a share, but not more pairs than a validation needs.
SHARE, MOST = 0.05, 1000

Nodes = NDArray[np.signedinteger]


class Holdout:
    """Deals the pairs of one source out to "train" and to the splits that are not given.

    Args:
        source: all the pairs.
        read: gives them as a corpus; called when a part must be made, not when it is in the cache.
        sizes: pairs (int) or share (float) to take for each split, by name, in order; None: a
            twentieth, a thousand pairs at most.
        prefix: what stands before a name in messages.
    """

    def __init__(
        self,
        source: Source,
        read: Callable[[], Corpus],
        sizes: Mapping[str, int | float | None],
        prefix: str = "data.",
    ) -> None:
        self.source, self.read, self.sizes, self.prefix = source, read, dict(sizes), prefix

    def part(self, name: str) -> "Part":
        """The pairs of "train" or of a split, as a source of their own."""
        return Part(self, name)

    @cached_property
    def fingerprint(self) -> str:
        return self.source.fingerprint()

    @cached_property
    def corpus(self) -> Corpus:
        """All the pairs.

        Raises:
            UserError: the source is no longer what its fingerprint says.
        """
        fingerprint, corpus = self.fingerprint, self.read()
        if self.source.fingerprint() != fingerprint:
            raise UserError(
                f"{self.prefix}train: {self.source.name} changed while it was read; start again"
            )
        return corpus

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """Ascending rows of each part.

        Raises:
            UserError: there are too few pairs.
        """
        # A pair with an empty side is dropped or refused, but no measure of a model.
        whole = np.delete(np.arange(len(self.corpus)), self.corpus.empty)
        wanted = {name: pairs_of(size, len(whole)) for name, size in self.sizes.items()}
        if sum(wanted.values()) >= len(whole):
            asked = " and ".join(f"{self.prefix}{name}_size" for name in wanted)
            raise UserError(
                f"{asked}: {sum(wanted.values()):,} of {len(whole):,} pairs leave none to train on;"
                " take fewer, or give files of their own"
            )
        sides = hashed(self.corpus, whole)
        with underway(f"{self.prefix}train: dealing out {len(whole):,} pairs"):
            parts = deal(groups(sides), wanted)
        for name, rows in parts.items():
            if not len(rows):
                raise UserError(
                    f"{self.prefix}{name}_size: pairs that share a sentence stay together, and no"
                    f" group that is left is as small as {wanted[name]:,} pairs; take more, or give"
                    f" {self.prefix}{name}"
                )
            log.info(
                "%s%s: %s of %s pairs of %s held out (asked for %s)",
                self.prefix, name, f"{len(rows):,}", f"{len(whole):,}", self.source.name,
                f"{wanted[name]:,}",
            )  # fmt: skip
        parts = {name: whole[rows] for name, rows in parts.items()}
        parts["train"] = np.delete(np.arange(len(self.corpus)), np.concatenate([*parts.values()]))
        return parts


@dataclass(frozen=True)
class Part:
    """One part of what a `Holdout` deals out; see `Source`."""

    holdout: Holdout
    part: str

    @property
    def name(self) -> str:
        return f"{self.holdout.source.name} ({self.part})"

    def fingerprint(self) -> str:
        """Follows from what is dealt out and how, so that nothing need be dealt to know it."""
        sizes = list(self.holdout.sizes.items())
        return key_of(VERSION, self.holdout.fingerprint, sizes, self.part)

    def chunks(self) -> Iterator[Chunk]:
        return self.holdout.corpus.again(self.holdout.rows[self.part])


def pairs_of(size: int | float | None, whole: int) -> int:
    """How many pairs a size asks for, of so many."""
    if size is None:
        return min(max(round(SHARE * whole), 1), MOST)
    return round(size * whole) if isinstance(size, float) else size


def hashed(corpus: Corpus, rows: Rows) -> Hashes:
    """The hashes of the sources and of the targets of `rows`, (2, N)."""
    sides = np.empty((2, len(rows)), np.uint64)
    done = 0
    for here, *texts in counted(
        corpus.chunks(rows),
        "pairs that share a sentence",
        len(rows),
        size=lambda part: len(part[0]),
    ):
        for side, found in zip(sides, texts, strict=True):
            side[done : done + len(here)] = hash_texts(found)
        done += len(here)
    return sides


def groups(sides: Hashes) -> Rows:
    """A number for each pair, the same for pairs that share a sentence, directly or by others.

    The numbers are drawn from the sentences, without regard to how large a group is.

    Args:
        sides: the hashes of both sides, (2, N).
    """
    order = np.argsort(sides, axis=None)
    hashes = sides.ravel()[order]
    new = np.append(True, hashes[1:] != hashes[:-1])
    node = np.empty(len(order), np.int32 if len(order) < 1 << 31 else np.int64)
    node[order] = np.cumsum(new, dtype=node.dtype) - node.dtype.type(1)
    del order  # with many millions of pairs, what is not held counts
    hashes = hashes[new]
    source, target = node.reshape(2, -1)
    # Not the smallest hash of a group itself, which is smaller the larger the group.
    return mix(hashes[components(source, target, len(hashes))[source]]).view(np.int64)


def components(one: Nodes, other: Nodes, nodes: int) -> Nodes:
    """For each node the smallest one that it is connected with.

    Args:
        one: an end of each edge.
        other: the other end.
        nodes: their number.
    """
    root = np.arange(nodes, dtype=one.dtype)
    while True:
        one, other = root[one], root[other]
        apart = one != other
        if not apart.any():
            return root
        one, other = one[apart], other[apart]
        # Hang the larger of two roots below the smaller, then let everyone point to the top.
        np.minimum.at(root, np.maximum(one, other), np.minimum(one, other))
        while (root != (above := root[root])).any():
            root = above


def deal(group: Rows, wanted: Mapping[str, int]) -> dict[str, Rows]:
    """Positions of the pairs that each part gets: whole groups, in the order of their numbers.

    A group too large for what is still wanted is passed over.
    """
    _, member, sizes = np.unique(group, return_inverse=True, return_counts=True)
    free = np.arange(len(sizes))
    parts = {}
    for name, room in wanted.items():
        taken = np.zeros(len(sizes), bool)
        left = free
        while len(left := left[sizes[left] <= room]):
            fits = np.cumsum(sizes[left]) <= room
            taken[left[fits]] = True
            room -= int(sizes[left[fits]].sum())
            left = left[~fits]
        parts[name] = np.flatnonzero(taken[member])
        free = free[~taken[free]]
    return parts
