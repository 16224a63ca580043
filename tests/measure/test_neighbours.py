"""Who else uses the cores: real processes, one of them the run's own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.measure.meters import HostMeter
from dragoman.measure.neighbours import Neighbours, RunningProgram
from dragoman.measure.phases import Phases
from tests.gluttons import detached
from tests.measure.test_counters import on_one_core, spin


@contextmanager
def spinning(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


def named(programs: list[RunningProgram], name: str) -> float:
    return sum(program.cores for program in programs if program.name == name)


def test_another_program_is_named_with_the_cores_it_used(glutton: str) -> None:
    with detached(glutton):
        time.sleep(0.1)
        neighbours = Neighbours()
        time.sleep(1.0)
        programs = neighbours.busiest()
    assert 0.15 < named(programs, "glutton") < 1.1


def test_the_runs_own_processes_are_no_strangers(glutton: str) -> None:
    """A child of a rank, and another rank with what it started."""
    name = Path(glutton).name
    with spinning(glutton, "-c", "while :; do :; done"):
        neighbours = Neighbours()
        time.sleep(0.5)
        assert named(neighbours.busiest(), name) == 0
    with detached(glutton) as rank:
        neighbours = Neighbours([rank])
        time.sleep(0.5)
        assert named(neighbours.busiest(), name) == 0


def test_the_meter_notes_who_takes_the_core_that_a_rank_wants(glutton: str) -> None:
    with on_one_core() as core, detached(f"taskset -c {core} {glutton}"):
        meter = HostMeter("lo", Phases())
        spin(3.5)
        meter.close()
    taken = meter.take()["programs"]
    seen = [row for row in taken if meter.programs[int(row[2])] == "glutton"]
    assert seen, meter.programs
    _, span, _, cores = seen[0]
    assert span == pytest.approx(1.0, abs=0.5)
    assert 0.15 < cores < 1.1


def test_nobody_is_looked_for_while_ranks_get_the_cores_they_want(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr("dragoman.measure.meters.Neighbours", lambda *_: looked.append(1))
    meter = HostMeter("lo", Phases())
    time.sleep(2.3)  # this process wants no core
    meter.close()
    assert not looked
