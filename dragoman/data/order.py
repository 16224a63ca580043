"""The order of pairs as a pure function of seed and position, without a table in memory or on disk.

An epoch is a row of slots. A corpus of n pairs and weight w gets round(w x n) slots: with weight 1 each pair
comes once per epoch, with weight 2 twice, with weight 0.5 in every second epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from dragoman.data.card import CorpusFacts

_ROUNDS = 4  # a Feistel network of four rounds is a pseudorandom permutation (Luby and Rackoff, 1988)


class Shuffle:
    """A permutation of range(size) that computes each place by itself.

    A Feistel network permutes a power of four, at most 4 x size places. A result outside the range goes
    through the network again until it is inside (cycle walking), at most four times on average.
    """

    def __init__(self, size: int, *key: int):
        self._size = size
        self._half_bits = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
        self._mask = np.uint64((1 << int(self._half_bits)) - 1)
        digest = blake2b(repr(key).encode(), digest_size=8 * _ROUNDS).digest()
        self._round_keys = np.frombuffer(digest, dtype="<u8")

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """The permuted place of each place."""
        result = self._network(places.astype(np.uint64))
        outside = np.flatnonzero(result >= self._size)
        while len(outside):
            result[outside] = self._network(result[outside])
            outside = outside[result[outside] >= self._size]
        return result.astype(np.int64)

    def _network(self, values: np.ndarray) -> np.ndarray:
        left, right = values >> self._half_bits, values & self._mask
        for key in self._round_keys:
            left, right = right, left ^ (_mix(right ^ key) & self._mask)
        return (left << self._half_bits) | right


def _mix(values: np.ndarray) -> np.ndarray:
    """A hash in which every input bit changes about half of the output bits (constants of MurmurHash3)."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))


class Order:
    """Tells which pair is at each slot of each epoch."""

    def __init__(self, corpora: Sequence[CorpusFacts], seed: int):
        self._seed = seed
        self._sizes = np.array([corpus.pairs for corpus in corpora], dtype=np.int64)
        self._draws = np.array([max(1, round(c.weight * c.pairs)) if c.pairs else 0 for c in corpora])
        self._first_pair = np.cumsum(self._sizes) - self._sizes
        self._slot_ends = np.cumsum(self._draws)
        self.slots = int(self._slot_ends[-1])  # per epoch

    def pairs(self, epoch: int, start: int, stop: int) -> np.ndarray:
        """The numbers of the pairs at slots `start` to `stop` of an epoch."""
        slots = Shuffle(self.slots, self._seed, epoch)(np.arange(start, stop))
        corpus_of = np.searchsorted(self._slot_ends, slots, side="right")
        pairs = np.empty_like(slots)
        for corpus in np.unique(corpus_of).tolist():
            chosen = corpus_of == corpus
            # The number of earlier draws from this corpus, over all epochs: every pass takes each pair once.
            draw = (
                slots[chosen] - (self._slot_ends[corpus] - self._draws[corpus]) + epoch * self._draws[corpus]
            )
            pairs[chosen] = self._first_pair[corpus] + self._nth_draw(corpus, draw)
        return pairs

    def _nth_draw(self, corpus: int, draw: np.ndarray) -> np.ndarray:
        size = int(self._sizes[corpus])
        passes, places = np.divmod(draw, size)
        drawn = np.empty_like(places)
        for number in np.unique(passes).tolist():
            chosen = passes == number
            drawn[chosen] = Shuffle(size, self._seed, corpus, number)(places[chosen])
        return drawn
