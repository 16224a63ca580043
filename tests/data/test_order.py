from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.data.card import CorpusFacts
from dragoman.data.order import Order, Shuffle


def order(*corpora: tuple[int, float], seed: int = 1) -> Order:
    facts = [CorpusFacts(name=f"corpus {n}", pairs=p, weight=w) for n, (p, w) in enumerate(corpora)]
    return Order(facts, seed)


def epoch(of: Order, number: int) -> list[int]:
    return of.pairs(number, 0, of.slots).tolist()


@given(st.integers(1, 3_000), st.integers(0, 2**40), st.integers(0, 2**40))
@example(1, 0, 0)
@example(2, 0, 0)
@example(1_024, 0, 0)
@example(1_025, 0, 0)
def test_a_shuffle_is_a_permutation_for_every_size_and_key(size: int, key: int, more: int) -> None:
    assert sorted(Shuffle(size, key, more)(np.arange(size)).tolist()) == list(range(size))


def test_a_shuffle_needs_no_table_it_gives_any_place_alone() -> None:
    shuffle = Shuffle(4_500_000, 1)
    some = np.array([0, 17, 4_499_999])
    assert shuffle(some).tolist() == [int(shuffle(some[[i]])[0]) for i in range(3)]


@pytest.mark.parametrize("other", [(2, 0), (1, 1), (1,), (0, 1)])
def test_another_key_gives_another_permutation(other: tuple[int, ...]) -> None:
    places = np.arange(1_000)
    same = np.count_nonzero(Shuffle(1_000, 1, 0)(places) == Shuffle(1_000, *other)(places))
    assert same < 10  # one is to be expected


def test_a_shuffle_mixes_near_and_far() -> None:
    moved = Shuffle(10_000, 3)(np.arange(10_000))
    assert abs(np.corrcoef(moved, np.arange(10_000))[0, 1]) < 0.05
    assert np.count_nonzero(np.abs(np.diff(moved)) == 1) < 10  # two are to be expected


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(0, 9), st.integers(0, 9))
def test_with_weight_1_each_pair_comes_once_per_epoch(sizes: list[int], seed: int, number: int) -> None:
    row = order(*((size, 1.0) for size in sizes), seed=seed)
    assert sorted(epoch(row, number)) == list(range(sum(sizes)))


@given(st.integers(1, 50), st.sampled_from([0.5, 0.25, 1.5, 2.0, 3.0]), st.integers(0, 5))
def test_counts_of_pairs_follow_the_weight_and_differ_by_at_most_one(
    pairs: int, weight: float, epochs: int
) -> None:
    row = order((pairs, weight), (30, 1.0))
    seen = Counter(pair for number in range(epochs + 1) for pair in epoch(row, number))
    counts = [seen[pair] for pair in range(pairs)]
    assert sum(counts) == (epochs + 1) * max(1, round(pairs * weight))
    assert max(counts) - min(counts) <= 1
    assert [seen[pairs + other] for other in range(30)] == [epochs + 1] * 30


def test_weight_2_is_twice_per_epoch_and_weight_a_half_every_second_epoch() -> None:
    row = order((10, 2.0), (10, 0.5))
    first, second = epoch(row, 0), epoch(row, 1)
    assert sorted(pair for pair in first if pair < 10) == sorted([*range(10), *range(10)])
    halves = [{pair for pair in part if pair >= 10} for part in (first, second)]
    assert [len(half) for half in halves] == [5, 5]
    assert halves[0] | halves[1] == set(range(10, 20))


def test_corpora_without_pairs_are_passed_over() -> None:
    row = order((0, 1.0), (3, 1.0), (0, 5.0), (2, 1.0), (0, 1.0))
    assert sorted(epoch(row, 0)) == [0, 1, 2, 3, 4]


@given(st.integers(2, 200), st.data())
def test_slots_asked_for_in_parts_are_those_asked_for_at_once(pairs: int, data: st.DataObject) -> None:
    row = order((pairs, 1.5), (7, 0.3))
    cut = data.draw(st.integers(0, row.slots))
    parts = [*row.pairs(3, 0, cut).tolist(), *row.pairs(3, cut, row.slots).tolist()]
    assert parts == epoch(row, 3)


def test_epochs_and_seeds_have_their_own_order() -> None:
    row, other = order((500, 1.0)), order((500, 1.0), seed=2)
    assert epoch(row, 0) == epoch(order((500, 1.0)), 0)
    assert epoch(row, 0) != epoch(row, 1)
    assert epoch(row, 0) != epoch(other, 0)


def test_corpora_are_interleaved_anew_in_every_epoch() -> None:
    row = order((300, 1.0), (300, 1.0))
    first, second = ([pair < 300 for pair in epoch(row, number)] for number in (0, 1))
    assert first != second
    assert 100 < sum(first[:300]) < 200  # half and half from the start
