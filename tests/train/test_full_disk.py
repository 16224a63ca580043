"""A full disk: a small tmpfs as the run folder."""

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.checkpoint import saved_state
from dragoman.errors import DragomanError
from dragoman.rundir import RunFolder
from dragoman.train.saver import FolderSaver
from tests.train import runs
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


def sound_checkpoints(run: Path) -> list[int]:
    folder = RunFolder(run)
    for step in folder.checkpoint_steps():
        saved_state.verify(folder.checkpoint(step))
    return folder.checkpoint_steps()


def test_a_full_disk_stops_all_ranks_with_a_message_and_the_run_goes_on_with_room(
    task: Task, small_disk: Path
) -> None:
    run = small_disk / "run"
    with runs.started_training(task, run, "train.steps=2000", workers=2) as process:
        runs.wait_until("a checkpoint", RunFolder(run).checkpoint_steps, process)
        filler = fill(small_disk, leaving=0)  # not even for a line in the log
        stdout, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert process.returncode == 1
    kept = sound_checkpoints(run)
    assert kept
    # seen before writing, or in the middle of the checkpoint that was being written at that moment
    assert re.search(
        "the checkpoint could not be written: (1 MB are needed, 0 MB are free|.*No space left)", stderr
    )
    assert f"the checkpoint of step {kept[-1]} is intact" in stderr
    assert "saved" not in stdout
    assert stderr.count("error:") == 1, stderr
    assert len(list(RunFolder(run).checkpoints.iterdir())) == len(kept)  # nothing half written
    filler.unlink()
    result = runs.train(task, run, f"train.steps={kept[-1] + 2}", workers=2)
    assert result.returncode == 0, result.stderr
    assert f"going on from step {kept[-1]}" in result.stdout


def test_a_disk_that_fills_up_in_the_middle_of_a_checkpoint_leaves_no_part_of_it(
    here: Here, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_disk / "run"
    here.train(run, "train.steps=8")

    def fill_after_looking(self: FolderSaver, *rest: object) -> str:
        fill(small_disk, leaving=150_000)  # model.safetensors has room, optimizer.safetensors has not
        return ""

    monkeypatch.setattr(FolderSaver, "_lacking_space", fill_after_looking)
    with pytest.raises(DragomanError, match="the checkpoint could not be written: .*No space left") as error:
        here.train(run, "train.steps=32")
    assert "the checkpoint of step 8 is intact" in str(error.value)
    assert sound_checkpoints(run) == [8]
    assert [path.name for path in RunFolder(run).checkpoints.iterdir()] == ["step-00000008"]
    assert "saved" not in runs.log(run)


def test_a_stop_that_could_not_save_is_no_good_end(task: Task, small_disk: Path) -> None:
    run = small_disk / "run"
    never = ("train.steps=100000", "checkpoint.every=100000", "evaluate.every=100000")
    with runs.started_training(task, run, *never, workers=2) as process:
        runs.wait_for_step(process, run, 10)
        fill(small_disk, leaving=0)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert "the checkpoint could not be written" in stderr
    assert process.returncode == 1
