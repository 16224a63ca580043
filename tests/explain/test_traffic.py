"""explain/traffic.py: steps laid over counters that know nothing of steps."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain.traffic import Clock, bytes_of_steps, gradient_traffic, mean_per_step, sent_per_step
from dragoman.measure.records import Probe, Records, RunFacts

TWO_HOSTS = {"ranks": 2, "hosts": ["a", "b"], "rank_hosts": [0, 1]}


def clock(ended: list[float], seconds: list[float]) -> Clock:
    return Clock(Records(RunFacts(), steps={"ended": np.array(ended), "seconds": np.array(seconds)}))


def between(made: Clock, start: float, end: float) -> tuple[float, float]:
    times = np.array([start]), np.array([end])
    return float(made.steps(*times)[0]), float(made.seconds(*times)[0])


def test_a_clock_counts_steps_and_their_seconds_and_no_pause() -> None:
    made = clock([12.0, 10.0, 20.0], [2.0, 2.0, 4.0])  # a pause from 12 to 16
    assert between(made, 8, 12) == pytest.approx((2, 4))
    assert between(made, 9, 18) == pytest.approx((2, 5))
    assert between(made, 12, 16) == pytest.approx((0, 0))
    assert between(made, 0, 99) == pytest.approx((3, 8))


def test_steps_of_unknown_end_or_length_are_no_part_of_a_clock() -> None:
    made = clock([10.0, np.nan, 14.0, 16.0], [2.0, 2.0, np.nan, 2.0])
    assert between(made, 0, 99) == pytest.approx((2, 4))
    assert not clock([np.nan], [1.0]) and not clock([1.0], [np.nan]) and not clock([1.0], [0.0])


def test_a_step_that_would_overlap_the_one_before_begins_at_its_end() -> None:
    assert between(clock([10.0, 11.0], [2.0, 3.0]), 0, 99) == pytest.approx((2, 3))


def test_what_was_not_counted_is_in_no_mean() -> None:
    assert mean_per_step(np.array([10.0, np.nan, 30.0]), np.array([1.0, 5.0, 3.0])) == pytest.approx(10.0)
    assert mean_per_step(np.array([np.nan]), np.array([5.0])) is None


def counted(names: dict[str, float], seconds: int = 60, **facts: object) -> Records:
    """Steps of a second each, and interfaces of two hosts that send so many bytes in each second."""
    rows = [(host, name, float(time)) for host in (0, 1) for name in names for time in range(seconds)]
    return Records(
        RunFacts.model_validate(TWO_HOSTS | facts),
        steps={
            "step": np.arange(1, seconds + 1),
            "ended": np.arange(1.0, seconds + 1),
            "seconds": np.ones(seconds),
        },
        nics={
            "host": np.array([host for host, _, _ in rows], dtype=float),
            "interface": np.array([name for _, name, _ in rows]),
            "time": np.array([time for _, _, time in rows]),
            "span": np.ones(len(rows)),
            "sent_bytes": np.array([names[name] for _, name, _ in rows]),
            "received_bytes": np.array([2 * names[name] for _, name, _ in rows]),
        },
    )


def test_gradients_leave_by_the_interface_that_is_named_or_else_by_the_busiest() -> None:
    names = {"lo": 900.0, "eth0": 10.0, "eth1": 70.0}
    for interfaces, expected in (([], 70.0), (["eth0", "eth0"], 10.0)):
        records = counted(names, gradient_interfaces=interfaces)
        rows = gradient_traffic(records)
        assert [(row.host, row.sent_bytes, row.received_bytes) for row in rows] == [
            (host, pytest.approx(expected), pytest.approx(2 * expected)) for host in (0, 1)
        ]
        assert all(row.carries_gradients == bool(interfaces) for row in rows)
        assert sent_per_step(records) == pytest.approx(expected)


def test_seconds_in_which_something_was_measured_say_nothing_of_steps() -> None:
    records = counted({"eth0": 10.0})
    burst = (records.nics["time"] >= 20) & (records.nics["time"] < 25)
    records.nics["sent_bytes"] = np.where(burst, 9e9, records.nics["sent_bytes"])
    records.probes = [Probe(time=20.5, attempt=1, step=20, kind="link", numbers={}, seconds=4.0)]
    assert sent_per_step(records) == pytest.approx(10.0)


def test_a_spell_holds_three_steps_of_the_busiest_host() -> None:
    records = counted({"eth0": 10.0})
    second = records.nics["host"] == 1
    records.nics["sent_bytes"] = np.where(second, 20.0 + records.nics["time"] // 3, 10.0)
    seconds, sent = bytes_of_steps(records)
    assert len(seconds) == 20
    assert seconds == pytest.approx(np.ones(20))
    assert sent == pytest.approx(20.0 + np.arange(20))


def test_a_rate_off_a_screen_speaks_where_nothing_was_counted() -> None:
    records = counted({"eth0": 10.0}, nic_bytes_per_second=500.0)
    assert sent_per_step(records) == pytest.approx(10.0)
    records.nics = Records(RunFacts()).nics
    records.steps["seconds"] = 2 * records.steps["seconds"]
    assert sent_per_step(records) == pytest.approx(1000.0)


def test_intervals_of_one_step_count_too_and_those_of_no_steps_do_not() -> None:
    records = counted({"eth0": 10.0})
    records.windows = Records(
        RunFacts(),
        windows={
            "rank": np.array([0.0, 0.0, 1.0, 1.0]),
            "first_step": np.array([1.0, 2.0, 1.0, 3.0]),
            "last_step": np.array([1.0, 2.0, 1.0, 2.0]),
            "sent_bytes": np.array([100.0, 300.0, 500.0, 9e9]),
            "received_bytes": np.array([1.0, 3.0, 5.0, 9e9]),
        },
    ).windows
    rows = gradient_traffic(records)
    assert [(row.host, row.sent_bytes, row.received_bytes) for row in rows] == [
        (0, 200.0, 2.0),
        (1, 500.0, 5.0),
    ]
    assert sent_per_step(records) == pytest.approx(350.0)
