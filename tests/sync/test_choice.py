"""sync/choice.py: what a run exchanges by, from settings, hosts and the measured link."""

from __future__ import annotations

import pytest

from dragoman.config import Sync
from dragoman.cost.step import BUCKET_BYTES, bucket_bytes_for
from dragoman.exchange_way import ExchangeWay
from dragoman.sync.choice import Choice, MeasuredLink, decide
from dragoman.sync.topology import Topology

ONE = Topology(["a"], [0, 0], ["lo"])
TWO = Topology(["a", "b"], [0, 0, 1, 1], ["eth0", "eth0"])
APART = Topology(["a", "b"], [0, 1], ["eth0", "eth0"])
GIGABIT = MeasuredLink(1e9, 0.0002)
MEASURED = ExchangeWay(shape="hierarchical", wire="bf16", bucket_bytes=5 * 2**20)


def measuring(settings: Sync, topology: Topology) -> Choice:
    return Choice.of(MEASURED, "it is the fastest", settings, topology)


def never() -> Choice:
    raise AssertionError("there is nothing to measure")


@pytest.mark.parametrize("mode", ["allreduce", "auto"])
def test_one_machine_stays_with_plain_ddp(mode: str) -> None:
    settings = Sync.model_validate({"mode": mode})
    assert decide(settings, ONE, None, None, never).way == ExchangeWay(bucket_bytes=BUCKET_BYTES)


def test_settings_are_obeyed() -> None:
    settings = Sync(wire="bf16", hierarchical=True, bucket_mb=2)
    way = decide(settings, TWO, GIGABIT, None, never).way
    assert way == ExchangeWay(shape="hierarchical", wire="bf16", bucket_bytes=2 * 2**20)


def test_ranks_alone_on_their_hosts_need_no_hierarchy() -> None:
    assert decide(Sync(hierarchical=True), APART, GIGABIT, None, never).way.shape == "flat"


@pytest.mark.parametrize(
    ("bits_per_second", "round_trip_seconds", "mebibytes"),
    [(1e8, 0.0002, 1), (1e9, 0.0001, 5), (3e8, 0.0001, 5), (1e8, 0.030, 25), (25e9, 0.00005, 25)],
)
def test_buckets_are_as_small_as_the_way_allows(
    bits_per_second: float, round_trip_seconds: float, mebibytes: int
) -> None:
    link = MeasuredLink(bits_per_second, round_trip_seconds)
    assert bucket_bytes_for(2, *link) == mebibytes * 2**20


def test_what_was_measured_is_kept_for_as_long_as_it_fits() -> None:
    settings = Sync(mode="auto")
    chosen = decide(settings, TWO, GIGABIT, None, lambda: measuring(settings, TWO))
    assert chosen.way == MEASURED
    restarted = Choice.model_validate_json(chosen.model_dump_json())  # as a checkpoint keeps it
    slower = MeasuredLink(1e7, 0.1)
    assert decide(settings, TWO, slower, restarted, never) == chosen
    patient = Sync(mode="auto", timeout_seconds=60)
    assert decide(patient, TWO, slower, restarted, never) == chosen
    other = Sync(mode="auto", wire="fp32")
    assert decide(other, TWO, slower, restarted, lambda: measuring(other, TWO)).asked["wire"] == "fp32"
    assert decide(settings, APART, slower, restarted, lambda: measuring(settings, APART)) != chosen


def from_old_state(way: dict[str, object], settings: Sync, topology: Topology) -> Choice:
    """As a checkpoint kept it before ways had modes and rounds."""
    newer = Choice.of(ExchangeWay(), "", settings, topology).model_dump()
    return Choice.model_validate(newer | {"way": way})


def test_what_an_old_checkpoint_chose_is_kept() -> None:
    settings = Sync(mode="auto")
    way = {"algorithm": "hierarchical", "wire": "bf16", "bucket_bytes": 5 * 2**20, "flows": 1}
    kept = from_old_state(way, settings, TWO)
    assert decide(settings, TWO, GIGABIT, kept, never) is kept
    assert kept.way == MEASURED


def test_rounds_are_those_of_the_settings_whatever_a_checkpoint_says() -> None:
    settings = Sync(mode="diloco", inner_steps=8)
    way = {"algorithm": "allreduce", "wire": "fp32", "bucket_bytes": 2**20, "flows": 1}
    old = from_old_state(way, settings, TWO)  # it could not tell that replicas meet in rounds
    chosen = decide(settings, TWO, GIGABIT, old, never)
    assert (chosen.way.mode, chosen.way.steps_per_round) == ("diloco", 8)
    assert decide(settings, TWO, GIGABIT, chosen, never) is chosen
    longer = Sync(mode="diloco", inner_steps=32)
    assert decide(longer, TWO, GIGABIT, chosen, never).way.steps_per_round == 32
