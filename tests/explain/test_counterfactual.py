"""explain/counterfactual.py: what a step would take otherwise, from probes that may not all have worked."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain.counterfactual import expected_bytes, link_rate, without_exchange
from dragoman.explain.step_breakdown import step_parts
from dragoman.measure.records import Probe, Records, RunFacts
from tests.explain import build
from tests.facts import lacking


def probed(kind: str, *numbers: dict[str, float]) -> list[Probe]:
    return [Probe(time=0.0, attempt=1, step=1, kind=kind, numbers=each) for each in numbers]


def test_probes_of_a_link_without_a_rate_do_not_count() -> None:
    rates = [1e9, 3e9, 5e9, np.nan, 0.0, np.inf, -1e9]
    probes = probed("link", *({"bits_per_second": rate} for rate in rates), {})
    assert link_rate(Records(RunFacts(), probes=probes)) == 3e9
    assert link_rate(Records(RunFacts(), probes=probes[3:])) is None


def test_probes_of_an_exchange_without_seconds_do_not_count() -> None:
    records = build.records(jitter=0.0, exchange_jitter=0.0, exchange=0.3)
    pairs = [(1.2, 0.9), (1.2, np.nan), (np.nan, 0.1), (0.0, 0.1), (1.2, 0.0), (1.2, -1.0), (-1.0, 0.1)]
    names = ("step_seconds", "step_seconds_without_exchange")
    records.probes = probed("exchange", *(dict(zip(names, pair, strict=True)) for pair in pairs), {})
    parts = step_parts(records)
    assert parts is not None
    found = without_exchange(records, parts)
    assert found is not None and found.is_measured
    beside = 0.01 + 0.05
    assert found.seconds == pytest.approx(beside + (parts.seconds - beside) * 0.75, rel=0.01)
    assert not lacking(found.how, "1 probe")


def test_a_probe_that_was_faster_with_the_exchange_finds_nothing_to_gain() -> None:
    records = build.records(jitter=0.0, exchange_jitter=0.0)
    numbers = {"step_seconds": 0.9, "step_seconds_without_exchange": 0.95}
    records.probes = probed("exchange", numbers)
    parts = step_parts(records)
    assert parts is not None
    found = without_exchange(records, parts)
    assert found is not None and found.seconds == pytest.approx(parts.seconds)


def test_rounds_send_as_often_as_they_end() -> None:
    """Rounds of up to four end with each of 15 steps, every second one to 30, and every fourth from 32 on."""
    run = {"mode": "diloco", "exchange_every": 4, "steps": 48}
    per_exchange = build.Run().wire_bytes
    assert expected_bytes(build.records(**run)) == pytest.approx(per_exchange * (15 + 8 + 5) / 48)
    stopped, running = (build.records(**{**run, "steps": 47}, reason=why) for why in ("finished", None))
    more = (expected_bytes(stopped) or 0) - (expected_bytes(running) or 0)
    assert more == pytest.approx(per_exchange / 47), "a round ends where the run stops"
