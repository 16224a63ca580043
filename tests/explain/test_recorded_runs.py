"""Real runs with a known cause, kept as they were recorded: what is said of them stays right.

`python benchmarks/keep.py` records them.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.keep import MOST_BYTES
from benchmarks.scenarios import SCENARIOS
from benchmarks.trainings import explained
from benchmarks.truth import wrong
from dragoman.measure import database

RUNS = sorted((Path(__file__).parents[1] / "runs").glob("*.db"))


def test_every_kind_of_cause_is_among_the_recorded_runs() -> None:
    recorded = {path.stem for path in RUNS}
    assert recorded <= SCENARIOS.keys()
    assert recorded >= {
        *("compute-bound", "fast-link", "slow-link-1", "slow-host", "other-traffic", "slow-data"),
        *(
            "frequent-evaluation",
            "slow-disk-1.5",
            "link-slows-down",
            "overfitting",
            "converged",
            "too-short",
            "diverged",
        ),
    }


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_the_known_cause_of_a_recorded_run_is_found(path: Path) -> None:
    assert not wrong(SCENARIOS[path.stem], explained(database.read(path)))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_recorded_run_is_small_and_names_no_machine(path: Path) -> None:
    assert path.stat().st_size <= MOST_BYTES
    with closing(sqlite3.connect(path)) as kept:
        written = "\n".join(kept.iterdump())  # as text: a float may hold any byte
    assert not re.search(r"[\"']/\w", written), "a path from the root of somebody's machine"


@pytest.mark.parametrize(("name", "is_judged"), [("slow-link-1", True), ("link-slows-down", False)])
def test_a_rate_from_before_a_link_slowed_down_predicts_nothing_of_a_faster_one(
    name: str, is_judged: bool
) -> None:
    findings = explained(database.read(RUNS[0].with_name(f"{name}.db")))
    assert ("faster_link_speedup" in findings.findings["step_network"].numbers) == is_judged
