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
