"""A small selection of the truth bench: real trainings with a known cause, and what is said of them.

Causes are scaled to this machine's speed, as in the bench, so that a change of speed cannot pass unnoticed.
They stay in the way from beginning to end: the shares of time are left to the bench.
"""

from __future__ import annotations

import pytest

from benchmarks.scenarios import SCENARIOS
from benchmarks.trainings import Outcome
from benchmarks.truth import Bench, wrong
from dragoman.cost.step import ring_bytes

pytestmark = pytest.mark.alone  # a busy core is one of the causes
BYTES_TOLERANCE = 0.15
STEP_SECONDS = 0.1


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("truth"), STEP_SECONDS, reported_seconds=0.0)


def train_rightly(bench: Bench, name: str) -> Outcome:
    outcome = bench.train(name, SCENARIOS[name], by_turns=False)
    assert not wrong(SCENARIOS[name], outcome)
    return outcome


def test_a_run_with_nothing_wrong_is_computing(bench: Bench) -> None:
    train_rightly(bench, "compute-bound")


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_slow_link_is_the_bottleneck_and_its_bytes_are_those_of_the_ring(bench: Bench) -> None:
    outcome = train_rightly(bench, "slow-link-1")
    gradient_bytes = outcome.records.facts.gradient_bytes
    assert gradient_bytes
    sent = outcome.number("network", "bytes_per_step_per_host")
    assert sent == pytest.approx(ring_bytes(2, gradient_bytes), rel=BYTES_TOLERANCE)


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_slow_host_is_named(bench: Bench) -> None:
    train_rightly(bench, "slow-host")


def test_slow_data_is_told_from_computing(bench: Bench) -> None:
    train_rightly(bench, "slow-data")


def test_a_competing_program_is_told_from_computing(bench: Bench) -> None:
    train_rightly(bench, "competitor")
