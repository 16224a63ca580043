"""Real runs with a known cause, kept as they were recorded: what is said of them stays right.

They come from the truth bench: `python benchmarks/truth.py --folder F`, then `python benchmarks/keep.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.keep import MOST_BYTES
from benchmarks.trainings import Outcome
from benchmarks.truth import SCENARIOS, wrong
from dragoman.explain.run import explain
from dragoman.measure import database

RUNS = sorted((Path(__file__).parents[1] / "runs").glob("*.db"))


def test_there_are_recorded_runs() -> None:
    assert {path.stem for path in RUNS} <= SCENARIOS.keys()
    assert len(RUNS) >= 4


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_the_known_cause_of_a_recorded_run_is_found(path: Path) -> None:
    records = database.read(path)
    outcome = Outcome(records, {finding.id: finding for finding in explain(records)})
    assert not wrong(SCENARIOS[path.stem], outcome)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_recorded_run_is_small_and_names_no_machine(path: Path) -> None:
    content = path.read_bytes()
    assert len(content) <= MOST_BYTES
    assert not any(word in content for word in (b"/tmp/", b"/home/", b"/root/", b"/work/"))
