"""Decides what needs the whole corpus: duplicates, leakage into dev or test, held-out pairs.

It works on 64-bit hashes of the pairs, so that memory stays within 16 bytes per pair: the hashes (8), the
fate of each pair (1), and at most 4 more during the search for duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from dragoman.config import HeldOutSettings, Preparation
from dragoman.data.cleaning_pass import CleanText
from dragoman.data.filters import EXAMPLES_KEPT, DropTally
from dragoman.data.reasons import Reason
from dragoman.errors import DataError

_PARTS = 16  # one part of the hashes at a time is searched for duplicates: less memory, same result


class Fate(IntEnum):
    """What becomes of a clean pair."""

    TRAIN = 0
    DEV = 1
    DUPLICATE = 2
    LEAKAGE = 3


@dataclass(frozen=True)
class Selection:
    """The fate of every clean pair."""

    fate: np.ndarray  # uint8, values of Fate
    tally: DropTally  # duplicates and leakage

    def pairs(self, fate: Fate) -> np.ndarray:
        """A mask that is true for the pairs with this fate."""
        return self.fate == fate


def select(
    text: CleanText, settings: Preparation, held_out_sources: np.ndarray, without_dev: bool
) -> Selection:
    """Decides the fate of every clean pair. `held_out_sources` are the hashes of all dev and test sources."""
    fate = np.full(len(text), Fate.TRAIN, dtype=np.uint8)
    if settings.clean.drop_duplicates:
        fate[duplicates(text.pair_hashes())] = Fate.DUPLICATE
    sources = text.source_hashes()
    if settings.clean.drop_leakage:
        fate[contained(sources, held_out_sources) & (fate == Fate.TRAIN)] = Fate.LEAKAGE
    if without_dev:  # drawn from the pairs left, so that no dev pair is also in test
        chosen = hold_out(fate, settings.held_out, settings.seed)
        if settings.clean.drop_leakage:
            fate[contained(sources, sources[chosen]) & (fate == Fate.TRAIN)] = Fate.LEAKAGE
        fate[chosen] = Fate.DEV
    return Selection(fate, _tally(text, fate))


def _tally(text: CleanText, fate: np.ndarray) -> DropTally:
    reasons = {Fate.DUPLICATE: Reason.DUPLICATE, Fate.LEAKAGE: Reason.LEAKAGE}
    tally = DropTally()
    for value, reason in reasons.items():
        dropped = fate == value
        if dropped.any():
            tally.dropped[reason] = int(np.count_nonzero(dropped))
            first = np.flatnonzero(dropped)[:EXAMPLES_KEPT].tolist()
            tally.examples[reason] = text.examples(first)
    return tally


def duplicates(hashes: np.ndarray) -> np.ndarray:
    """A mask that is true where the same hash occurs earlier in the array."""
    repeated = np.zeros(len(hashes), dtype=bool)
    low_bytes = hashes.view(np.uint8)[::8]
    for part in range(_PARTS):
        members = np.flatnonzero(low_bytes % _PARTS == part).astype(np.uint32)
        values = hashes[members]
        order = np.argsort(values, kind="stable")  # stable: the first occurrence stays first
        values = values[order]
        repeated[members[order[1:]][values[1:] == values[:-1]]] = True
    return repeated


def contained(hashes: np.ndarray, among: np.ndarray) -> np.ndarray:
    """A mask that is true where a hash is one of `among`, which is small."""
    is_contained = np.zeros(len(hashes), dtype=bool)
    known = np.unique(among)
    if len(known) == 0:
        return is_contained
    for start in range(0, len(hashes), 1 << 20):
        piece = hashes[start : start + (1 << 20)]
        places = np.minimum(np.searchsorted(known, piece), len(known) - 1)
        is_contained[start : start + (1 << 20)] = known[places] == piece
    return is_contained


def hold_out(fate: np.ndarray, settings: HeldOutSettings, seed: int) -> np.ndarray:
    """The indices of the training pairs to set aside as dev, drawn by seed."""
    candidates = np.flatnonzero(fate == Fate.TRAIN)
    count = min(settings.pairs, int(len(candidates) * settings.most_share))
    if count == 0:
        raise DataError(
            f"too few pairs are left after cleaning to hold any out as dev: {len(candidates)}",
            hint="give a dev set with --dev, or more training text",
        )
    return np.sort(np.random.default_rng(seed).choice(candidates, size=count, replace=False))
