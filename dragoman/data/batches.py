"""Batches: length-sorted windows are cut into microbatches, which are grouped into steps of equal size.

A step has the same pairs in the same microbatches whatever the number of ranks: microbatches are cut first
and shared among the ranks afterwards. A `Position` says how far a run is; resuming from it gives the same
batches as never having stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dragoman.data.order import Order, Shuffle
from dragoman.data.store import DataSet, Part

WINDOW_PAIRS = 100_000  # sorted together: enough for many pairs of each length, and sorted in milliseconds


class Position(NamedTuple):
    """The next step to take."""

    epoch: int = 0
    window: int = 0
    step: int = 0  # within the window


@dataclass(frozen=True)
class StepSize:
    """The size of a step and of a microbatch, in tokens or pairs.

    In tokens, a pair counts as the mean of its two sides: a step of 4,096 tokens has about 4,096 on each
    side, and microbatches cost about the same to compute, whichever side is longer.
    """

    step: int
    microbatch: int  # at most; in tokens it may be exceeded by less than one pair
    unit: Literal["tokens", "pairs"] = "tokens"

    @property
    def microbatches(self) -> int:
        """The number of microbatches per step."""
        return math.ceil(self.step / self.microbatch)


@dataclass(frozen=True)
class Microbatch:
    """The pairs of one forward and backward pass: all sentences end to end, each with its EOS, no padding."""

    source: np.ndarray  # int64
    source_lengths: np.ndarray
    target: np.ndarray
    target_lengths: np.ndarray

    @property
    def target_tokens(self) -> int:
        return len(self.target)


@dataclass(frozen=True)
class StepBatch:
    """One step: the pair numbers of its microbatches, and their sizes."""

    microbatches: tuple[np.ndarray, ...]
    tokens: tuple[int, ...]  # per microbatch, source and target together
    target_tokens: int  # of the whole step, EOS included: the loss is averaged over them
    next: Position
    target_tokens_each: tuple[int, ...] = ()  # per microbatch

    @property
    def pairs(self) -> int:
        return sum(map(len, self.microbatches))

    def share(self, rank: int, world: int) -> list[int]:
        """The microbatches of this rank: the largest go first, each to the rank with the least so far."""
        load = [0] * world
        mine = []
        for index in sorted(range(len(self.tokens)), key=lambda index: (-self.tokens[index], index)):
            taker = load.index(min(load))
            load[taker] += self.tokens[index]
            if taker == rank:
                mine.append(index)
        return sorted(mine)

    def only(self, microbatch: int) -> StepBatch:
        """A step of this microbatch alone."""
        each = self.target_tokens_each[microbatch]
        return StepBatch(
            (self.microbatches[microbatch],), (self.tokens[microbatch],), each, self.next, (each,)
        )

    def target_tokens_of(self, ranks: Iterable[int], world: int) -> int:
        """The target tokens in the microbatches of these ranks."""
        return sum(self.target_tokens_each[index] for rank in ranks for index in self.share(rank, world))


class Batches:
    """The endless sequence of steps over a data set's training part."""

    def __init__(self, data: DataSet, size: StepSize, seed: int):
        self._part = data.train
        self._size = size
        self._seed = seed
        self._order = Order(data.card.corpora, seed)
        self._windows = max(1, self._order.slots // WINDOW_PAIRS)  # of equal size, so none is much smaller

    def after(self, position: Position) -> Iterator[StepBatch]:
        """Every step from this position on."""
        epoch, window, first = position
        while True:
            steps = self._window(epoch, window)
            following = Position(epoch, window + 1) if window + 1 < self._windows else Position(epoch + 1)
            for number in range(first, len(steps)):
                is_last = number + 1 == len(steps)
                position_after = following if is_last else Position(epoch, window, number + 1)
                rows, tokens, target_tokens = zip(*steps[number], strict=True)
                yield StepBatch(rows, tokens, sum(target_tokens), position_after, target_tokens)
            epoch, window, first = following

    def load(self, rows: np.ndarray) -> Microbatch:
        """The tokens of a microbatch."""
        return load(self._part, rows)

    def _window(self, epoch: int, window: int) -> list[list[tuple[np.ndarray, int, int]]]:
        """The steps of a window: for each, the rows, tokens and target tokens of its microbatches."""
        start, stop = (self._order.slots * number // self._windows for number in (window, window + 1))
        rows = self._order.pairs(epoch, start, stop)
        source, target = self._part.source.lengths(rows), self._part.target.lengths(rows)
        # By target length, then by source length, alternately ascending and descending. So the source length
        # does not jump where the target length changes, and neighbours are alike on both sides.
        by_length = np.lexsort((np.where(target % 2, source, -source), target))
        rows, source, target = rows[by_length], source[by_length], target[by_length]
        tokens_before = np.concatenate([[0], np.cumsum(source + target)])
        filled = tokens_before[1:] / 2 if self._size.unit == "tokens" else np.arange(1, len(rows) + 1)
        steps = math.ceil(filled[-1] / self._size.step)
        pieces = steps * self._size.microbatches
        cuts = np.unique(np.searchsorted(filled, filled[-1] * np.arange(1, pieces) / pieces, side="right"))
        bounds = [0, *(cuts[(cuts > 0) & (cuts < len(rows))].tolist()), len(rows)]
        microbatches = [
            (rows[begin:end], int(tokens_before[end] - tokens_before[begin]), int(target[begin:end].sum()))
            for begin, end in zip(bounds, bounds[1:], strict=False)
        ]
        mixed = Shuffle(len(microbatches), self._seed, epoch, window)(np.arange(len(microbatches)))
        groups = np.array_split(mixed, min(steps, len(microbatches)))
        return [[microbatches[index] for index in group.tolist()] for group in groups]


class Lookahead(Iterator[StepBatch]):
    """Iterates over steps, and can prepare the next one early, while a device is busy."""

    def __init__(self, steps: Iterator[StepBatch]):
        self._steps = steps
        self._ahead: StepBatch | None = None

    def __next__(self) -> StepBatch:
        step, self._ahead = self.peek(), None
        return step

    def peek(self) -> StepBatch:
        if self._ahead is None:
            self._ahead = next(self._steps)
        return self._ahead


def load(part: Part, rows: np.ndarray) -> Microbatch:
    """These pairs of a part as a microbatch."""
    return Microbatch(*part.source.take(rows), *part.target.take(rows))
