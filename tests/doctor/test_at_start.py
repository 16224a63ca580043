"""The doctor at the start of a run: what it finds, and that it stops the run before anything is written."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.doctor import at_start, capacity, compare
from dragoman.errors import DragomanError
from dragoman.rundir import RunFolder
from dragoman.sync.topology import Topology
from tests import ranks
from tests.doctor.build import host
from tests.doctor.test_capacity import V100, usable, with_gpus
from tests.explain.sentences import wording
from tests.facts import lacking, only
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
    first = clock["value"].split()[-1]
    others = [host(number, clock_offset_seconds=offset) for number, offset in ((1, 7.0), (2, -7.0))]
    ahead, behind = compare.clocks([host(0, name=first), *others])
    assert wording(clock["value"]) == wording(ahead.value) != wording(behind.value)


@pytest.mark.parametrize("listed", [1, 2])  # by the driver: all GPUs of the host, or the rank's own
def test_ranks_that_see_only_their_own_gpu_have_one_each(listed: int) -> None:
    each = [with_gpus(usable=[usable()], listed=[V100] * listed) for _ in range(2)]
    (merged,) = at_start._hosts([host(0, gpus=gpus) for gpus in each], Topology(["h0"], [0, 0], ["lo"]))
    assert (len(merged.gpus.usable), len(merged.gpus.listed), merged.ranks) == (2, 2, 2)
    assert [check.status for check in capacity.gpus([merged])] == ["ok"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """1 MB: not even one checkpoint of the task."""
    with runs.disk(tmp_path, "1m") as disk:
        yield disk


def test_a_full_disk_stops_a_run_before_its_folder_is_made(here: Here, tiny_disk: Path) -> None:  # noqa: F811
    run = tiny_disk / "run"
    with pytest.raises(DragomanError) as error:
        here.train(run)
    assert not lacking(error.value.what, "disk", tiny_disk)
    assert not lacking(error.value.hint, "checkpoint.keep_last")
    assert not run.exists()


def test_missing_data_stops_a_run_before_its_folder_is_made(here: Here, tmp_path: Path) -> None:  # noqa: F811
    run = tmp_path / "run"
    with pytest.raises(DragomanError) as error:
        here.train(run, data=tmp_path / "nothing")
    assert not lacking(error.value.what, "data", tmp_path / "nothing")
    assert not run.exists()


def test_a_program_that_uses_the_cores_now_is_named(
    here: Here,  # noqa: F811
    tmp_path: Path,
    glutton: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with detached(glutton), detached(glutton):
        here.train(tmp_path / "run", "train.stop_at=1")
    only(capsys.readouterr().out.splitlines(), "warning: cores", "glutton")


def test_a_disk_that_will_not_hold_all_checkpoints_is_reported_and_the_run_continues(
    here: Here,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = ("checkpoint.keep_last=1000000000", "train.steps=1000000000", "train.stop_at=2")
    here.train(tmp_path / "run", *many)
    only(capsys.readouterr().out.splitlines(), "warning: disk", "checkpoint.keep_last")
    assert RunFolder(tmp_path / "run").checkpoint(2).is_dir()
