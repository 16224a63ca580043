"""report/scored.py: what evaluate found for a run stands in its report, and says when it is out of date."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from dragoman.errors import RecordsError
from dragoman.measure import scored as saved
from dragoman.measure.scored import IntervalScore, Scored
from dragoman.report import scored, text, write
from dragoman.rundir import RunFolder
from tests.facts import lacking
from tests.report import build

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|bs:1000|seed:12345|version:2.6.0"
BLEU = IntervalScore(value=38.25, low=37.1, high=39.4, signature=SIGNATURE)


def entry(step: int, held_out: str = "test of data/mine") -> Scored:
    return Scored(step=step, held_out=held_out, sentences=1000, made="torch, beam 4", scores={"bleu": BLEU})


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run whose best is step 500, with scores of it."""
    run = RunFolder(tmp_path / "run")
    for step in (500, 700):
        run.checkpoint(step).mkdir(parents=True)
    run.best.symlink_to("checkpoints/step-00000500")
    saved.add(run.scores, entry(500))
    return run


def test_every_form_of_the_report_shows_the_scores_with_interval_and_signature(run: RunFolder) -> None:
    records, findings = build.rich(200), build.findings()
    write.write(records, findings, run.path)
    output = io.StringIO()
    text.show(records, findings, Console(width=80, file=output), scores=scored.find(run.path))
    terminal = output.getvalue()
    assert max(map(len, terminal.splitlines())) <= 80
    page, markdown = ((run.path / name).read_text() for name in ("report.html", "report.md"))
    for form in (terminal, page, markdown):
        assert "test of data/mine" in form
        assert not lacking(form, "BLEU 38.25", "37.10", "39.40")
    for form in (terminal, page):
        assert SIGNATURE in form
    assert json.loads((run.path / "findings.json").read_text())["scored"]["evaluations"][0]["step"] == 500


def test_scores_of_another_step_than_the_runs_model_are_out_of_date(run: RunFolder) -> None:
    def note() -> str:
        found = scored.find(run.path)
        assert found
        return found.note

    again = f"dragoman evaluate {run.path}"
    assert lacking(note(), "500", "700", again) == ["700", again]
    run.best.unlink()
    run.best.symlink_to("checkpoints/step-00000700")
    assert not lacking(note(), "700", again)
    saved.add(run.scores, entry(700))
    assert lacking(note(), "700", again) == [again]


def test_the_same_text_scored_again_replaces_its_scores(run: RunFolder) -> None:
    saved.add(run.scores, entry(500))
    saved.add(run.scores, entry(500, "wmt14"))
    assert [old.held_out for old in saved.load(run.scores)] == ["test of data/mine", "wmt14"]


@pytest.mark.parametrize("content", ["[]", "{}", '{"schema_version": 2, "evaluations": []}', "\0", "NaN"])
def test_damaged_scores_spoil_no_report_and_are_named(run: RunFolder, content: str) -> None:
    run.scores.write_text(content)
    with pytest.raises(RecordsError) as caught:
        saved.load(run.scores)
    assert caught.value.path == str(run.scores)
    found = scored.find(run.path)
    assert found and not found.rows
    write.write(build.rich(200), build.findings(), run.path)


def test_a_run_that_was_not_scored_says_nothing_of_it(tmp_path: Path) -> None:
    assert scored.find(tmp_path) is None
