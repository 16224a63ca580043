from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import HeldOutSettings
from dragoman.data.selection import Fate, contained, duplicates, hold_out
from dragoman.errors import DataError
from tests.facts import raising

few = st.lists(st.sampled_from([0, 1, 2, 16, 17, 2**63, 2**64 - 1]), max_size=30)


def as_hashes(values: list[int]) -> np.ndarray:
    return np.array(values, dtype="<u8")


@given(few)
def test_the_first_of_equal_pairs_stays_and_every_later_one_goes(values: list[int]) -> None:
    assert duplicates(as_hashes(values)).tolist() == [v in values[:i] for i, v in enumerate(values)]


@given(few, few)
def test_leakage_is_exactly_what_stands_in_the_held_out_text(values: list[int], known: list[int]) -> None:
    assert contained(as_hashes(values), as_hashes(known)).tolist() == [v in known for v in values]


def test_duplicates_take_under_8_bytes_per_pair_beside_the_hashes() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**64, 1_000_000, dtype="<u8")
    hashes[500_000:600_000] = hashes[:100_000]
    tracemalloc.start()
    try:
        found = duplicates(hashes)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.flatnonzero(found).tolist() == list(range(500_000, 600_000))
    assert peak_bytes < 8 * len(hashes)


@given(st.lists(st.sampled_from(list(Fate)), min_size=40, max_size=200), st.integers(0, 5))
def test_held_out_pairs_are_training_pairs_none_twice_the_same_for_a_seed(
    fates: list[Fate], seed: int
) -> None:
    fate = np.array([*fates, *[Fate.TRAIN] * 20], dtype=np.uint8)
    chosen = hold_out(fate, HeldOutSettings(pairs=7), seed)
    candidates = int(np.count_nonzero(fate == Fate.TRAIN))
    assert len(set(chosen.tolist())) == len(chosen) == min(7, candidates // 20)
    assert (fate[chosen] == Fate.TRAIN).all()
    assert chosen.tolist() == hold_out(fate, HeldOutSettings(pairs=7), seed).tolist()


def test_another_seed_holds_out_other_pairs() -> None:
    fate = np.zeros(10_000, dtype=np.uint8)
    assert hold_out(fate, HeldOutSettings(), 1).tolist() != hold_out(fate, HeldOutSettings(), 2).tolist()


def test_too_little_text_to_hold_any_out_is_reported() -> None:
    with raising(DataError, 19, "--dev"):
        hold_out(np.zeros(19, dtype=np.uint8), HeldOutSettings(), 1)
