"""`dragoman evaluate` as users call it."""

import json
import shutil
from pathlib import Path

import pytest
import sacrebleu

from dragoman.data.store import DataSet
from dragoman.measure import scored
from dragoman.rundir import RunFolder
from tests.facts import lacking, only
from tests.ranks import command as dragoman
from tests.train.conftest import Unbroken
from tests.train.runs import Task


@pytest.fixture
def references(task: Task) -> list[str]:
    return DataSet(task.data).parts["dev"].text("target")


def test_a_run_is_translated_and_scored_as_its_own_evaluations_were(
    task: Task, unbroken: Unbroken, references: list[str]
) -> None:
    done = dragoman("evaluate", unbroken(1), "--data", task.data, "--part", "dev", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (system,) = found["systems"]
    assert found["sentences"] == len(references)
    assert not lacking(system["made"], "float32", "beam 1", "0.6")
    expected = sacrebleu.corpus_bleu(system["translations"], [references]).score
    assert system["scores"]["bleu"]["value"] == pytest.approx(expected)
    assert set(system["scores"]) == {"bleu", "chrf", "ter"}


def test_two_models_are_compared_in_words(task: Task, unbroken: Unbroken) -> None:
    first, last = (RunFolder(unbroken(1)).checkpoint(step) for step in (8, 48))
    done = dragoman("evaluate", last, "--against", first, "--data", task.data, "--part", "dev", "--show", 1)
    assert done.returncode == 0, done.stderr
    (heading,) = [line for line in done.stdout.splitlines() if not lacking(line, first, last)]
    assert heading.index(str(first)) < heading.index(str(last)), "the difference is first less last"
    rows = [line for line in done.stdout.splitlines() if " p = " in line]
    assert [row.split()[0] for row in rows] == ["BLEU", "chrF", "TER"]
    assert not [row for row in rows if lacking(row, last)], "which is better"
    assert done.stdout.count("  line ") == 1
    only(done.stdout.splitlines(), "COMET", "unbabel-comet")


def test_translations_made_in_unlike_ways_are_not_compared_without_saying_so(
    task: Task, unbroken: Unbroken, references: list[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.de"
    other.write_text("".join(f"{line}\n" for line in references))
    words = ("--data", task.data, "--part", "dev")
    done = dragoman("evaluate", unbroken(1), "--against", other, *words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    titles = [line for line in lines if line.startswith((f"{unbroken(1)} (", f"{other} ("))]
    ways = [title.partition(" (")[2].removesuffix(")") for title in titles]
    assert len(set(ways)) == 2
    only([line for line in lines if line not in titles], *ways)
    assert not [line for line in lines if " p = " in line and lacking(line, other)], "which is better"


def test_the_search_can_be_set_and_is_reported(task: Task, unbroken: Unbroken) -> None:
    words = ("--data", task.data, "--part", "dev", "--beam", 3, "--length-penalty", 1, "--engine", "torch")
    done = dragoman("evaluate", unbroken(1), *words, "--show", 0)
    assert done.returncode == 0, done.stderr
    only(done.stdout.splitlines(), "torch", "float32", "beam 3", "length penalty 1")


def test_a_file_with_too_few_translations_and_a_model_for_other_languages_are_refused(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    short = tmp_path / "short.de"
    short.write_text("eins\n")
    done = dragoman("evaluate", short, "--data", task.data, "--part", "dev")
    assert (done.returncode, lacking(done.stderr, f"{short}:", 1, 60)) == (1, []), done.stderr
    files = ("--source", short, "--reference", short, "--languages", "fi-sv")
    done = dragoman("evaluate", unbroken(1), *files)
    assert (done.returncode, lacking(done.stderr, "en-de", "fi-sv")) == (2, []), done.stderr


def test_a_run_is_scored_on_the_data_it_was_trained_on_and_its_report_shows_the_scores(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    run = RunFolder(shutil.copytree(unbroken(1), tmp_path / "run", symlinks=True))
    run.scores.unlink(missing_ok=True)  # other tests score it too
    found = json.loads(dragoman("evaluate", run.path, "--json").said())
    assert found["held_out"] == f"dev of {task.data}"  # it has no test part
    (entry,) = scored.load(run.scores)
    assert (entry.step, entry.sentences) == (run.model_step(), found["sentences"])
    bleu = found["systems"][0]["scores"]["bleu"]
    assert entry.scores["bleu"].model_dump() == bleu
    said = json.loads(dragoman("report", run.path, "--json").said())["scored"]
    assert said["evaluations"][0]["scores"]["bleu"] == bleu
    assert lacking(said["note"], "dragoman evaluate"), "nothing to do again"


def test_without_a_run_the_text_must_be_named_and_other_data_are_not_taken_for_the_runs(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    run = RunFolder(shutil.copytree(unbroken(1), tmp_path / "run", symlinks=True))
    run.scores.unlink(missing_ok=True)  # other tests score it too
    facts = json.loads(run.provenance.read_text())
    for change, code in (({"data_fingerprint": "0"}, 1), ({"data": str(tmp_path / "gone")}, 2)):
        run.provenance.write_text(json.dumps(facts | change))
        done = dragoman("evaluate", run.path)
        assert (done.returncode, "--data DATA" in done.stderr) == (code, True), done.stderr
    (tmp_path / "other.de").write_text("eins\n")
    done = dragoman("evaluate", tmp_path / "other.de")
    assert (done.returncode, "--data DATA" in done.stderr) == (2, True), done.stderr
    assert not run.scores.exists()
