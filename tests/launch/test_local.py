"""Starting ranks on this machine."""

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from dragoman.rundir import RunFolder
from tests.facts import only
from tests.train import runs
from tests.train.runs import Task


def test_without_restarts_a_killed_rank_ends_the_run_in_few_words_and_the_other_saves(
    task: Task, tmp_path: Path
) -> None:
    words = [*runs.DRAGOMAN, *runs.arguments(task, tmp_path, "train.steps=100000", workers=2)]
    with runs.started([*words, "--max-restarts", "0"]) as process:
        runs.wait_for_step(process, tmp_path, 10)
        ranks = runs.ranks_of(process.pid)
        ranks[1].send_signal(signal.SIGKILL)
        _, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
        assert not psutil.wait_procs(ranks, runs.WAIT_SECONDS)[1]
    assert process.returncode == 1
    only(stderr.splitlines(), "lost: rank", "SIGKILL")
    only(stderr.splitlines(), "error:", "--max-restarts", 0)
    assert RunFolder(tmp_path).checkpoint_steps()[-1] == runs.steps_in_log(tmp_path)[-1]
    assert "Traceback" not in stderr
    assert len(stderr.splitlines()) <= 4


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_machine_that_cannot_resolve_its_own_name_trains(task: Task, tmp_path: Path) -> None:
    words = [*runs.DRAGOMAN, *runs.arguments(task, tmp_path / "run", "train.steps=2"), "--workers", "2"]
    renamed = ["unshare", "--uts", "sh", "-c", 'hostname no-such-name; exec "$@"', "sh", *words]
    result = subprocess.run(renamed, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)
    assert (result.returncode, runs.steps_in_log(tmp_path / "run")) == (0, [1, 2]), result.stderr


def launched(task: Task, run: Path, workers: int) -> subprocess.CompletedProcess[str]:
    words = [*runs.DRAGOMAN, *runs.arguments(task, run), "--workers", str(workers)]
    return subprocess.run(words, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)


def test_no_workers_at_all_is_wrong_use(task: Task, tmp_path: Path) -> None:
    assert launched(task, tmp_path / "run", workers=0).returncode == 2
    assert not (tmp_path / "run").exists()


def test_a_missing_data_set_is_reported_before_anything_is_written(task: Task, tmp_path: Path) -> None:
    result = launched(Task(tmp_path / "nowhere", task.config), tmp_path / "run", workers=2)
    assert result.returncode == 2
    assert f"error: {tmp_path / 'nowhere'}: " in result.stderr
    assert not (tmp_path / "run").exists()
