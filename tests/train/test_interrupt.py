"""Signals: a run saves, says how to go on and leaves; without its launcher it does not train on alone."""

import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from dragoman.checkpoint import saved_model, saved_state
from dragoman.checkpoint.saved_state import SavedState
from dragoman.measure import database
from dragoman.rundir import RunFolder
from dragoman.train import interrupt, loop
from dragoman.train.interrupt import Interrupt
from dragoman.train.stopping import StopReason
from tests.facts import lacking, only
from tests.train import runs
from tests.train.conftest import Here, Unbroken
from tests.train.runs import Task

FAR = ("train.steps=100000", "evaluate.every=16", "evaluate.metric=loss")
# All ranks but one take their time before they import anything. There is a folder "late" by then.
LATE = """
import os, pathlib, time
folder = pathlib.Path(__file__).parent
if "DRAGOMAN_CONTROL" in os.environ:
    try:
        (folder / "first").mkdir()
    except FileExistsError:
        (folder / "late").mkdir()
        time.sleep(600)
"""


def test_a_signal_saves_and_tells_the_command_to_continue(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    run = tmp_path / "a run"
    with runs.started_training(task, run, workers=2) as process:
        runs.wait_for_step(process, run, 10)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in stderr and "error:" not in stderr
    last = stdout.splitlines()[-1]
    stopped_at = RunFolder(run).checkpoint_steps()[-1]
    assert stopped_at < runs.LAST
    assert not lacking(last, f"step {stopped_at}")
    command = shlex.split(last[last.index("dragoman train ") :])[1:]
    result = subprocess.run([*runs.DRAGOMAN, *command], capture_output=True, timeout=runs.WAIT_SECONDS)
    assert result.returncode == 0, result.stderr
    assert runs.trained(run) == runs.trained(unbroken(2))


def last_state(run: Path) -> SavedState:
    folder = RunFolder(run)
    return saved_state.saved_state(folder.checkpoint(folder.checkpoint_steps()[-1]))


def interrupted(here: Here, run: Path, number: int, *settings: str) -> None:
    """A run in this process that gets a signal between its first evaluation and its second."""

    def send() -> None:
        runs.wait_until("step 18", lambda: runs.reached(run, 18))
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    sender.start()
    assert here.train(run, *FAR, *settings) == StopReason.STOPPED
    sender.join()


def test_after_ctrl_c_the_model_is_scored_and_may_be_the_best(
    here: Here, unbroken: Unbroken, tmp_path: Path
) -> None:
    interrupted(here, tmp_path, signal.SIGINT)
    stopped = last_state(tmp_path)
    assert stopped.step > 16
    assert [(evaluation.step, evaluation.at_stop) for evaluation in stopped.history] == [
        *((step, False) for step in range(16, stopped.step, 16)),
        (stopped.step, True),
    ]
    folder = RunFolder(tmp_path)
    assert folder.best.resolve() == folder.checkpoint(stopped.step)
    assert saved_model.note_on_newer(tmp_path) == []
    if stopped.step < runs.LAST:  # it goes on as one that was never stopped
        here.train(tmp_path, "evaluate.metric=loss")
        assert runs.trained(tmp_path) == runs.trained(unbroken(1))


def test_sigterm_leaves_no_time_for_scores(here: Here, tmp_path: Path) -> None:
    interrupted(here, tmp_path, signal.SIGTERM)
    stopped = last_state(tmp_path)
    assert stopped.history[-1].step < stopped.step
    assert not any(evaluation.at_stop for evaluation in stopped.history)


def test_scores_that_take_too_long_are_given_up_and_the_state_is_saved(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_STOP_SECONDS", 0.0)
    interrupted(here, tmp_path, signal.SIGINT)
    stopped = last_state(tmp_path)
    assert stopped.history[-1].step < stopped.step == runs.steps_in_log(tmp_path)[-1]


def test_a_second_ctrl_c_hurries_and_the_same_one_heard_twice_does_not(
    monkeypatch: pytest.MonkeyPatch, world_of_one: None
) -> None:
    now = 0.0
    monkeypatch.setattr(interrupt.time, "monotonic", lambda: now)
    wish = Interrupt()
    heard = [(wish.wanted, wish.is_hurried)]
    for now in (10.0, 10.5, 12.0):  # noqa: B007  the clock above reads it
        signal.raise_signal(signal.SIGINT)
        heard.append((wish.wanted, wish.is_hurried))
    assert heard == [(False, False), (True, False), (True, False), (True, True)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_any_other_signal_hurries_also_after_ctrl_c(number: int, world_of_one: None) -> None:
    wish = Interrupt()
    signal.raise_signal(signal.SIGINT)
    assert not wish.is_hurried
    signal.raise_signal(number)
    assert wish.is_hurried


def test_ranks_whose_launcher_is_killed_save_and_leave(task: Task, tmp_path: Path) -> None:
    with runs.started_training(task, tmp_path, "train.steps=100000", workers=2) as process:
        runs.wait_for_step(process, tmp_path, 10)
        ranks = runs.ranks_of(process.pid)
        process.send_signal(signal.SIGKILL)
        left = psutil.wait_procs(ranks, runs.WAIT_SECONDS)[1]
    assert not left
    stopped_at = RunFolder(tmp_path).checkpoint_steps()[-1]
    only(runs.log(tmp_path).splitlines(), f"step {stopped_at}", "dragoman train")
    assert stopped_at == runs.steps_in_log(tmp_path)[-1]


def test_ctrl_c_while_a_rank_has_not_come_yet_ends_at_once(task: Task, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(LATE)
    environment = runs.environment(PYTHONPATH=str(tmp_path))
    with runs.started_training(task, tmp_path / "run", workers=2, env=environment) as process:
        runs.wait_until("a rank is late", (tmp_path / "late").exists, process)
        ranks = runs.ranks_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
        assert not psutil.wait_procs(ranks, runs.WAIT_SECONDS)[1]
    assert process.returncode == 1
    assert "Traceback" not in stderr
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left <= {"launcher.json", ".launcher.lock"}  # nothing of a run


def test_nohup_outlives_its_terminal(task: Task, tmp_path: Path) -> None:
    words = ["nohup", *runs.DRAGOMAN, *runs.arguments(task, tmp_path, "train.steps=30")]
    with runs.started(words, preexec_fn=runs.core_for(1)) as process:
        runs.wait_for_step(process, tmp_path, 4)
        for each in (process, *runs.ranks_of(process.pid)):
            each.send_signal(signal.SIGHUP)
        stdout, _ = process.communicate(timeout=runs.WAIT_SECONDS)
    assert process.returncode == 0
    only(stdout.splitlines(), "30 steps")
    assert database.read(RunFolder(tmp_path).records).attempts[-1].reason == "finished"


def test_a_closed_terminal_saves(task: Task, tmp_path: Path) -> None:
    with runs.started_training(task, tmp_path, "train.steps=100000") as process:
        runs.wait_for_step(process, tmp_path, 10)
        process.stdout.close()  # type: ignore[union-attr]
        process.send_signal(signal.SIGHUP)
        assert process.wait(runs.WAIT_SECONDS) == 0
        process.stdout = None
    only(runs.log(tmp_path).splitlines(), "dragoman train")
