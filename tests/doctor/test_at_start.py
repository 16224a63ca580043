"""The doctor at the start of a run: what it finds, and that it stops the run before anything is written."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from tests import ranks
from tests.gluttons import detached
from tests.train import runs
from tests.train.conftest import Here, here, world_of_one  # noqa: F401  fixtures


def test_what_differs_between_ranks_is_found_over_the_process_group() -> None:
    done = ranks.run("tests.doctor.ranks", [], 2)
    assert done.returncode == 0, done.stderr
    checks = {(check["name"], check["host"]): check for check in json.loads(done.stdout)}
    torch = checks["torch", "other"]
    assert (torch["status"], torch["value"][:3]) == ("error", "9.9")
    clock = checks["clock", "other"]
    assert clock["status"] == "warning"
    assert 6.5 < float(clock["value"].split()[0]) < 7.5
    assert "ahead of" in clock["value"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """1 MB: not even one checkpoint of the task."""
    with runs.disk(tmp_path, "1m") as disk:
        yield disk


def test_a_full_disk_stops_a_run_before_its_folder_is_made(here: Here, tiny_disk: Path) -> None:  # noqa: F811
    run = tiny_disk / "run"
    with pytest.raises(DragomanError, match="not started: disk on .* free at .* checkpoints of") as error:
        here.train(run)
    assert "make room" in error.value.hint
    assert not run.exists()


def test_missing_data_stops_a_run_before_its_folder_is_made(here: Here, tmp_path: Path) -> None:  # noqa: F811
    run = tmp_path / "run"
    with pytest.raises(DragomanError, match="not started: data on .*: no data set here"):
        here.train(run, data=tmp_path / "nothing")
    assert not run.exists()


def test_a_program_that_uses_the_cores_now_is_named(
    here: Here,  # noqa: F811
    tmp_path: Path,
    glutton: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with detached(glutton), detached(glutton):
        here.train(tmp_path / "run", "train.stop_at=1")
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "warning: cores on " in line]
    assert "glutton uses " in said


def test_a_disk_that_will_not_hold_all_checkpoints_is_said_and_the_run_goes_on(
    here: Here,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = ("checkpoint.keep_last=1000000000", "train.steps=1000000000", "train.stop_at=2")
    here.train(tmp_path / "run", *many)
    said = capsys.readouterr().out
    assert "warning: disk on " in said
    assert "lower checkpoint.keep_last" in said
    assert "Stopped at step 2, saved" in said
