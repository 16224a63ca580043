"""A small selection of the truth bench: real trainings with a known cause, and what is said of them.

They are shorter than those of the bench, and the shares of time are left to it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.trainings import Outcome, Setting
from benchmarks.truth import SCENARIOS, Bench, wrong
from dragoman.plan.step import ring_bytes

pytestmark = pytest.mark.alone  # a busy core is one of the causes
BYTES_TOLERANCE = 0.15


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("truth"))


def train_rightly(bench: Bench, name: str, steps: int, where: Setting | None = None) -> Outcome:
    scenario = SCENARIOS[name]
    settings = (*scenario.settings, f"train.steps={steps}")
    shorter = replace(scenario, settings=settings, where=where or scenario.where, share=None)
    outcome = bench.train(name, shorter)
    assert not wrong(shorter, outcome)
    return outcome


def test_nothing_wrong_is_said_to_be_computing(bench: Bench) -> None:
    train_rightly(bench, "compute-bound", steps=24)


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_slow_link_is_the_bottleneck_and_its_bytes_are_those_of_the_ring(bench: Bench) -> None:
    outcome = train_rightly(bench, "slow-link-100", 24, Setting(hosts=2, rate="50mbit"))
    gradient_bytes = outcome.records.facts.gradient_bytes
    assert gradient_bytes
    sent = outcome.number("network", "bytes_per_step_per_host")
    assert sent == pytest.approx(ring_bytes(2, gradient_bytes), rel=BYTES_TOLERANCE)


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_slow_host_is_named(bench: Bench) -> None:
    train_rightly(bench, "slow-host", 24, Setting(hosts=2, slow_host=0.35))
