"""A small selection of the truth bench: real trainings with a known cause, and what is said of them."""

from __future__ import annotations

import pytest

from benchmarks.truth import SCENARIOS, Bench, wrong
from dragoman.plan.step import ring_bytes
from testbed.require import why_not

BYTES_TOLERANCE = 0.15


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("truth"))


@pytest.fixture
def hosts_are_possible() -> None:
    if reason := why_not():
        pytest.skip(reason)


def test_nothing_wrong_is_said_to_be_computing(bench: Bench) -> None:
    assert not wrong(SCENARIOS["compute-bound"], bench.outcome("compute-bound"))


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_slow_link_is_the_bottleneck_and_its_bytes_are_those_of_the_ring(bench: Bench) -> None:
    outcome = bench.outcome("slow-link-100")
    assert not wrong(SCENARIOS["slow-link-100"], outcome)
    gradient_bytes = outcome.records.facts.gradient_bytes
    assert gradient_bytes
    sent = outcome.number("network", "bytes_per_step_per_host")
    assert sent == pytest.approx(ring_bytes(2, gradient_bytes), rel=BYTES_TOLERANCE)


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_slow_host_is_named(bench: Bench) -> None:
    assert not wrong(SCENARIOS["slow-host"], bench.outcome("slow-host"))


def test_a_learning_rate_that_is_too_high_is_called_divergence(bench: Bench) -> None:
    assert not wrong(SCENARIOS["diverged"], bench.outcome("diverged"))
