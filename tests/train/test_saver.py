"""What a save brings to the disk, and in which order: a power cut may come between any two of its calls."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.config import Checkpoint
from dragoman.rundir import RunFolder
from dragoman.train.saver import FolderSaver, main_saver
from dragoman.train.state import State
from tests.train import killed_saves

Call = tuple[str, str]  # what was done, and to which path or name


def saver_of(run: RunFolder) -> FolderSaver:
    return main_saver(run, killed_saves.VOCABULARY, killed_saves.WORLD, killed_saves.FINGERPRINT)


def saved(saver: FolderSaver, state: State) -> State:
    """The next step, saved."""
    killed_saves.advance(state)
    state.history[-1] = state.history[-1].model_copy(update={"eval_loss": 1 / state.step})  # the best so far
    saver.save(state)
    saver.wait()
    assert not saver.failure
    return state


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls from here on that write names or contents to the disk, or remove something."""
    made: list[Call] = []

    def noting(what: str, name: str) -> None:
        real = getattr(os, name)

        def call(*given: object, **options: object) -> object:
            path = os.readlink(f"/proc/self/fd/{given[0]}") if name == "fsync" else given[-1]
            made.append((what, str(path)))
            return real(*given, **options)

        monkeypatch.setattr(os, name, call)

    for what, name in (("sync", "fsync"), ("name", "rename"), ("name", "replace")):
        noting(what, name)
    for name in ("unlink", "rmdir"):
        noting("remove", name)
    return made


def test_a_checkpoint_is_on_the_disk_before_it_has_its_name_and_before_an_old_one_is_removed(
    tmp_path: Path, calls: list[Call]
) -> None:
    run, state = RunFolder(tmp_path), killed_saves.new_state()
    state.config = state.config.model_copy(update={"checkpoint": Checkpoint(keep_last=1, keep_best=1)})
    saver = saver_of(run)
    saved(saver, state)
    calls.clear()
    saved(saver, state)
    old, new = run.checkpoint(1), run.checkpoint(2)
    unfinished = f"{new}.unfinished"
    named, linked, doomed = (
        calls.index(("name", str(path))) for path in (new, run.best, f"{old}.unfinished")
    )

    def synced(begin: int, end: int) -> set[str]:
        return {path for what, path in calls[begin:end] if what == "sync"}

    assert synced(0, named) == {unfinished, *(f"{unfinished}/{path.name}" for path in new.iterdir())}
    assert synced(named, linked) == {str(run.checkpoints)}
    assert synced(linked, doomed) == {str(tmp_path)}
    assert calls[doomed + 1] == ("sync", str(run.checkpoints))
    assert {what for what, _ in calls[doomed + 2 :]} == {"remove"}
    assert run.checkpoint_steps() == [2]


def test_the_names_of_new_folders_are_on_the_disk(tmp_path: Path, calls: list[Call]) -> None:
    run = RunFolder(tmp_path / "runs" / "first")
    with run.lock():
        saved(saver_of(run), killed_saves.new_state())
    for folder in (tmp_path, tmp_path / "runs", run.path, run.checkpoints):
        assert ("sync", str(folder)) in calls
