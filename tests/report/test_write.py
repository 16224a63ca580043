import json
from pathlib import Path

import pytest
from markupsafe import escape

from dragoman.explain.finding import Finding
from dragoman.explain.questions import QUESTIONS
from dragoman.explain.run import explain
from dragoman.measure.records import Attempt, Records, RunFacts
from dragoman.report import markdown, units
from dragoman.report.provenance import attempt_rows, moment
from dragoman.report.write import write
from tests.facts import failed
from tests.report import build


def test_three_files_say_the_same(tmp_path: Path) -> None:
    write(build.rich(200), build.findings(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["findings.json", "report.html", "report.md"]
    found = json.loads((tmp_path / "findings.json").read_text())
    page = (tmp_path / "report.html").read_text()
    for row in found["findings"]:
        assert f'id="{row["id"]}" class="answer" data-verdict="{row["verdict"]}"' in page
        for advice in row["advice"]:
            assert advice in page


def test_what_the_explainers_find_is_written_whole(tmp_path: Path) -> None:
    records = build.rich(400)
    findings = explain(records)
    assert not failed(findings)
    write(records, findings, tmp_path)
    page, written = ((tmp_path / name).read_text() for name in ("report.html", "report.md"))
    for finding in findings:
        assert str(escape(finding.answer)) in page
        assert markdown.escape(finding.answer) in written


def test_findings_parse_to_the_schema(tmp_path: Path) -> None:
    write(build.rich(200), build.findings(), tmp_path)
    found = json.loads((tmp_path / "findings.json").read_text())
    assert found["schema"] == 1
    assert found["run"]["name"] == "wmt16-base"
    assert found["run"]["recording_seconds"] == 7.2
    assert [row["id"] for row in found["findings"]] == list(QUESTIONS)
    for row in found["findings"]:
        finding = Finding(**{name: value for name, value in row.items() if name != "question"})
        assert row["question"] == finding.question
        assert finding.verdict in QUESTIONS[finding.id].verdicts


def test_what_is_not_finite_is_null(tmp_path: Path) -> None:
    findings = build.findings()
    findings[1].numbers = {"best_bleu": float("nan"), "curve": [[1, float("inf")]]}
    write(build.rich(200), findings, tmp_path)
    found = json.loads((tmp_path / "findings.json").read_text(), parse_constant=pytest.fail)
    assert found["findings"][1]["numbers"] == {"best_bleu": None, "curve": [[1, None]]}


def test_provenance_of_the_run_folder_is_shown(tmp_path: Path) -> None:
    (tmp_path / "provenance.json").write_text(
        json.dumps({"packages": {"torch": "2.6.1"}, "git_commit": "abc1"})
    )
    write(build.rich(200), build.findings(), tmp_path)
    for name in ("report.html", "report.md"):
        text = (tmp_path / name).read_text()
        assert "packages.torch" in text
        assert "2.6.1" in text


def test_text_that_is_no_unicode_is_written(tmp_path: Path) -> None:
    write(build.rich(200, name="caf\udce9"), build.findings(), tmp_path)
    assert "caf?" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_an_attempts_dates_are_those_that_its_wall_clock_showed() -> None:
    """The clock was an hour behind, was set while the first attempt ran, and a day ahead when it went on."""
    first = Attempt(number=0, started=1e9, ended=1e9 + 60, first_step=1, ranks=1, jumps_during=[3600])
    then = Attempt(number=1, started=1e9 + 120, first_step=9, ranks=1, jump_before=86_400)
    rows = attempt_rows(Records(RunFacts(), [first, then]))
    assert [(row[1], row[4]) for row in rows] == [
        (moment(1e9), moment(1e9 + 3660)),
        (moment(1e9 + 120 + 3600 + 86_400), units.NOT_KNOWN),
    ]
