"""`dragoman evaluate` as users call it."""

import json
from pathlib import Path

import pytest
import sacrebleu

from dragoman.data.store import DataSet
from dragoman.rundir import RunFolder
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
    assert system["made"].endswith("float32, beam 1, length penalty 0.6")
    expected = sacrebleu.corpus_bleu(system["translations"], [references]).score
    assert system["scores"]["bleu"]["value"] == pytest.approx(expected)
    assert set(system["scores"]) == {"bleu", "chrf", "ter"}


def test_two_models_are_compared_in_words(task: Task, unbroken: Unbroken) -> None:
    first, last = (RunFolder(unbroken(1)).checkpoint(step) for step in (8, 48))
    done = dragoman("evaluate", last, "--against", first, "--data", task.data, "--part", "dev", "--show", 1)
    assert done.returncode == 0, done.stderr
    assert f"{first} against {last}, the same sentences drawn for both" in done.stdout
    assert f"{last} is better" in done.stdout
    assert done.stdout.count("  line ") == 1
    assert "COMET was skipped" in done.stdout
    assert "unlike ways" not in done.stdout


def test_translations_made_in_unlike_ways_are_not_compared_without_saying_so(
    task: Task, unbroken: Unbroken, references: list[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.de"
    other.write_text("".join(f"{line}\n" for line in references))
    words = ("--data", task.data, "--part", "dev")
    done = dragoman("evaluate", unbroken(1), "--against", other, *words)
    assert done.returncode == 0, done.stderr
    assert "The translations were made in unlike ways" in done.stdout
    assert "read from a file" in done.stdout
    assert f"{other} is better" in done.stdout


def test_the_search_can_be_set_and_is_said(task: Task, unbroken: Unbroken) -> None:
    words = ("--data", task.data, "--part", "dev", "--beam", 3, "--length-penalty", 1, "--engine", "torch")
    done = dragoman("evaluate", unbroken(1), *words, "--show", 0)
    assert done.returncode == 0, done.stderr
    assert "(torch, float32, beam 3, length penalty 1)" in done.stdout


def test_a_file_with_too_few_translations_and_a_model_for_other_languages_are_refused(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    short = tmp_path / "short.de"
    short.write_text("eins\n")
    done = dragoman("evaluate", short, "--data", task.data, "--part", "dev")
    assert (done.returncode, "holds 1 lines" in done.stderr) == (1, True), done.stderr
    files = ("--source", short, "--reference", short, "--languages", "fi-sv")
    done = dragoman("evaluate", unbroken(1), *files)
    assert (done.returncode, "translates en-de, the held-out text is fi-sv" in done.stderr) == (2, True)
