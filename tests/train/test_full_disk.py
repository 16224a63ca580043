"""A full disk: a small tmpfs as the run folder."""

import contextlib
import errno
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.checkpoint import saved_state
from dragoman.errors import DragomanError
from dragoman.rundir import RunFolder
from dragoman.train.saver import FolderSaver, main_saver
from tests.facts import lacking, raising
from tests.train import killed_saves, runs
from tests.train.conftest import Here
from tests.train.runs import Task


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """8 MB: a checkpoint of the task takes 0.3."""
    with runs.disk(tmp_path, "8m") as disk:
        yield disk


def fill(folder: Path, leaving: int) -> Path:
    """Takes all the room but so many bytes; a training may be writing at the same time."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while (free := _free(folder) - leaving) > 0:
            file.write(bytes(free))
    return filler


def _free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


# Seen before writing, or in the middle of the checkpoint that was being written at that moment.
NO_ROOM = re.compile(rf"error: .*(?:\b1 MB\b.*\b0 MB\b|{os.strerror(errno.ENOSPC)})")


def sound_checkpoints(run: Path) -> list[int]:
    folder = RunFolder(run)
    for step in folder.checkpoint_steps():
        saved_state.verify(folder.checkpoint(step))
    return folder.checkpoint_steps()


@pytest.mark.parametrize("mode", ["allreduce", "sharded"])
def test_a_full_disk_stops_all_ranks_with_a_message_and_the_run_continues_with_room(
    task: Task, small_disk: Path, mode: str
) -> None:
    run, mode = small_disk / "run", f"sync.mode={mode}"
    with runs.started_training(task, run, "train.steps=2000", mode, workers=2) as process:
        runs.wait_until("a checkpoint", RunFolder(run).checkpoint_steps, process)
        filler = fill(small_disk, leaving=0)  # not even for a line in the log
        stdout, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert process.returncode == 1
    kept = sound_checkpoints(run)
    assert kept
    assert NO_ROOM.search(stderr)
    assert not lacking(stderr, f"step {kept[-1]}")
    assert "dragoman train" not in stdout, "no command to go on, as after a stop"
    assert stderr.count("error:") == 1, stderr
    assert len(list(RunFolder(run).checkpoints.iterdir())) == len(kept)  # nothing half written
    filler.unlink()
    result = runs.train(task, run, f"train.steps={kept[-1] + 2}", workers=2)
    assert result.returncode == 0, result.stderr
    assert runs.resumed_at(run)[-1] == kept[-1]


def test_a_disk_that_fills_up_in_the_middle_of_a_checkpoint_leaves_no_part_of_it(
    here: Here, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_disk / "run"
    here.train(run, "train.steps=8")

    def fill_after_looking(self: FolderSaver, *rest: object) -> str:
        fill(small_disk, leaving=150_000)  # model.safetensors has room, optimizer.safetensors has not
        return ""

    monkeypatch.setattr(FolderSaver, "_lacking_space", fill_after_looking)
    with raising(DragomanError, os.strerror(errno.ENOSPC), "step 8"):
        here.train(run, "train.steps=32")
    assert sound_checkpoints(run) == [8]
    assert [path.name for path in RunFolder(run).checkpoints.iterdir()] == ["step-00000008"]
    assert "dragoman train" not in runs.log(run)


def test_wherever_in_a_checkpoint_the_room_ends_the_one_before_is_intact_and_no_part_stays(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderSaver, "_lacking_space", lambda *_: "")  # it looked before the room was taken
    run, state = RunFolder(small_disk), killed_saves.new_state()
    killed_saves.advance(state)

    def save() -> FolderSaver:
        saver = main_saver(run, killed_saves.VOCABULARY, killed_saves.WORLD, killed_saves.FINGERPRINT)
        saver.save(state)
        saver.wait()
        return saver

    assert not save().failure
    size = sum(path.stat().st_size for path in run.checkpoint(1).iterdir())
    killed_saves.advance(state)
    page, parts = os.sysconf("SC_PAGE_SIZE"), 12
    # the last ones leave room for all but state.json and config.toml, or for all but the manifest
    rooms = [size * part // parts for part in range(parts)] + [size - count * page for count in range(4)]
    for room in rooms:
        filler = fill(small_disk, leaving=room)
        failure = save().failure
        filler.unlink()
        assert failure, f"{room} bytes were enough"
        assert not lacking(failure.what, os.strerror(errno.ENOSPC), "step 1")
        assert sound_checkpoints(small_disk) == [1]
        assert killed_saves.leftovers(run) == []
        killed_saves.check(run.best.resolve())
    assert not save().failure
    assert sound_checkpoints(small_disk) == [1, 2]


def test_a_full_disk_has_room_again_for_those_who_keep_fewer_checkpoints(
    here: Here, small_disk: Path
) -> None:
    run = small_disk / "run"
    here.train(run, "train.steps=8", "checkpoint.every=1", "evaluate.metric=loss")
    fill(small_disk, leaving=400_000)
    with raising(DragomanError, "1 MB", "0 MB", "step 8"):
        here.train(run, "train.steps=16")
    here.train(run, "train.steps=16", "checkpoint.keep_last=2")
    assert sound_checkpoints(run)[-1] == 16


def test_a_stop_that_could_not_save_is_no_good_end(task: Task, small_disk: Path) -> None:
    run = small_disk / "run"
    never = ("train.steps=100000", "checkpoint.every=100000", "evaluate.every=100000")
    with runs.started_training(task, run, *never, workers=2) as process:
        runs.wait_for_step(process, run, 10)
        fill(small_disk, leaving=0)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert NO_ROOM.search(stderr)
    assert process.returncode == 1
