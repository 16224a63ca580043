"""Going on: what may change, what may not, and that the result is that of a run never stopped."""

import json
import shutil
from pathlib import Path

import pytest

from dragoman import atomic
from dragoman.errors import ConfigError, DataError
from dragoman.measure import database
from dragoman.rundir import RunFolder
from dragoman.train.stopping import StopReason
from tests.facts import lacking, only, raising
from tests.train import runs
from tests.train.conftest import Here, Made, Unbroken
from tests.train.runs import Task

SHORT = ("train.steps=6", "checkpoint.every=2", "evaluate.every=3")


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_a_run_in_pieces_ends_with_the_bytes_of_one_in_one_piece(
    here: Here, tmp_path: Path, optimizer: str
) -> None:
    settings = (*SHORT, f"train.optimizer={optimizer}")
    here.train(tmp_path / "whole", *settings)
    for steps in (1, 3, 4, 6):
        here.train(tmp_path / "pieces", *settings, f"train.steps={steps}")
    assert runs.trained(tmp_path / "pieces", 6) == runs.trained(tmp_path / "whole", 6)


def test_a_finished_run_says_so_again_and_changes_no_checkpoint(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, *SHORT)
    before = runs.snapshot(tmp_path / "checkpoints")
    recorded = database.read(RunFolder(tmp_path).records)
    assert here.train(tmp_path, *SHORT) == StopReason.FINISHED
    assert runs.snapshot(tmp_path / "checkpoints") == before
    again = database.read(RunFolder(tmp_path).records)
    assert again.attempts == recorded.attempts, "the run took as long as it took, whoever looks again"
    assert again.facts == recorded.facts
    ends = [line for line in runs.log(tmp_path).splitlines() if not lacking(line, "6 steps")]
    assert len(ends) == 2 and ends[0] == ends[1]


def test_a_run_killed_between_its_last_save_and_what_follows_it_makes_up_for_it(
    here: Here, tmp_path: Path
) -> None:
    settings = (*SHORT, "evaluate.metric=loss", "checkpoint.keep_last=1")
    here.train(tmp_path, *SHORT, "evaluate.metric=loss", "train.steps=3")
    run = RunFolder(tmp_path)
    assert run.best.resolve() == run.checkpoint(3)
    shutil.copytree(run.checkpoint(3), tmp_path / "kept")
    here.train(tmp_path, *settings)
    assert run.best.resolve() == run.checkpoint(6)
    (tmp_path / "kept").rename(run.checkpoint(3))  # as it is when the last checkpoint has just appeared
    atomic.link(run.best, "checkpoints/step-00000003")
    (tmp_path / "best.unfinished").symlink_to("checkpoints/step-00000006")
    assert here.train(tmp_path, *settings) == StopReason.FINISHED
    assert run.best.resolve() == run.checkpoint(6)
    assert run.checkpoint_steps() == [6]
    assert not (tmp_path / "best.unfinished").is_symlink()


def test_a_run_stopped_at_an_evaluation_makes_up_for_it(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path / "whole", *SHORT)
    here.train(tmp_path / "pieces", *SHORT, "train.stop_at=3")
    here.train(tmp_path / "pieces", *SHORT)
    whole, pieces = (RunFolder(tmp_path / name) for name in ("whole", "pieces"))
    scores = [
        [(row.step, row.eval_loss, row.bleu) for row in database.read(folder.records).evaluations]
        for folder in (whole, pieces)
    ]
    assert scores[0] == scores[1] and len(scores[0]) == 2
    assert whole.best.readlink() == pieces.best.readlink()


def test_a_run_that_was_stopped_is_finished_by_asking_for_no_more_steps(here: Here, tmp_path: Path) -> None:
    """Nothing is left to do, but the records still say that it did not end by itself."""
    assert here.train(tmp_path, *SHORT, "train.stop_at=4") == StopReason.STOPPED
    assert here.train(tmp_path, *SHORT, "train.steps=4") == StopReason.FINISHED
    attempts = database.read(RunFolder(tmp_path).records).attempts
    assert [attempt.reason for attempt in attempts] == ["stopped", "finished"]


@pytest.mark.parametrize(
    "setting",
    [
        "model.width=64",
        "model.dropout=0.2",
        "data.step=256",
        "data.microbatch=64",
        "data.unit=pairs",
        "train.seed=2",
        "train.optimizer=adamw",
    ],
)
def test_a_change_that_makes_another_run_is_refused(here: Here, tmp_path: Path, setting: str) -> None:
    folder = RunFolder(tmp_path)
    here.train(tmp_path, "train.steps=1")
    before = runs.snapshot(tmp_path)
    key, _, value = setting.partition("=")
    with raising(ConfigError, key, value):
        here.train(tmp_path, "train.steps=1", setting)
    assert runs.snapshot(tmp_path) == before
    assert folder.checkpoint_steps() == [1]


def test_a_change_that_keeps_the_run_is_shown_and_made(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, "train.steps=2")
    here.train(tmp_path, "train.steps=3", "data.split=2", "train.rate=0.001")
    lines = runs.log(tmp_path).splitlines()
    only(lines, "train.steps", 3, 2)
    only(lines, "data.split", 2, 1)
    only(lines, "train.rate", "0.001", "0.003")
    assert runs.resumed_at(tmp_path) == [2]
    assert "split = 2" in RunFolder(tmp_path).config.read_text()


def test_another_data_set_is_refused(here: Here, made_once: Made, tmp_path: Path) -> None:
    other = made_once("reverse-of-another-seed", lambda folder: runs.make_task(folder, seed=2)) / "data"
    here.train(tmp_path, "train.steps=1")
    before = runs.snapshot(tmp_path)
    known, given = (
        json.loads((data / "card.json").read_text())["fingerprint"][:16] for data in (here.task.data, other)
    )
    with raising(DataError, f"{tmp_path}:", known, given, "--run"):
        here.train(tmp_path, "train.steps=2", data=other)
    assert runs.snapshot(tmp_path) == before


def test_refusal_is_exit_code_2_and_the_run_stays_as_it_was(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    run = runs.copy_stopped_at(unbroken(1), tmp_path / "run", 16)
    before = runs.snapshot(run)
    result = runs.train(task, run, "train.seed=2", workers=2)
    assert result.returncode == 2
    assert not lacking(result.stderr, "train.seed", 1, 2, "--run")
    assert runs.snapshot(run) == before
