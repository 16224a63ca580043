"""What is known to be wrong is said before a rank is started."""

import json
import os
import shutil
from pathlib import Path

import pytest

from dragoman.errors import DataError, DataSetError, UsageError
from dragoman.measure import database
from dragoman.rundir import RunFolder
from dragoman.train.run import check
from tests import ranks
from tests.facts import raising
from tests.train import runs
from tests.train.conftest import Here
from tests.train.runs import Task


def test_a_data_set_without_held_out_text_is_refused_with_advice(here: Here, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(here.task.data, data)
    card = json.loads((data / "card.json").read_text())
    del card["parts"]["dev"]
    (data / "card.json").write_text(json.dumps(card))
    with raising(DataError, f"{data}:", "--dev"):
        check(here.job(tmp_path / "run", data=data))


def test_a_token_that_is_not_in_the_vocabulary_is_found_before_a_rank_is_started(
    here: Here, tmp_path: Path
) -> None:
    data = shutil.copytree(here.task.data, tmp_path / "data")
    with open(data / "train" / "target.tokens", "r+b") as file:
        file.write(b"\xff\xff")
    with raising(DataSetError, f"{data / 'train' / 'target.tokens'}:", "65,535"):
        check(here.job(tmp_path / "run", data=data))


@pytest.mark.parametrize("name", ["file", "file/run"])
def test_a_run_folder_that_is_a_file_is_wrong_use(here: Here, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with raising(UsageError, f"{tmp_path / 'file'}:"):
        check(here.job(tmp_path / name))


def test_a_place_that_may_not_be_written_is_wrong_use(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(path))  # None: no
    with raising(UsageError, f"{tmp_path}:"):
        check(here.job(tmp_path / "new" / "run"))
    assert asked == [tmp_path]  # the nearest folder that exists


def test_checking_writes_nothing(here: Here, tmp_path: Path) -> None:
    check(here.job(tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []


def test_a_new_run_leaves_its_config_and_where_it_came_from(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, "train.steps=1")
    folder = RunFolder(tmp_path)
    assert "steps = 1" in folder.config.read_text()
    facts = json.loads(folder.provenance.read_text())
    assert (facts["ranks"], facts["device"]) == (1, "cpu")
    assert facts["data_fingerprint"] == json.loads((here.task.data / "card.json").read_text())["fingerprint"]
    assert {"torch", "sacrebleu"} <= facts["packages"].keys()


def test_a_run_leaves_nothing_in_the_temporary_folder(task: Task, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    environment = runs.environment(TMPDIR=str(tmp_path / "tmp"))
    with runs.started_training(task, tmp_path / "run", "train.steps=2", env=environment) as process:
        _, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert process.returncode == 0, stderr
    assert not list((tmp_path / "tmp").iterdir())


def test_a_second_training_of_a_run_is_refused_and_the_first_goes_on(here: Here, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = runs.arguments(here.task, run, "train.steps=100000", "evaluate.every=100000")
    with ranks.started("dragoman", words, 1) as (first,):
        runs.wait_until("a step", lambda: runs.reached(run, 1) or not first.process.is_alive())
        with raising(UsageError, f"{run}:", "--run"):
            here.train(run, "train.steps=100000", "evaluate.every=100000")
        step = max(runs.steps_in_log(run))
        runs.wait_until("another step", lambda: runs.reached(run, step + 1) or not first.process.is_alive())
        assert first.process.is_alive()


def test_every_checkpoint_is_recorded_with_the_time_of_its_writing(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path / "run", "train.stop_at=16", "checkpoint.every=8")
    events = database.read(RunFolder(tmp_path / "run").records).events
    saved = [event for event in events if event.kind == "checkpoint"]
    written = [event for event in events if event.kind == "writing"]
    assert [event.step for event in saved] == [event.step for event in written] == [8, 16]
    assert all(begun.time <= done.time for begun, done in zip(saved, written, strict=True))
    assert all(0 < event.seconds < 30 for event in written)
