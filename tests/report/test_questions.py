"""A question more is one row and its explainer: every form of the report then has the answer."""

import io
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from dragoman.explain.finding import Finding
from dragoman.explain.questions import QUESTIONS, UNKNOWN, Question, Verdict
from dragoman.explain.run import explain
from dragoman.measure.records import Records
from dragoman.report import charts, summary, text
from dragoman.report.charts.figure import Missing
from dragoman.report.write import write
from tests.report import build

ROW = Question(
    wording="Did anybody watch?",
    explainer="watchers.explain",
    verdicts={"watched": Verdict("fair", "somebody looked"), "unknown": UNKNOWN},
    charts=("watching.glances", "quality.loss"),
    key_numbers=("most", "visits"),
    units={"visits": "looks", "most": "share"},
    in_headline=True,
)


def watchers(records: Records) -> Finding:
    return Finding(
        id="watchers",
        verdict="watched",
        answer=f"Yes: somebody looked at {records.facts.name}.",
        numbers={"visits": 12, "most": 0.25},
        evidence=["visits: counted"],
        advice=["look less often"],
    )


def glances(records: Records, finding: Finding) -> Missing:
    return Missing("Glances", "no eye was open")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table with one row more, whose explainer and new kind of chart are files of their own."""
    monkeypatch.setitem(QUESTIONS, "watchers", ROW)
    explainer, chart = ModuleType("dragoman.explain.watchers"), ModuleType("dragoman.report.charts.watching")
    explainer.explain, chart.glances = watchers, glances
    for module in (explainer, chart):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("asked")
def test_a_question_more_is_answered_in_every_form_of_the_report(tmp_path: Path) -> None:
    records = build.rich(200)
    findings = explain(records)
    write(records, findings, tmp_path)

    found = json.loads((tmp_path / "findings.json").read_text())
    assert [row["id"] for row in found["findings"]] == list(QUESTIONS)
    assert found["findings"][-1] == {
        "id": "watchers",
        "question": "Did anybody watch?",
        "verdict": "watched",
        "answer": "Yes: somebody looked at wmt16-base.",
        "numbers": {"visits": 12, "most": 0.25},
        "evidence": ["visits: counted"],
        "confidence": "measured",
        "advice": ["look less often"],
    }
    assert found["run"]["summary"].endswith("somebody looked")

    number = len(QUESTIONS)
    printed = io.StringIO()
    text.show(records, findings, Console(file=printed, width=80, highlight=False))
    assert f"{number}. Did anybody watch?  [somebody looked]" in printed.getvalue()
    assert "Yes: somebody looked at wmt16-base." in printed.getvalue()
    assert "most 25% · visits 12 looks" in printed.getvalue()
    assert "Try: look less often" in printed.getvalue()

    written = (tmp_path / "report.md").read_text()
    assert f"## {number}. Did anybody watch?\n\n**somebody looked** (measured)" in written
    assert "| visits | 12 looks |" in written

    page = (tmp_path / "report.html").read_text()
    assert 'id="watchers" class="answer" data-verdict="watched"' in page
    assert '<span class="badge fair">somebody looked</span>' in page
    assert 'id="chart-watchers-1"' in page, "a chart of a known kind"
    assert "No chart “Glances”: no eye was open." in page, "a chart of a new kind"


def test_every_chart_that_a_row_names_exists() -> None:
    for finding in build.findings():
        assert len(charts.of(build.empty(), finding)) == len(QUESTIONS[finding.id].charts)


def test_every_key_number_of_a_row_is_written_where_it_is_known() -> None:
    for id, question in QUESTIONS.items():
        numbers = dict.fromkeys(question.key_numbers, 0.5)
        verdict = next(iter(question.verdicts))
        shown = summary.key_numbers(Finding(id=id, verdict=verdict, answer="Yes.", numbers=numbers))
        assert len(shown) == len(question.key_numbers)
