"""What runs left behind: our records, and the logs of others."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import csv_runs
from dragoman.explain import compare
from dragoman.explain.run import explain
from dragoman.foreign import facts
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.launch import launcher
from dragoman.measure import database
from dragoman.measure import scored as measured
from dragoman.measure.records import Records
from dragoman.plan import observed
from dragoman.report import compare_text, page, planned, scored, summary, text, write
from dragoman.rundir import RunFolder
from tests.fuzz import seeds
from tests.fuzz.feeds import Opened, is_one_of_many


def reported(shared: Path, own: Path) -> Opened:
    """records.db, as `dragoman report` reads it; the page for some."""
    run = RunFolder(own)

    def feed(data: bytes) -> None:
        database.remove(run.records)
        run.records.write_bytes(data)
        records = database.read(run.records)
        findings = explain(records, price_per_hour=2.0)
        if is_one_of_many(data):
            write.write(records, findings, run.path)
        show(records, findings)

    return [seeds.records("slow-link-1"), seeds.records("converged")], feed


def launcher_of(path: Path) -> None:
    """launcher.json, as the commands that join and stop a run read it."""
    known = launcher.read(RunFolder(path.parent))
    assert known
    known.lives()
    str(launcher.being_trained(RunFolder(path.parent), known))


def compared(shared: Path, own: Path) -> Opened:
    """records.db, as `dragoman compare` and `dragoman plan --from` read it."""
    run = RunFolder(own)
    other = database.read(RunFolder(shared / "run").records)

    def feed(data: bytes) -> None:
        database.remove(run.records)
        run.records.write_bytes(data)
        comparison = compare.compare(other, database.read(run.records))
        comparison.model_dump_json(indent=2).encode()
        with contextlib.redirect_stdout(terminal()):
            compare_text.show(comparison)
        observed.observe(run.path)

    return [seeds.records("slow-link-1"), seeds.records("converged")], feed


def plan(shared: Path, own: Path) -> Opened:
    """plan.json beside the records of the run that was planned."""
    run = RunFolder(own / "run")
    shutil.copytree(shared / "run", run.path)
    records = database.read(run.records)
    findings = explain(records)

    def feed(data: bytes) -> None:
        run.plan.write_bytes(data)
        comparison = planned.compare(run.path, records, findings)
        write.json_text(records, findings, comparison).encode()
        text.show(records, findings[:1], Console(file=terminal(), highlight=False), comparison)

    return [run.plan.read_bytes()], feed


def scores(shared: Path, own: Path) -> Opened:
    """scores.json beside the records of the run that was scored."""
    run = RunFolder(own / "run")
    shutil.copytree(shared / "run", run.path)
    records = database.read(run.records)
    findings = explain(records)

    def feed(data: bytes) -> None:
        run.scores.write_bytes(data)
        measured.load(run.scores)
        found = scored.find(run.path)
        write.json_text(records, findings, scores=found).encode()
        text.show(records, findings[:1], Console(file=terminal(), highlight=False), scores=found)

    return [run.scores.read_bytes()], feed


def log(path: Path) -> None:
    made = diagnose([path], Given())
    show(made.records, made.findings)
    if is_one_of_many(path.read_bytes()):
        page.render(made.records, made.findings, {"files": made.file_kinds})


def rows_of(path: Path) -> None:
    for _, made in csv_runs.read(path, Given()):
        show(made.records, made.findings)


def given(path: Path) -> None:
    made = diagnose([], facts.load(path, {}))
    show(made.records, made.findings)


def show(records: Records, findings: Sequence[Any]) -> None:
    document = summary.findings_document(records, findings)
    json.dumps(document, ensure_ascii=False, allow_nan=False)
    text.show(records, findings, Console(file=terminal(), highlight=False))


def terminal() -> io.TextIOWrapper:
    """Takes what a terminal takes, and as strictly."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
