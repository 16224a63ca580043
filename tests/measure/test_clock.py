"""measure/clock.py: how times of several attempts, machines and boots come to stand on one time line."""

from __future__ import annotations

import time

import psutil
import pytest

from dragoman.measure import clock
from dragoman.measure.clock import RunClock, since_last
from dragoman.measure.records import Attempt

NOW = 1_700_000_000.0  # by the wall clock of these tests
UPTIME = 5000.0


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Clocks that stand still and can be set."""
    now = {"wall": NOW, "uptime": UPTIME}
    monkeypatch.setattr(time, "time", lambda: now["wall"])
    monkeypatch.setattr(clock, "seconds", lambda: now["uptime"])
    monkeypatch.setattr(clock, "boot", lambda: "this boot")
    return now


def attempt(started: float, boot: str, **others: object) -> Attempt:
    return Attempt.model_validate(
        {"number": 0, "started": started, "first_step": 1, "ranks": 1, "boot": boot, **others}
    )


def test_a_first_attempt_has_the_times_of_the_wall_clock() -> None:
    shift, jump = since_last([], -float("inf"), UPTIME)
    assert (shift, jump) == (0, 0)
    assert RunClock(shift).now() == NOW


def test_a_jump_is_noticed_once_and_moves_nothing(clocks: dict[str, float]) -> None:
    run = RunClock()
    clocks["uptime"] += 10
    clocks["wall"] += 10 - 3600
    assert run.now() == NOW + 10
    assert run.jump() == -3600
    assert run.jump() == 0


def test_small_corrections_are_no_jumps(clocks: dict[str, float]) -> None:
    run = RunClock()
    clocks["wall"] += 1
    assert run.jump() == 0


@pytest.mark.parametrize("set_by", [-3600.0, 86_400.0])
def test_on_the_same_boot_a_pause_is_exact_whatever_the_wall_clock_says(set_by: float) -> None:
    """The last attempt's rows end 40 s ago."""
    offset = NOW - set_by - UPTIME  # as it was before somebody set the clock
    before = attempt(offset + 100, "this boot", clock_offset=offset)
    shift, jump = since_last([before], offset + UPTIME - 40, UPTIME)
    assert jump == pytest.approx(set_by)
    assert RunClock(shift).now() - (offset + UPTIME - 40) == pytest.approx(40)


def test_on_another_boot_the_pause_is_that_of_the_wall_clock() -> None:
    before = attempt(NOW - 7000, "another boot", clock_offset=1.0)
    assert since_last([before], NOW - 3 * 86_400, UPTIME) == (0, 0)


def test_a_jump_during_the_attempt_before_is_not_counted_as_a_pause() -> None:
    """Its clock was a day behind until it was set; its rows end 30 s ago."""
    before = attempt(NOW - 86_400 - 500, "another boot", clock_offset=1.0, jumps_during=[86_400.0])
    shift, jump = since_last([before], NOW - 86_400 - 30, UPTIME)
    assert jump == 0
    assert RunClock(shift).now() == pytest.approx(NOW - 86_400)


@pytest.mark.parametrize("boot", ["another boot", ""])
def test_an_attempt_that_begins_before_the_last_one_ended_follows_at_once(boot: str) -> None:
    before = attempt(NOW + 3000, boot)
    shift, jump = since_last([before], NOW + 3600, UPTIME)
    assert RunClock(shift).now() == pytest.approx(NOW + 3600)
    assert jump == pytest.approx(-3600)


def test_a_process_knows_when_it_began() -> None:
    by_psutil = psutil.Process().create_time() - psutil.boot_time()
    assert clock.process_began() == pytest.approx(by_psutil, abs=1.1)
