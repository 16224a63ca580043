"""report/planned.py: a plan that was made for a run, against what the run took."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from dragoman.config import Training
from dragoman.explain.run import explain
from dragoman.measure import database
from dragoman.plan import document
from dragoman.plan.request import PlanRequest, plan
from dragoman.report import markdown, planned, summary, text, write
from dragoman.rundir import RunFolder
from tests.explain import build
from tests.explain.build import Run
from tests.facts import lacking

RUNS = Path(__file__).parents[1] / "runs"
PAST = PlanRequest(Training(), hosts=2, workers=1, run=None)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A recorded run over 100 Mbit/s, planned by one over a fast link."""
    past, run = tmp_path / "fast", tmp_path / "slow"
    past.mkdir()
    shutil.copy(RUNS / "fast-link.db", past / "records.db")
    settings = Training.model_validate(
        {
            "model": {"width": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feedforward": 512},
            "data": {"step": 2048, "microbatch": 512},
            "train": {"steps": 105},
        }
    )
    asked = replace(PAST, settings=settings, run=past, link="100mbit")
    document.save(plan(asked), RunFolder(run).plan)
    shutil.copy(RUNS / "slow-link-1.db", run / "records.db")
    return run


def compare(folder: Path) -> planned.PlannedAgainstActual | None:
    records = database.read(folder / "records.db")
    return planned.compare(folder, records, explain(records))


def test_each_part_stands_beside_what_was_planned(run: Path) -> None:
    comparison = compare(run)
    assert comparison
    parts = {part.name: part for part in comparison.parts}
    step = parts["step_seconds"]
    assert step.actual == pytest.approx(step.planned.value, rel=0.15)
    assert {"computing_seconds", "exchange_seconds", "training_seconds", "startup_seconds"} <= set(parts)
    assert parts["exchange_seconds"].actual == pytest.approx(parts["exchange_seconds"].planned.value, rel=0.3)
    assert lacking(comparison.note, "2 hosts", "1 rank", "1 host") == ["1 host"]


def test_a_run_that_stopped_early_is_held_against_its_share_of_the_plan(run: Path) -> None:
    comparison = compare(run)
    assert comparison
    steps = len(database.read(run / "records.db").steps["step"])
    assert steps < 105 and not lacking(comparison.note, 105, steps)
    training = next(part for part in comparison.parts if part.name == "training_seconds")
    assert training.actual == pytest.approx(training.planned.value, rel=0.2)


def test_every_form_of_the_report_shows_it(run: Path) -> None:
    records = database.read(run / "records.db")
    findings = explain(records)
    write.write(records, findings, run)
    comparison = compare(run)
    assert comparison
    cells = [cell for row in comparison.rows for cell in row]
    assert not lacking((run / "report.html").read_text(), *cells)
    assert not lacking((run / "report.md").read_text(), *cells)
    parts = json.loads((run / "findings.json").read_text())["planned"]["parts"]
    assert all(part["low"] <= part["planned"] <= part["high"] for part in parts)
    output = io.StringIO()
    text.show(records, findings, Console(width=120, file=output), comparison)
    assert not lacking(output.getvalue(), *cells)


def test_a_run_on_other_machines_is_not_passed_off_as_the_planned_one(run: Path) -> None:
    shutil.copy(RUNS / "compute-bound.db", run / "records.db")
    comparison = compare(run)
    assert comparison
    assert not lacking(comparison.note, "2 hosts", "1 rank", "1 host")


def test_a_run_that_went_on_elsewhere_is_held_against_the_placement_of_most_steps(run: Path) -> None:
    slow = Run(steps=400, exchange=1.0, link_bits_per_second=1e9)
    records = build.in_turn(slow, Run(steps=100, ranks=1, hosts=1, exchange=0.0))
    findings = explain(records)
    comparison = planned.compare(run, records, findings)
    assert comparison
    actual = {part.name: part.actual for part in comparison.parts}
    network = next(finding for finding in findings if finding.id == "network")
    assert actual["exchange_seconds"] == pytest.approx(1.0, rel=0.1)
    assert actual["exchange_seconds"] / actual["step_seconds"] == pytest.approx(
        network.numbers["exposed_share"], rel=0.1
    )
    assert not lacking(comparison.note, "4 ranks", "2 hosts")
    assert not lacking(summary.headline(records, findings), "4 ranks", "2 hosts")


def test_without_a_plan_nothing_is_reported_and_a_damaged_one_spoils_no_report(run: Path) -> None:
    RunFolder(run).plan.write_text("[]")
    records = database.read(run / "records.db")
    comparison = compare(run)
    assert comparison
    assert not comparison.rows
    write.write(records, explain(records), run)
    assert comparison.note.startswith("plan.json: ")
    damaged = (run / "report.md").read_text()
    assert markdown.escape(comparison.note) in damaged
    RunFolder(run).plan.unlink()
    assert compare(run) is None
    write.write(records, explain(records), run)
    assert (run / "report.md").read_text().count("\n## ") == damaged.count("\n## ") - 1
