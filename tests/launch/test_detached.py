"""Runs in the background: they outlive the command that started them; others join and stop them."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman.launch import detached, launcher
from dragoman.launch.hosts import Host
from dragoman.launch.launcher import Launcher
from dragoman.launch.remote_host import TrainingCommand
from dragoman.rundir import RunFolder
from testbed import Cluster, ssh, why_not
from tests.facts import lacking, only
from tests.launch.test_remote import changed
from tests.train import runs
from tests.train.runs import Task

FOR_EVER = "train.steps=1000000"


def words(task: Task, run: Path, *settings: str, extra: Sequence[str] = ("--detach",)) -> list[str]:
    return [*runs.DRAGOMAN, *runs.arguments(task, run, *settings), *extra]


def stop_words(run: Path, *extra: str) -> list[str]:
    return [*runs.DRAGOMAN, "stop", str(run), *extra]


def done(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)


def noted(run: Path) -> dict[str, Any]:
    return dict(json.loads(RunFolder(run).launcher.read_text()))


def is_over(run: Path) -> bool:
    known = launcher.read(RunFolder(run))
    return known is not None and not known.lives()


@contextmanager
def ended_at_last(run: Path) -> Iterator[None]:
    """Kills the run's launcher and ranks if the block leaves them behind."""
    try:
        yield
    finally:
        known = launcher.read(RunFolder(run))
        if known and known.lives():
            runs.kill_tree(known.pid)


@contextmanager
def left_in_background(task: Task, run: Path, *settings: str) -> Iterator[Launcher]:
    """A detached run past its first checkpoint, whose command was left with Ctrl-C."""
    with ended_at_last(run):
        with runs.started(words(task, run, *settings)) as command:
            runs.wait_until("a checkpoint", RunFolder(run).checkpoint_steps, command)
            command.send_signal(signal.SIGINT)
            stdout, stderr = command.communicate(timeout=runs.WAIT_SECONDS)
            assert (command.returncode, stderr) == (0, "")
            assert not lacking(stdout.splitlines()[-1], f"dragoman stop {run}")
        known = launcher.read(RunFolder(run))
        assert known and known.lives()
        yield known


def test_a_run_outlives_its_command_and_terminal_and_finishes(task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ours, theirs = os.openpty()

    def with_terminal() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    with ended_at_last(run):
        command = subprocess.Popen(
            words(task, run, "train.steps=30"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=with_terminal,
        )
        os.close(theirs)
        runs.wait_until("step 2", lambda: runs.reached(run, 2))
        command.kill()
        command.wait()
        os.close(ours)  # hangs up
        known = noted(run)
        assert psutil.Process(known["pid"]).ppid() != os.getpid()
        runs.wait_until("its end", lambda: is_over(run))
    assert (noted(run)["exit_code"], known["host"]) == (0, socket.gethostname())
    assert runs.steps_in_log(run)[-1] == 30 and RunFolder(run).checkpoint_steps()[-1] == 30
    for path, mode in ((run, 0o700), (run / "launcher.json", 0o600), (run / "output.txt", 0o600)):
        assert path.stat().st_mode & 0o777 == mode, path
    assert runs.log(run) in RunFolder(run).output.read_text() + "\n"


def test_the_same_command_joins_the_output_and_ends_as_the_run_does(task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with left_in_background(task, run, FOR_EVER) as known:
        step = max(runs.steps_in_log(run))
        with runs.started(words(task, run, FOR_EVER, extra=())) as joined:
            runs.wait_until("ten more steps", lambda: runs.reached(run, step + 10), joined)
            assert noted(run)["pid"] == known.pid
            psutil.Process(known.pid).kill()
            stdout, stderr = joined.communicate(timeout=runs.WAIT_SECONDS)
        assert joined.returncode == 1 and not lacking(stderr, f"{run}:", known.pid)
        assert sum(line.startswith("step ") for line in stdout.splitlines()) >= 10
    runs.wait_until("no rank", lambda: not processes_of(run))


def test_stop_saves_ends_everything_and_is_refused_without_a_run(task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with left_in_background(task, run, FOR_EVER) as known:
        joined = subprocess.Popen(words(task, run, FOR_EVER), stdout=subprocess.PIPE, text=True)
        assert joined.stdout and joined.stdout.readline()
        stopped = done(stop_words(run))
        assert stopped.returncode == 0, stopped.stderr
        joined.communicate(timeout=runs.WAIT_SECONDS)
        assert joined.returncode == 0
    last = max(runs.steps_in_log(run))
    assert RunFolder(run).checkpoint_steps()[-1] == last
    only(stopped.stdout.splitlines(), f"step {last}", "chrF")
    only(stopped.stdout.splitlines(), f"step {last}", f"dragoman train {task.config}", "--detach")
    runs.wait_until("no process", lambda: not processes_of(run))
    again = done(stop_words(run))
    assert again.returncode == 1 and not lacking(again.stderr, f"{run}:", known.pid)
    assert done(stop_words(tmp_path / "other")).returncode == 1


def processes_of(run: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if str(run) in process.cmdline():
                found.append(process)
    return found


def test_a_second_stop_hurries(task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with left_in_background(task, run, FOR_EVER) as known:
        os.kill(known.pid, signal.SIGSTOP)  # as if it took long to save
        first = subprocess.Popen(stop_words(run), stdout=subprocess.DEVNULL)
        runs.wait_until("the first call", lambda: noted(run).get("stops") == 1, first)
        second = subprocess.Popen(stop_words(run), stdout=subprocess.DEVNULL)
        runs.wait_until("the second call", lambda: noted(run).get("stops") == 2, second)
        pending = signals_pending(known.pid)
        assert {signal.SIGINT, signal.SIGTERM} <= pending
        os.kill(known.pid, signal.SIGCONT)
        assert [each.wait(runs.WAIT_SECONDS) for each in (first, second)] == [0, 0]
    assert RunFolder(run).checkpoint_steps()[-1] == max(runs.steps_in_log(run))


def signals_pending(pid: int) -> set[int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = int(next(line.split()[1] for line in lines if line.startswith("ShdPnd")), 16)
    return {number for number in range(1, 32) if mask >> (number - 1) & 1}


def test_another_command_is_refused_before_anything_is_written(task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with runs.started(words(task, run, FOR_EVER, extra=())) as foreground:  # not detached: none joins it
        runs.wait_for_step(foreground, run, 1)
        before = RunFolder(run).launcher.read_text()
        for extra in ((), ("--detach",)):
            refused = done(words(task, run, FOR_EVER, extra=extra))
            assert refused.returncode == 2
            assert not lacking(refused.stderr, f"{run}:", foreground.pid, socket.gethostname())
        assert RunFolder(run).launcher.read_text() == before and not RunFolder(run).output.exists()
        assert done(stop_words(run)).returncode == 0  # as Ctrl-C in its terminal
        assert foreground.wait(runs.WAIT_SECONDS) == 0
    other = tmp_path / "other"
    with left_in_background(task, other, FOR_EVER) as known:
        refused = done(words(task, other, FOR_EVER, "train.rate=0.1"))
        assert refused.returncode == 2
        assert not lacking(refused.stderr, f"{other}:", known.pid, socket.gethostname())


@pytest.mark.parametrize("left", ["killed", "reused", "elsewhere"])
def test_a_file_that_a_dead_launcher_left_does_not_block(left: str, task: Task, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.make()
    child = subprocess.Popen(["true"])
    ours = Launcher.of_process(os.getpid(), "dragoman train ...", "")
    changes: dict[str, Any] = {
        "killed": {"pid": child.pid},
        "reused": {"since_boot_seconds": ours.since_boot_seconds - 60},
        "elsewhere": {"host": "no-such-host.invalid"},
    }
    child.wait()
    run.launcher.write_text(ours.model_copy(update=changes[left]).model_dump_json())
    trained = done(words(task, run.path, "train.steps=2", extra=()))
    assert trained.returncode == 0, trained.stderr
    assert (runs.steps_in_log(run.path), noted(run.path)["exit_code"]) == ([1, 2], 0)


def test_what_is_wrong_is_told_and_nothing_is_started(task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    refused = done(words(Task(tmp_path / "nowhere", task.config), run))
    assert refused.returncode == 2 and f"error: {tmp_path / 'nowhere'}: " in refused.stderr
    assert not run.exists()
    run.mkdir()
    RunFolder(run).launcher.write_text("{")
    for command in (words(task, run), stop_words(run)):
        damaged = done(command)
        assert damaged.returncode == 1 and f"error: {run / 'launcher.json'}: " in damaged.stderr


def test_requests_are_alike_only_if_all_that_matters_is(tmp_path: Path) -> None:
    def request(**changes: Any) -> str:
        of_training = {"config": "a", "data": tmp_path, "run": tmp_path, "start_from": None, "command": "x"}
        training = TrainingCommand(**{**of_training, **changes.pop("training", {})})
        return detached.TrainingRequest(training, changes.pop("words", []), **changes).digest

    assert request() == request(words=["y"], training={"command": "y"})
    others = [
        request(training={"config": "b"}),
        request(training={"data": tmp_path / "b"}),
        request(training={"start_from": tmp_path}),
        request(workers=2),
        request(hosts=[Host("a"), Host("b")]),
        request(hosts=[Host("b"), Host("a")]),
        request(max_restarts=1),
    ]
    assert len({request(), *others}) == 1 + len(others)


# --- several hosts ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    for reason in (why_not(), ssh.why_not()):
        if reason:
            pytest.skip(reason)
    with Cluster(hosts=3, with_ssh=True) as cluster:
        yield cluster


@pytest.fixture
def place(three: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A folder in which h2, the launching machine, has files of its own. No process is left on a host."""
    servers = {host: set(three.processes(host)) for host in range(3)}
    folder = tmp_path / "runs"
    folder.mkdir()
    three.run(2, ["mount", "-t", "tmpfs", "tmpfs", str(folder)])
    yield folder
    for host, known in servers.items():
        kill_all(three, host, known)
    three.run(2, ["umount", "--lazy", str(folder)])


def kill_all(cluster: Cluster, host: int, but: set[int]) -> None:
    for pid in set(cluster.processes(host)) - but:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).kill()


def on_hosts(task: Task, run: Path, *settings: str, extra: Sequence[str] = ("--detach",)) -> list[str]:
    return words(task, run, *settings, extra=["--hosts", "h0:1,h1:1", *extra])


def told_by(cluster: Cluster, host: int, path: Path) -> dict[str, Any]:
    return dict(json.loads(cluster.run(host, ["cat", str(path)]).stdout))


@contextmanager
def launching(cluster: Cluster, command: Sequence[str], run: Path) -> Iterator[subprocess.Popen[str]]:
    """A command on h2, with its run under way on h0."""
    out = run.parent.with_name("out")
    with out.open("w") as file, cluster.popen(2, command, stdout=file, stderr=file) as process:
        try:
            runs.wait_until("a checkpoint", RunFolder(run).checkpoint_steps, process)
            yield process
        finally:
            process.kill()


def test_a_run_on_hosts_outlives_the_machine_that_launched_it(
    three: Cluster, task: Task, place: Path
) -> None:
    run = place / "run"
    with launching(three, on_hosts(task, run, "train.steps=40"), run):
        pointer = told_by(three, 2, run / "launcher.json")
        known = noted(run)
        kill_all(three, 2, set())
        runs.wait_until("nothing on h2", lambda: not three.processes(2))
    assert (pointer["host"], pointer["pid"]) == ("h0", known["pid"]) and known["is_detached"]
    runs.wait_until("its end", lambda: "exit_code" in noted(run))
    assert noted(run)["exit_code"] == 0 and max(runs.steps_in_log(run)) == 40
    ended = three.run(2, stop_words(run), check=False)
    assert ended.returncode == 1 and not lacking(ended.stderr, known["pid"], "h0")


@pytest.mark.parametrize("extra", [(), ("--hosts", "h0:1,h1:1")])
def test_stop_from_the_launching_machine_or_by_the_name_of_the_first_host(
    extra: tuple[str, ...], three: Cluster, task: Task, place: Path
) -> None:
    run = place / "run"
    with launching(three, on_hosts(task, run, FOR_EVER), run) as command:
        if extra:
            three.run(2, ["rm", str(run / "launcher.json")])
        else:
            command.send_signal(signal.SIGINT)
            assert command.wait(runs.WAIT_SECONDS) == 0
            shown = place.with_name("joined")
            with shown.open("w") as file:
                command = three.popen(2, on_hosts(task, run, FOR_EVER, extra=()), stdout=file)
            runs.wait_until("a step is shown", lambda: "h0 | step" in shown.read_text(), command)
        stopped = three.run(2, stop_words(run, *extra), timeout_seconds=runs.WAIT_SECONDS, check=False)
        assert stopped.returncode == 0, stopped.stderr
        assert command.wait(runs.WAIT_SECONDS) == 0
    last = max(runs.steps_in_log(run))
    assert RunFolder(run).checkpoint_steps()[-1] == last
    only(stopped.stdout.splitlines(), "h0 |", f"step {last}", "chrF")
    for host in (0, 1):
        runs.wait_until(f"only sshd on h{host}", lambda host=host: len(three.processes(host)) == 1)


def test_a_first_host_that_does_not_reach_another_is_told_and_nothing_starts(
    three: Cluster, task: Task, place: Path
) -> None:
    run = place / "run"
    with changed(three, 0, "known_hosts", ""):
        refused = three.run(2, on_hosts(task, run), timeout_seconds=runs.WAIT_SECONDS, check=False)
    assert refused.returncode == 1 and not lacking(refused.stderr, "h0:", "h1", "ssh h1")
    assert not run.exists() and not three.run(2, ["ls", "-A", str(place)]).stdout


def test_a_launcher_in_the_foreground_of_another_machine_is_named_on_the_hosts(
    three: Cluster, task: Task, place: Path
) -> None:
    run = place / "run"
    with launching(three, on_hosts(task, run, FOR_EVER, extra=()), run) as command:
        pid = noted(run)["pid"]
        for host in (0, 2):
            refused = three.run(host, on_hosts(task, run, FOR_EVER), timeout_seconds=60, check=False)
            assert refused.returncode == 2 and not lacking(refused.stderr, pid, "h2")
        refused = three.run(0, stop_words(run), check=False)
        assert refused.returncode == 2 and not lacking(refused.stderr, pid, "h2")
        command.send_signal(signal.SIGINT)
        assert command.wait(runs.WAIT_SECONDS) == 0
    deadline = time.monotonic() + runs.WAIT_SECONDS
    while three.run(0, stop_words(run), check=False).returncode != 1:  # its agents are gone
        assert time.monotonic() < deadline
