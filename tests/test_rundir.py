"""The run folder."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import UsageError
from dragoman.rundir import RunFolder
from tests.facts import raising


def test_one_training_at_a_time_holds_a_run_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.lock(), raising(UsageError, f"{folder.path}:", "--run"):
        folder.lock()
    folder.lock().close()  # free again


def test_steps_are_found_in_order_and_leftovers_are_not_checkpoints(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.checkpoint_steps() == []
    not_ours = ("step-00000300.unfinished", "other", "step-" + "9" * 20, "step-000000400", "step-٠٠٠٠٠٥٠٠")
    for name in ("step-00001000", "step-00000200", "step-123456789", *not_ours):
        (folder.checkpoints / name).mkdir(parents=True)
    assert folder.checkpoint_steps() == [200, 1000, 123456789]
    assert folder.checkpoint(200).is_dir()


def test_a_new_run_folder_is_for_its_owner_alone_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    new, old = RunFolder(tmp_path / "runs" / "new"), RunFolder(tmp_path / "old")
    (tmp_path / "plain").mkdir()
    old.path.mkdir(mode=0o750)
    for folder in (new, old):
        folder.lock().close()
    assert new.path.stat().st_mode & 0o777 == 0o700
    assert new.path.parent.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert old.path.stat().st_mode & 0o777 == 0o750
