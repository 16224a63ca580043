"""What a search keeps from token to token: keys and values of the sources and of the tokens generated so far.

Shape letters: B sentences, S source slots, R rows (the hypotheses of sentence 0, then of sentence 1, ...),
H heads, T tokens generated so far, C channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from dragoman.model.attention import KeysValues
from dragoman.model.packing import Packing


@dataclass
class Cache:
    """Keys and values. A source is kept once: all its hypotheses query the same keys."""

    memory: list[KeysValues]  # per layer, each [B, H, S, C]
    mask_B11S: Tensor | None
    past: list[KeysValues | None] = field(init=False)  # per layer, each [R, H, T, C]; None before any token
    _packing: Packing | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.past = [None] * len(self.memory)

    @property
    def sentences(self) -> int:
        return len(self.memory[0][0])

    @property
    def length(self) -> int:
        return 0 if self.past[0] is None else self.past[0][0].shape[2]

    def rows_per_sentence(self, rows: int) -> Packing:
        """The packing in which the hypotheses of a sentence are its rows; kept while their number stays."""
        lengths = np.full(self.sentences, rows // self.sentences)
        if self._packing is None or not np.array_equal(self._packing.lengths_B, lengths):
            self._packing = Packing.of(lengths, self.memory[0][0].device)
        return self._packing

    def keep_sentences(self, sentences: Tensor) -> None:
        self.memory = [_select(keys_values, sentences) for keys_values in self.memory]
        if self.mask_B11S is not None:
            self.mask_B11S = self.mask_B11S.index_select(0, sentences)

    def keep_rows(self, rows: Tensor) -> None:
        """Keeps the hypotheses in these rows; a row may be named more than once."""
        self.past = [None if past is None else _select(past, rows) for past in self.past]


def _select(keys_values: KeysValues, index: Tensor) -> KeysValues:
    return keys_values[0].index_select(0, index), keys_values[1].index_select(0, index)
