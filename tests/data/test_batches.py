from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.data import batches
from dragoman.data.batches import Batches, Position, StepBatch, StepSize
from dragoman.data.card import CorpusFacts
from dragoman.data.store import DataSet, Part, PartWriter

MULTI30K = Path(os.environ.get("DRAGOMAN_DATA", "/nowhere")) / "multi30k"


def of_lengths(source: Sequence[int], target: Sequence[int], weights: Sequence[float] = (1.0,)) -> Any:
    """A data set of sentences of these lengths, in as many corpora as there are weights."""
    with tempfile.TemporaryDirectory() as folder:
        with PartWriter(Path(folder)) as writer:
            sides = (np.asarray(lengths, dtype=np.uint32) for lengths in (source, target))
            writer.add(tuple((np.ones(int(n.sum()), dtype=np.uint16), n) for n in sides))
        part = Part(Path(folder), np.uint16)
    sizes = [len(piece) for piece in np.array_split(np.arange(len(source)), len(weights))]
    corpora = [
        CorpusFacts(name=str(n), pairs=size, weight=weight)
        for n, (size, weight) in enumerate(zip(sizes, weights, strict=True))
    ]
    return SimpleNamespace(train=part, card=SimpleNamespace(corpora=corpora))


lengths = st.tuples(st.integers(1, 30), st.integers(1, 30))
data_sets = st.builds(
    lambda pairs, weights: of_lengths(*zip(*pairs, strict=True), weights=weights),
    st.lists(lengths, min_size=4, max_size=60),
    st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=1, max_size=3),
)
step_sizes = st.builds(
    lambda microbatch, times, unit: StepSize(microbatch * times, microbatch, unit),
    st.integers(1, 60),
    st.integers(1, 5),
    st.sampled_from(["tokens", "pairs"]),
)


@pytest.fixture(autouse=True, scope="module")
def several_windows() -> Iterator[None]:
    """Windows so small that an epoch has several of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "WINDOW_PAIRS", 20)
        yield


def epoch(row: Batches, number: int = 0) -> list[StepBatch]:
    """The steps of an epoch."""
    steps = []
    for step in row.after(Position(number)):
        steps.append(step)
        if step.next.epoch > number:
            return steps
    raise AssertionError


def rows(steps: Iterable[StepBatch]) -> list[int]:
    return [row for step in steps for microbatch in step.microbatches for row in microbatch.tolist()]


@given(data_sets, step_sizes, st.integers(0, 3))
def test_an_epoch_is_the_pairs_of_the_order_none_lost_none_more(
    data: Any, size: StepSize, number: int
) -> None:
    row = Batches(data, size, seed=5)
    expected = batches.Order(data.card.corpora, 5)
    assert sorted(rows(epoch(row, number))) == sorted(expected.pairs(number, 0, expected.slots).tolist())


def as_lists(steps: Iterable[StepBatch]) -> list[Any]:
    return [([m.tolist() for m in step.microbatches], step.tokens, step.next) for step in steps]


@given(data_sets, step_sizes)
@settings(max_examples=25)
def test_going_on_from_any_position_equals_never_having_stopped(data: Any, size: StepSize) -> None:
    unbroken = list(itertools.islice(Batches(data, size, seed=5).after(Position()), 7))
    expected = as_lists(unbroken)
    for taken, step in enumerate(unbroken, 1):
        resumed = Batches(data, size, seed=5).after(step.next)
        assert as_lists(itertools.islice(resumed, 7 - taken)) == expected[taken:]


@given(data_sets, step_sizes, st.integers(1, 9))
def test_ranks_share_a_step_without_gap_or_overlap(data: Any, size: StepSize, world: int) -> None:
    for step in epoch(Batches(data, size, seed=5)):
        shares = [step.share(rank, world) for rank in range(world)]
        assert sorted(itertools.chain(*shares)) == list(range(len(step.microbatches)))


def test_a_change_of_ranks_on_the_way_repeats_and_skips_no_pair() -> None:
    data = of_lengths(*np.random.default_rng(1).integers(1, 30, (2, 100)))
    position, seen = Position(), []
    for world in itertools.cycle([4, 2, 3, 1]):
        step = next(Batches(data, StepSize(120, 30), seed=5).after(position))
        shares = [step.share(rank, world) for rank in range(world)]
        seen += [row for share in shares for index in share for row in step.microbatches[index].tolist()]
        position = step.next
        if position.epoch:
            break
    assert sorted(seen) == list(range(100))


@given(data_sets, step_sizes)
def test_a_microbatch_keeps_to_its_size_but_for_less_than_a_pair(data: Any, size: StepSize) -> None:
    for step in epoch(Batches(data, size, seed=5)):
        target_tokens = 0
        for microbatch, tokens in zip(step.microbatches, step.tokens, strict=True):
            source, target = (side.lengths(microbatch) for side in (data.train.source, data.train.target))
            assert tokens == (source + target).sum()
            target_tokens += target.sum()
            if size.unit == "pairs":
                assert 1 <= len(microbatch) <= size.microbatch
            else:
                assert tokens / 2 < size.microbatch + (source + target).max() / 2
        assert step.target_tokens == target_tokens


@given(data_sets, step_sizes)
def test_a_step_holds_at_most_what_was_asked_for_give_or_take_a_pair_each(data: Any, size: StepSize) -> None:
    longest = (data.train.source.lengths(np.arange(len(data.train))).max() + 30) / 2
    for step in epoch(Batches(data, size, seed=5)):
        assert len(step.microbatches) <= size.microbatches
        if size.unit == "tokens":
            assert sum(step.tokens) / 2 < size.step + len(step.microbatches) * longest


@pytest.mark.parametrize("pairs", [1, 2, 3])
@pytest.mark.parametrize("unit", ["tokens", "pairs"])
def test_a_tiny_data_set_goes_round_and_round(pairs: int, unit: Any) -> None:
    row = Batches(of_lengths([5] * pairs, [6] * pairs), StepSize(4_000, 500, unit), seed=1)
    steps = list(itertools.islice(row.after(Position()), 3))
    assert [sorted(rows([step])) for step in steps] == [list(range(pairs))] * 3
    assert [step.next for step in steps] == [Position(1), Position(2), Position(3)]
    assert sorted(index for rank in range(8) for index in steps[0].share(rank, 8)) == list(
        range(len(steps[0].microbatches))
    )


def test_a_pair_longer_than_a_microbatch_stands_alone() -> None:
    row = Batches(of_lengths([50, 1, 1], [50, 1, 1]), StepSize(10, 10), seed=1)
    assert sorted(sorted(rows([step])) for step in epoch(row)) == [[0], [1, 2]]


def test_a_step_counts_pairs_on_request() -> None:
    row = Batches(
        of_lengths(*np.random.default_rng(1).integers(1, 30, (2, 1_000))), StepSize(64, 16, "pairs"), 1
    )
    counts = [len(rows([step])) for step in epoch(row)]
    assert sum(counts) == 1_000
    assert max(counts) <= 64


def large(pairs: int = 20_000) -> Any:
    """Lengths as in running text: log-normal, target near source."""
    draw = np.random.default_rng(2)
    source = np.clip(draw.lognormal(2.6, 0.5, pairs), 2, 100).astype(int)
    target = np.clip(source * draw.normal(1.1, 0.15, pairs), 2, 100).astype(int)
    return of_lengths(source, target)


def padded_share(row: Batches, part: Part) -> float:
    """Slots that hold no token when each side of a microbatch is padded to its longest."""
    slots = tokens = 0
    for step in epoch(row):
        for microbatch in step.microbatches:
            for side in (part.source, part.target):
                each = side.lengths(microbatch)
                slots += len(each) * int(each.max())
                tokens += int(each.sum())
    return 1 - tokens / slots


@pytest.fixture
def real_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WINDOW_PAIRS", 100_000)


@pytest.mark.parametrize("world", [2, 4, 8])
def test_ranks_get_even_shares_by_tokens(world: int, real_windows: None) -> None:
    size = StepSize(16_000, 500)
    for step in itertools.islice(Batches(large(), size, seed=1).after(Position()), 20):
        loads = [sum(step.tokens[index] for index in step.share(rank, world)) for rank in range(world)]
        assert max(loads) <= 1.03 * sum(loads) / world


def test_steps_are_of_equal_size(real_windows: None) -> None:
    sizes = [sum(step.tokens) / 2 for step in epoch(Batches(large(), StepSize(8_000, 1_000), seed=1))]
    assert max(sizes) <= 1.03 * 8_000
    assert min(sizes) >= 0.95 * max(sizes)


def test_padding_is_under_6_percent(real_windows: None) -> None:
    data = large(100_000)
    assert padded_share(Batches(data, StepSize(4_096, 4_096), seed=1), data.train) < 0.06


def test_source_lengths_do_not_jump_where_the_target_length_changes(real_windows: None) -> None:
    """The sources of target length 3 get longer towards the border, those of 4 shorter after it."""
    data = of_lengths([*range(1, 21)] * 2, [3] * 20 + [4] * 20)
    for step in epoch(Batches(data, StepSize(40, 8, "pairs"), seed=1)):
        for microbatch in step.microbatches:
            lengths_ = data.train.source.lengths(microbatch).astype(int)
            assert len(lengths_) == 8 and np.ptp(lengths_) < 8


def test_windows_are_of_equal_size_and_none_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WINDOW_PAIRS", 20)
    steps = epoch(Batches(of_lengths([2] * 50, [2] * 50), StepSize(100, 100, "pairs"), seed=1))
    assert [step.pairs for step in steps] == [25, 25]
    assert [step.next for step in steps] == [Position(0, 1), Position(1)]


def test_microbatches_of_a_step_are_not_all_short_or_all_long(real_windows: None) -> None:
    data = large()
    means = []
    for step in epoch(Batches(data, StepSize(8_000, 500), seed=1)):
        means.append(np.mean(data.train.source.lengths(np.array(rows([step])))))
    assert max(means) < 2 * min(means)


@pytest.mark.skipif(not MULTI30K.exists(), reason="DRAGOMAN_DATA has no multi30k")
def test_padding_on_multi30k_is_under_6_percent(tmp_path: Path, run, real_windows: None) -> None:
    words = [f"{language}={MULTI30K}/train.{language}.gz" for language in ("en", "de")]
    dev = [f"{language}={MULTI30K}/val.{language}.gz" for language in ("en", "de")]
    run(words, tmp_path / "data", "vocabulary.size=10000", dev=dev)
    data = DataSet(tmp_path / "data")
    assert padded_share(Batches(data, StepSize(4_096, 4_096), seed=1), data.train) < 0.06


def test_the_first_batch_does_not_wait_for_a_large_corpus(real_windows: None) -> None:
    data = of_lengths(np.full(4_500_000, 2), np.full(4_500_000, 2))
    began = time.monotonic()
    row = Batches(data, StepSize(25_000, 3_125), seed=1)
    row.load(next(row.after(Position())).microbatches[0])
    assert time.monotonic() - began < 1


def test_a_microbatch_loads_the_tokens_of_its_rows(small: DataSet) -> None:
    row = Batches(small, StepSize(500, 250), seed=1)
    rows_ = next(row.after(Position())).microbatches[0]
    loaded = row.load(rows_)
    source, lengths_ = small.train.source.take(rows_)
    assert loaded.source.tolist() == source.tolist()
    assert loaded.source_lengths.tolist() == lengths_.tolist()
    assert loaded.target_tokens == small.train.target.lengths(rows_).sum()


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=12), st.integers(1, 6))
@example([1_000, 1, 1, 1], 2)
def test_no_rank_has_more_than_the_mean_and_one_microbatch(tokens: list[int], world: int) -> None:
    step = StepBatch((), tuple(tokens), 0, Position())
    loads = [sum(tokens[index] for index in step.share(rank, world)) for rank in range(world)]
    assert max(loads) <= sum(tokens) / world + max(tokens)


def test_the_largest_microbatches_are_shared_out_first() -> None:
    step = StepBatch((), (10, 10, 20), 0, Position())
    assert [step.share(rank, 2) for rank in (0, 1)] == [[2], [0, 1]]
