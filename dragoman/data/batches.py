"""Batches: length-sorted windows cut into microbatches, steps of equal size, a share for every rank.

A step is the same pairs in the same microbatches whatever the number of ranks: microbatches are cut first
and shared out afterwards. Where a run stands is a `Position`; going on from it equals never having stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dragoman.data.order import Order, Shuffle
from dragoman.data.store import DataSet, Part

WINDOW_PAIRS = 100_000  # sorted together: enough that neighbours in length are plenty, milliseconds to sort


class Position(NamedTuple):
    """The next step to take."""

    epoch: int = 0
    window: int = 0
    step: int = 0  # within the window


@dataclass(frozen=True)
class StepSize:
    """How much a step and a microbatch hold.

    In tokens, a pair counts as the mean of its two sides: a step of 4,096 tokens has about 4,096 on either
    side, and microbatches cost about the same to compute, whichever side is longer.
    """

    step: int
    microbatch: int  # at most this much; in tokens, it may be over by less than one pair
    unit: Literal["tokens", "pairs"] = "tokens"

    @property
    def microbatches(self) -> int:
        """Per step."""
        return math.ceil(self.step / self.microbatch)


@dataclass(frozen=True)
class Microbatch:
    """Pairs for one forward and backward: all sentences end to end, no padding, each with its EOS."""

    source: np.ndarray  # int64
    source_lengths: np.ndarray
    target: np.ndarray
    target_lengths: np.ndarray

    @property
    def target_tokens(self) -> int:
        return len(self.target)


@dataclass(frozen=True)
class StepBatch:
    """The pairs of one step, by number, in microbatches."""

    microbatches: tuple[np.ndarray, ...]
    tokens: tuple[int, ...]  # of each microbatch, source and target together
    target_tokens: int  # of the whole step, EOS included: what the loss is averaged over
    next: Position
    target_tokens_each: tuple[int, ...] = ()  # of each microbatch

    @property
    def pairs(self) -> int:
        return sum(map(len, self.microbatches))

    def share(self, rank: int, world: int) -> list[int]:
        """Which microbatches this rank takes: the largest first, each to the rank with the least so far."""
        load = [0] * world
        mine = []
        for index in sorted(range(len(self.tokens)), key=lambda index: (-self.tokens[index], index)):
            taker = load.index(min(load))
            load[taker] += self.tokens[index]
            if taker == rank:
                mine.append(index)
        return sorted(mine)

    def target_tokens_of(self, ranks: Iterable[int], world: int) -> int:
        """Of what these ranks take together."""
        return sum(self.target_tokens_each[index] for rank in ranks for index in self.share(rank, world))


class Batches:
    """The endless row of steps over a data set's training part."""

    def __init__(self, data: DataSet, size: StepSize, seed: int):
        self._part = data.train
        self._size = size
        self._seed = seed
        self._order = Order(data.card.corpora, seed)
        self._windows = max(1, self._order.slots // WINDOW_PAIRS)  # of equal size, so that none is a remnant

    def after(self, position: Position) -> Iterator[StepBatch]:
        """Every step from this position on."""
        epoch, window, first = position
        while True:
            steps = self._window(epoch, window)
            following = Position(epoch, window + 1) if window + 1 < self._windows else Position(epoch + 1)
            for number in range(first, len(steps)):
                is_last = number + 1 == len(steps)
                where = following if is_last else Position(epoch, window, number + 1)
                rows, tokens, target_tokens = zip(*steps[number], strict=True)
                yield StepBatch(rows, tokens, sum(target_tokens), where, target_tokens)
            epoch, window, first = following

    def load(self, rows: np.ndarray) -> Microbatch:
        """The tokens of a microbatch."""
        return load(self._part, rows)

    def _window(self, epoch: int, window: int) -> list[list[tuple[np.ndarray, int, int]]]:
        """The steps of a window: for each, the rows, tokens and target tokens of its microbatches."""
        start, stop = (self._order.slots * number // self._windows for number in (window, window + 1))
        rows = self._order.pairs(epoch, start, stop)
        source, target = self._part.source.lengths(rows), self._part.target.lengths(rows)
        # By target length, then by source length, upwards and downwards in turn: no jump where the target
        # length changes, so neighbours are alike on both sides.
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
    """Steps one after the other. The one to come can be had before its turn, while a device is busy."""

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
