"""What a run leaves behind, and that only one training at a time works on it."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DragomanError, UsageError
from dragoman.launch import membership
from dragoman.launch.membership import Invitation, Membership
from dragoman.measure import database
from dragoman.rundir import RunFolder
from dragoman.sync.exchange import Exchange
from dragoman.sync.failures import LostRank
from dragoman.train import build_exchange, loop, saver
from dragoman.train.step import Stepper
from tests import ranks
from tests.facts import lacking, only, raising
from tests.train import runs
from tests.train.conftest import Here
from tests.train.runs import Task


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


def test_a_second_training_of_a_run_is_refused_and_the_first_continues(here: Here, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = runs.arguments(here.task, run, "train.steps=100000", "evaluate.every=100000")
    with ranks.started("dragoman", words, 1) as (first,):
        runs.wait_until("a step", lambda: runs.reached(run, 1) or not first.process.is_alive())
        with raising(UsageError, f"{run}:", "--run"):
            here.train(run, "train.steps=100000", "evaluate.every=100000")
        step = max(runs.steps_in_log(run))
        runs.wait_until("another step", lambda: runs.reached(run, step + 1) or not first.process.is_alive())
        assert first.process.is_alive()


def test_a_rank_that_fails_still_completes_the_checkpoint_under_way(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process ends without waiting for threads."""
    write, update = saver.saved_state.write, Stepper.update

    def slow_write(*arguments: Any) -> Any:
        time.sleep(0.5)
        return write(*arguments)

    def failing_update(stepper: Stepper, *arguments: Any, **named: Any) -> Any:
        if stepper._state.step == 8:
            raise DragomanError("found something")
        return update(stepper, *arguments, **named)

    monkeypatch.setattr(saver.saved_state, "write", slow_write)
    monkeypatch.setattr(Stepper, "update", failing_update)
    with pytest.raises(DragomanError):
        here.train(tmp_path, "checkpoint.every=8", "evaluate.every=48")
    assert RunFolder(tmp_path).checkpoint_steps() == [8]


def test_every_checkpoint_is_recorded_with_the_time_of_its_writing(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path / "run", "train.stop_at=16", "checkpoint.every=8")
    events = database.read(RunFolder(tmp_path / "run").records).events
    saved = [event for event in events if event.kind == "checkpoint"]
    written = [event for event in events if event.kind == "writing"]
    assert [event.step for event in saved] == [event.step for event in written] == [8, 16]
    assert all(begun.time <= done.time for begun, done in zip(saved, written, strict=True))
    assert all(0 < event.seconds < 30 for event in written)


def test_a_run_that_fails_before_its_first_step_closes_what_it_opened(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise DragomanError("no exchange")

    monkeypatch.setattr(build_exchange, "build", fail)
    before = set(threading.enumerate())
    with pytest.raises(DragomanError, match="no exchange"):
        here.train(tmp_path)
    assert set(threading.enumerate()) <= before, "records and meters have threads"


def test_records_are_sent_at_every_interval_also_where_nothing_is_shown(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sent by all ranks together, and only rank 0 shows anything."""
    monkeypatch.setattr(loop, "_show", lambda *arguments: None)
    here.train(tmp_path, "train.steps=4", "measure.every=2")
    windows = database.read(RunFolder(tmp_path).records).windows
    assert windows["last_step"].tolist() == [2, 4]


def test_steps_that_end_before_the_warm_up_or_are_made_already_are_warned_of(
    here: Here, tmp_path: Path
) -> None:
    def warnings() -> list[str]:
        lines = (tmp_path / "log.txt").read_text().splitlines()
        return [line for line in lines if line.startswith("warning: ") and not lacking(line, "train.steps")]

    here.train(tmp_path, "train.steps=4", "train.warmup_steps=100")
    assert not lacking(only(warnings(), "train.warmup_steps"), 100, 4)
    here.train(tmp_path, "train.steps=2", "train.warmup_steps=1")
    assert not lacking(warnings()[-1], 2, 4)


class OfTwoWorlds(Membership):
    """A supervised rank that notes with which step it asks for a world."""

    is_supervised = True

    def __init__(self) -> None:
        self.steps: list[int] = []

    def join(self, step: int) -> Invitation:
        self.steps.append(step)
        return super().join(step)


def test_a_state_from_disk_is_no_state_before_all_ranks_have_its_weights(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.train(tmp_path, "train.steps=8")
    member, build, tries = OfTwoWorlds(), build_exchange.build, iter([True, False])

    def lost_at_first(*arguments: Any) -> Exchange:
        if next(tries):
            raise LostRank("gone")
        return build(*arguments)

    monkeypatch.setattr(membership, "of_this_process", lambda: member)
    monkeypatch.setattr(build_exchange, "build", lost_at_first)
    here.train(tmp_path, "train.steps=10")
    assert member.steps == [-1, -1]  # else ranks without the weights would pass for ranks that have them
    assert database.read(RunFolder(tmp_path).records).steps["step"].tolist() == list(range(1, 11))
