"""explain/run.py: every question is answered whatever was recorded, without torch, in what JSON can hold."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.explain import network, run
from dragoman.explain.finding import Finding, document
from dragoman.explain.questions import QUESTIONS
from dragoman.measure import database
from dragoman.measure.records import COLUMNS, EvaluationRow, Records, RunFacts, column
from tests.explain import build
from tests.facts import failed

RUNS: dict[str, Callable[[], Records]] = {
    "nothing wrong": build.records,
    "network": lambda: build.records(exchange=3.0),
    "straggler": lambda: build.records(slow_rank=1, slow_by=3.0),
    "one rank": lambda: build.records(ranks=1, hosts=1, exchange=0.0),
    "busy GPUs": lambda: build.records(gpu_watts=42.0),
    "short": lambda: build.records(steps=3),
    "evaluations only": lambda: build.evaluated(
        eval_loss=lambda s: 2 + 1000 / s, bleu=lambda s: 30 - 9000 / s
    ),
    "foreign log": build.foreign,
    "nothing": lambda: build.NOTHING,
}


def check(finding: Finding) -> None:
    assert finding.verdict in QUESTIONS[finding.id].verdicts
    assert finding.answer.endswith((".", ")"))
    assert (finding.verdict == "unknown") == (finding.confidence == "unknown")
    json.dumps(finding.numbers, allow_nan=False)


@pytest.mark.parametrize("name", RUNS)
def test_answers_come_in_the_order_of_the_questions(name: str) -> None:
    records = RUNS[name]()
    findings = run.explain(records, price_per_hour=1.5)
    assert [finding.id for finding in findings] == list(QUESTIONS)
    for finding in findings:
        check(finding)
    assert not failed(findings)
    json.dumps(document({}, findings), allow_nan=False)


def test_a_run_with_nothing_wrong_is_told_to_change_nothing() -> None:
    records = build.records(
        steps=2000,
        evaluate_every=100,
        eval_loss=lambda s: 1.8 + 3 * np.exp(-s / 250),
        sample_loss=lambda s: 1.7 + 3 * np.exp(-s / 250),
        bleu=lambda s: 30 - 30 * np.exp(-s / 250),
    )
    findings = {finding.id: finding for finding in run.explain(records)}
    assert {id: finding.advice for id, finding in findings.items() if finding.advice} == {}
    assert findings["convergence"].verdict == "converged"
    assert findings["overfitting"].verdict == "no"
    assert findings["device_utilisation"].verdict == "computing"
    assert findings["network"].verdict == "not_bottleneck"


def test_records_from_the_file_give_the_same_findings(tmp_path: Path) -> None:
    records = build.records(steps=60, exchange=0.4)
    file = database.RecordsFile(tmp_path / "records.db")
    file.write_facts(records.facts.model_dump())
    for table in COLUMNS:
        file.add(table, getattr(records, table))
    for table in ("attempts", "evaluations", "events", "probes"):
        for row in getattr(records, table):
            file.add_row(table, row)
    file.close()
    again = run.explain(database.read(tmp_path / "records.db"))
    assert [finding.verdict for finding in again] == [finding.verdict for finding in run.explain(records)]


def test_one_explainer_that_fails_does_not_take_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(records: Records) -> Finding:
        raise ZeroDivisionError("strange records")

    monkeypatch.setattr(network, "explain", broken)
    findings = {finding.id: finding for finding in run.explain(build.records(steps=30))}
    assert findings["network"].verdict == "unknown"
    assert failed(list(findings.values())) == [findings["network"].answer]
    assert "ZeroDivisionError: strange records" in findings["network"].answer
    assert findings["step_time"].verdict == "stated"


def test_explain_needs_no_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; sys.modules['scipy'] = None\n"
        "from dragoman.explain.run import explain\n"
        "from dragoman.measure.records import Records, RunFacts\n"
        "import dragoman.cost.step, dragoman.cost.flops\n"
        "print(len(explain(Records(RunFacts()))))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (str(len(QUESTIONS)), "")


# --- any records ------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.just(float("nan")),
    st.just(0.0),
    st.integers(-2, 50).map(float),
    st.floats(-1e3, 1e12).map(lambda x: round(x, 6)),
)


@st.composite
def tables(draw: st.DrawFn, name: str) -> dict[str, np.ndarray]:
    """A table of a few rows with some of its columns."""
    length = draw(st.integers(0, 12))
    columns = draw(st.lists(st.sampled_from([column(c) for c in COLUMNS[name]]), unique=True))
    rows = {c: draw(st.lists(NUMBERS, min_size=length, max_size=length)) for c in columns if c != "interface"}
    table = {c: np.array(values, dtype=np.float64) for c, values in rows.items()}
    if "interface" in columns:
        names = draw(st.lists(st.sampled_from(["lo", "eth0", ""]), min_size=length, max_size=length))
        table["interface"] = np.array(names, dtype=str)
    return table


@st.composite
def any_records(draw: st.DrawFn) -> Records:
    maybe = st.one_of(st.none(), NUMBERS)
    facts = RunFacts(
        ranks=draw(st.sampled_from([None, 1, 2, 4])),
        hosts=draw(st.sampled_from([[], ["a"], ["a", "b"]])),
        rank_hosts=draw(st.sampled_from([[], [0], [0, 1], [0, 0, 1, 1]])),
        gradient_bytes=draw(st.sampled_from([None, 0, 1000])),
        parameters=draw(st.sampled_from([None, 0, 250])),
        gradient_interfaces=draw(st.sampled_from([[], ["eth0"], ["eth0", "lo"]])),
        settings=draw(st.sampled_from([{}, {"train.steps": 10}, {"data.step": 5, "data.microbatch": 0}])),
        checkpoint_files=draw(st.sampled_from([[], [{}], [{"name": "a", "bytes": 0}]])),
        data_card=draw(st.sampled_from([{}, {"parts": None}, {"parts": {"train": {"pairs": 0}}}])),
        device=draw(st.sampled_from([None, "cpu"])),
        flops_per_step=draw(st.sampled_from([None, 0.0, 1e9])),
    )
    evaluations = [
        EvaluationRow(
            step=step,
            attempt=1,
            time=step,
            eval_loss=draw(maybe),
            train_sample_loss=draw(maybe),
            bleu=draw(maybe),
        )
        for step in range(draw(st.integers(0, 8)))
    ]
    names = ("steps", "windows", "nics", "hosts", "gpus", "lens")
    drawn: dict[str, Any] = {name: draw(tables(name)) for name in names}
    return Records(facts, evaluations=evaluations, **drawn)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_records())
def test_no_records_make_an_explainer_raise(records: Records) -> None:
    for question in QUESTIONS.values():
        check(run.explainer_of(question)(records))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_holes_in_good_records_make_no_explainer_raise(data: st.DataObject) -> None:
    records = build.records(steps=60, exchange=0.3, gpu_watts=100.0)
    for name in ("steps", "windows", "nics", "gpus", "lens"):
        table = getattr(records, name)
        for hole in data.draw(
            st.lists(st.sampled_from(sorted(set(table) - {"interface"})), unique=True, max_size=6)
        ):
            table[hole] = np.full(len(table[hole]), np.nan)
    for question in QUESTIONS.values():
        check(run.explainer_of(question)(records))
