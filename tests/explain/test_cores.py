"""explain/cores.py: who had the cores while ranks waited, and what the waiting cost."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain.cores import Cores, CoreUser, cause, cores, numbers, programs
from dragoman.explain.step_breakdown import step_parts
from dragoman.measure.records import Records
from tests.explain import build
from tests.facts import lacking


def looked_at(*rows: tuple[float, float, float, str, float], hosts: int = 2) -> Records:
    """Rows of host, time, span, program and cores."""
    records = build.records(hosts=hosts, ranks=2 * hosts, counted_cores=[0.5] * 2 * hosts)
    names = ("host", "time", "span", "name", "cores")
    records.programs = {
        name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    return records


def found(records: Records) -> Cores:
    parts = step_parts(records)
    assert parts
    made = cores(records, parts)
    assert made
    return made


def test_a_programs_cores_are_a_mean_over_all_looks_at_its_host() -> None:
    """Seen in one look of a second and not in the other, of three."""
    records = looked_at(
        (0, 10.0, 1.0, "burn", 2.0),
        (0, 20.0, 3.0, "cron", 1.0),
        (1, 10.0, 1.0, "burn", 3.0),
        (1, 10.0, 1.0, "x", 1.0),
    )
    assert programs(records) == [
        CoreUser("burn", 3.0, "host1"),
        CoreUser("x", 1.0, "host1"),
        CoreUser("cron", 0.75, "host0"),
    ], "the three busiest"
    records.facts.hosts = ["alone"]
    assert {program.host for program in programs(records)} == {None}


def test_rows_without_cores_or_time_are_no_look() -> None:
    records = looked_at(
        (0, 10.0, 1.0, "burn", 2.0),
        (0, 20.0, 1.0, "burn", np.nan),
        (0, 30.0, 0.0, "burn", 5.0),
        (1, 10.0, 1.0, "y", 1.0),
    )
    assert programs(records) == [CoreUser("burn", 2.0, "host0"), CoreUser("y", 1.0, "host1")]


@pytest.mark.parametrize(("used", "count"), [(0.04, 0), (0.06, 1)])
def test_a_program_that_used_a_twentieth_of_a_core_is_named(used: float, count: int) -> None:
    assert len(programs(looked_at((0, 10.0, 1.0, "burn", used)))) == count


@pytest.mark.parametrize(("share", "is_said"), [(0.04, False), (0.06, True)])
def test_a_twentieth_that_was_stolen_or_held_back_is_reported(share: float, is_said: bool) -> None:
    for name in ("stolen_share", "throttled_share"):
        records = build.records(counted_cores=[0.5] * 4)
        records.hosts = {**records.hosts, name: np.array([share])}
        assert (not lacking(cause(records), "6%")) == is_said


def test_hosts_lose_what_the_one_loses_that_loses_least() -> None:
    made = found(build.records(hosts=3, ranks=6, counted_cores=[0.5, 0.5, 0.8, 0.6, 0.4, 0.4], jitter=0.0))
    assert made.share == pytest.approx(3.2 / 6)
    assert made.waited == pytest.approx((1 - 3.2 / 6) * 0.95)
    assert made.lost == pytest.approx(0.3 * 0.95), "the second host's ranks wait 20 and 40 %"
    assert made.behind == {}


def test_a_fourth_of_what_a_machine_ran_was_stolen_from_it() -> None:
    records = build.records(hosts=1, counted_cores=[0.8] * 4)
    records.hosts = {**records.hosts, "cpu_share": np.array([0.8]), "stolen_share": np.array([0.2])}
    assert found(records).share == pytest.approx(0.8 * 0.75)
    records.hosts["stolen_share"] = np.array([0.9])
    assert found(records).share == 0


def test_cores_that_nobody_counted_are_not_known() -> None:
    records = build.records()
    parts = step_parts(records)
    assert parts and cores(records, parts) is None
    assert numbers(records, parts, None) == {}
