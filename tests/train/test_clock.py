"""A wall clock that is set while a run is under way, or between two attempts: no duration is falsified."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from dragoman.explain.duration import explain
from dragoman.explain.finding import Finding
from dragoman.measure import database
from dragoman.measure.records import Records
from dragoman.rundir import RunFolder
from tests import ranks
from tests.facts import lacking
from tests.train import runs
from tests.train.runs import Task

HOUR, DAY = 3600.0, 86_400.0


def train(task: Task, run: Path, by: float, when: Path, *settings: str) -> float:
    """Trains with one rank whose wall clock is set; returns how long that took."""
    began = time.monotonic()
    ended = ranks.run("tests.train.set_clock", [by, when, *runs.arguments(task, run, *settings)], 1)
    assert ended.returncode == 0, ended.stderr
    return time.monotonic() - began


def explained(run: Path) -> tuple[Records, Finding]:
    records = database.read(RunFolder(run).records)
    return records, explain(records)


def check_parts(finding: Finding, most_seconds: float) -> None:
    numbers = finding.numbers
    assert 0 < numbers["wall_seconds"] < most_seconds
    names = ("training", "evaluation", "checkpoint", "startup", "restart", "other")
    parts = [numbers[f"{name}_seconds"] for name in names]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(numbers["wall_seconds"], abs=0.01)


@pytest.mark.parametrize("by", [-HOUR, DAY], ids=["back", "forward"])
def test_a_clock_set_under_way_is_reported_and_does_not_count(by: float, task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    took = train(task, run, by, RunFolder(run).checkpoint(24))
    records, finding = explained(run)
    check_parts(finding, took)
    assert finding.numbers["clock_jump_seconds"] == pytest.approx(by, abs=1)
    assert not lacking(finding.answer, "60 min" if by < 0 else "24 h")
    (attempt,) = records.attempts
    assert attempt.ended
    assert (np.diff(records.steps["ended"]) > 0).all()
    for table in (records.nics, records.hosts):
        assert (table["time"] >= attempt.started).all() and (table["time"] <= attempt.ended).all()
        assert (table["span"] < took).all()
    curves = EventAccumulator(str(RunFolder(run).tensorboard))
    curves.Reload()
    times = [point.wall_time for point in curves.Scalars("train_loss")]
    assert len(times) == runs.LAST and times == sorted(times) and times[-1] - times[0] < took


@pytest.mark.parametrize("by", [-HOUR, DAY], ids=["back", "forward"])
def test_a_clock_set_between_two_attempts_is_reported_and_does_not_count(
    by: float, task: Task, tmp_path: Path
) -> None:
    run, began = tmp_path / "run", time.monotonic()
    train(task, run, 0, run, "train.stop_at=16")
    train(task, run, by, run)  # from its start
    records, finding = explained(run)
    check_parts(finding, time.monotonic() - began)
    assert finding.numbers["attempts"] == 2
    assert finding.numbers["clock_jump_seconds"] == pytest.approx(by, abs=1)
    assert (np.diff(records.steps["ended"]) > 0).all()
    curves = EventAccumulator(str(RunFolder(run).tensorboard))
    curves.Reload()
    assert [point.step for point in curves.Scalars("train_loss")] == list(range(1, runs.LAST + 1))
