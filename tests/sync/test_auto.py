"""sync/auto.py: what is picked, from tables of numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dragoman.config import Sync
from dragoman.cost.step import buckets
from dragoman.exchange_way import ExchangeWay
from dragoman.sync import auto
from dragoman.sync import world as worlds
from dragoman.sync.auto import ComputedStep, Tried, bucket_sizes, expect, pick
from tests.facts import lacking

MIB = 2**20
# Transformer-base: 176 MB of layers, then the embedding, which is ready last.
BASE = [4_400_000] * 40 + [67_000_000]
PLAIN = ExchangeWay()
SIZES = (MIB, 5 * MIB, 25 * MIB)


def tried(way: ExchangeWay, seconds_per_mb: float, latency_seconds: float = 0.001) -> Tried:
    return Tried(way, {size: latency_seconds + size / 1e6 * seconds_per_mb for size in SIZES})


def four_ways(flat: float, latency_seconds: float = 0.001) -> list[Tried]:
    """2 hosts x 2 ranks: by what each puts on the wire."""
    shares = {
        "flat fp32": 1.0,
        "flat bf16": 0.5,
        "hierarchical fp32": 0.67,
        "hierarchical bf16": 0.33,
    }
    ways = [dict(zip(("shape", "wire"), name.split(), strict=True)) for name in shares]
    return [
        tried(ExchangeWay.model_validate(way), flat * share, latency_seconds)
        for way, share in zip(ways, shares.values(), strict=True)
    ]


def test_slow_link_takes_the_fewest_bytes() -> None:
    chosen, why = pick(ComputedStep(1.0, 0.3, BASE), four_ways(3.7 / 243), SIZES)
    assert (chosen.way.shape, chosen.way.wire) == ("hierarchical", "bf16")
    assert chosen.step_seconds == pytest.approx(1.0 + 3.7 * 0.33 - 0.3, rel=0.1)
    assert not lacking(why, "1 s", "flat fp32", "hierarchical fp32")


def test_fast_link_stays_with_plain_fp32() -> None:
    chosen, _ = pick(ComputedStep(1.0, 0.3, BASE), four_ways(0.01 / 243, 0.0001), SIZES)
    assert chosen.way == ExchangeWay(bucket_bytes=25 * MIB)


def test_hierarchy_in_fp32_is_enough_where_bf16_saves_little() -> None:
    ways = [
        tried(PLAIN, 0.01),
        tried(ExchangeWay(shape="hierarchical"), 0.002),
        tried(ExchangeWay(wire="bf16"), 0.00199),
    ]
    assert pick(ComputedStep(5.0, 0.1, BASE), ways, SIZES)[0].way.shape == "hierarchical"


def test_dear_buckets_are_large_and_cheap_ones_small() -> None:
    step = ComputedStep(2.0, 1.2, [1_000_000] * 200)
    assert pick(step, [tried(PLAIN, 0.002, latency_seconds=0.1)], SIZES)[0].way.bucket_bytes == 25 * MIB
    assert pick(step, [tried(PLAIN, 0.006, latency_seconds=1e-4)], SIZES)[0].way.bucket_bytes < 25 * MIB


def test_what_is_ready_last_is_never_hidden() -> None:
    exposed = expect(ComputedStep(10.0, 10.0, BASE), tried(PLAIN, 0.001), MIB).step_seconds - 10
    assert exposed == pytest.approx(0.067, rel=0.1)


def test_nothing_is_hidden_where_nothing_is_computed() -> None:
    expected = expect(ComputedStep(0.0, 0.0, BASE), tried(PLAIN, 0.01, latency_seconds=0.0), 25 * MIB)
    assert expected.step_seconds == pytest.approx(2.43, rel=0.01)


class SlowAtFirst:
    """A route whose first exchange connects the ranks: 5 s on a clock that stands still otherwise."""

    def __init__(self, clock: list[float]):
        self._clock = clock
        self._seconds = iter([5.0, 0.02, 0.01])

    def begin(self, gradients: torch.Tensor) -> Callable[[], None]:
        self._clock[0] += next(self._seconds)
        return lambda: None


@pytest.mark.usefixtures("world_of_one")
def test_connecting_the_ranks_is_no_part_of_an_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    with worlds.join(60) as world, monkeypatch.context() as patch:
        clock = [0.0]
        patch.setattr(auto.time, "perf_counter", lambda: clock[0])
        assert auto._seconds(SlowAtFirst(clock), world, [MIB]) == {MIB: pytest.approx(0.01)}


def test_tries_speak_for_sizes_between_and_beyond() -> None:
    each = Tried(PLAIN, {MIB: 0.1, 5 * MIB: 0.3})
    assert each.seconds_of(3 * MIB) == pytest.approx(0.2)
    assert each.seconds_of(50 * MIB) == pytest.approx(3.0)
    assert each.seconds_of(10) == 0.1


def test_buckets_are_filled_as_ddp_fills_them() -> None:
    assert buckets([3, 3, 3, 9, 1], 5) == [6, 12, 1]
    assert sum(buckets(BASE, 5 * MIB)) == sum(BASE)


def test_bucket_sizes_that_hold_everything_are_not_compared() -> None:
    assert bucket_sizes(Sync(), 10 * MIB) == [MIB, 5 * MIB]
    assert bucket_sizes(Sync(), 1000) == [25 * MIB]
    assert bucket_sizes(Sync(bucket_mb=2), 10 * MIB) == [2 * MIB]
