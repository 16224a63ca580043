"""explain/bounds_from_link.py: what follows for a step of which only the whole is known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from dragoman.explain import bounds_from_link, network
from dragoman.explain.bounds_from_link import bounds
from dragoman.measure.records import Records, RunFacts

GRADIENTS = 100_000_000  # 100 MB leave each of two hosts in a step


def of(seconds: float, computing: tuple[float, float] | None = None, **facts: Any) -> Records:
    return Records(
        RunFacts(
            source="fairseq",
            ranks=2,
            hosts=["a", "b"],
            rank_hosts=[0, 1],
            gradient_bytes=GRADIENTS,
            computing_seconds=computing,
            **facts,
        ),
        steps={"step": np.arange(1, 31), "seconds": np.full(30, seconds)},
    )


def test_two_thirds_of_computing_can_hide_an_exchange() -> None:
    """A step of 10 s with an exchange of 6: at least 4 s computing, and at most 12."""
    assert bounds(10.0, 6.0) == (1.0, 2.5)
    assert bounds(10.0, 9.0) == (pytest.approx(10 / 3), 10.0)
    assert bounds(10.0, 0.0) == (1.0, 1.0)
    low, high = bounds(10.0, 10.0)
    assert (low, high) == (pytest.approx(100 / 3), pytest.approx(100))


@pytest.mark.parametrize("port", [10e6, 100e6, 1e9, 10e9, 25e9, 40e9, 100e9])
@pytest.mark.parametrize(("filled", "is_full"), [(0.65, False), (0.75, True), (0.98, True)])
def test_a_port_below_the_order_is_full_from_seven_tenths_of_its_rate(
    port: float, filled: float, is_full: bool
) -> None:
    seconds = 8 * GRADIENTS / (filled * port)
    records = of(seconds, (0.01 * seconds, 0.02 * seconds), ordered_link_bits_per_second=1e12)
    found = network.explain(records)
    assert (found.numbers.get("link_bits_per_second") == port) == is_full


@pytest.mark.parametrize(("times", "is_told"), [(2.9, False), (3.1, True)])
def test_a_port_is_full_only_of_a_step_that_is_three_times_its_computing(times: float, is_told: bool) -> None:
    seconds = 8 * GRADIENTS / 0.9e9
    records = of(seconds, (seconds / times / 2, seconds / times), ordered_link_bits_per_second=1e10)
    assert (network.explain(records).numbers.get("link_bits_per_second") == 1e9) == is_told


@pytest.mark.parametrize(("times", "is_believed"), [(0.9, True), (1.9, True), (2.1, False)])
def test_an_order_that_the_steps_exceed_twice_is_another_links(times: float, is_believed: bool) -> None:
    records = of(8 * GRADIENTS / (times * 1e9), ordered_link_bits_per_second=1e9)
    numbers = network.explain(records).numbers
    assert ("wire_seconds" in numbers) == is_believed


@pytest.mark.parametrize(("share", "is_possible"), [(0.88, False), (0.92, True)])
def test_a_step_a_tenth_shorter_than_its_computing_is_a_slip(share: float, is_possible: bool) -> None:
    found = network.explain(of(share, (1.0, 2.0), ordered_link_bits_per_second=1e9))
    assert (bounds_from_link.NOT_RIGHT in found.answer) != is_possible


@pytest.mark.parametrize(("times", "figures"), [(90.0, ["90.00 x"]), (110.0, [])])
def test_a_gain_of_a_hundred_times_and_more_is_not_given_in_figures(times: float, figures: list[str]) -> None:
    found = network.explain(of(times, (1.0, 1.0)))
    assert found.numbers["speedup_without_exchange_low"] == times
    assert re.findall(r"[\d.]+ x\b", found.answer) == figures
