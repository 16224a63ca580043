"""Stacks of real processes that hang, by py-spy and without it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman import stacks
from tests import hanging
from tests.facts import lacking

HANGS = [hanging.waits_in_c, hanging.keeps_the_gil_in_c, hanging.computes]


@pytest.fixture
def py_spy() -> None:
    if not stacks._py_spy():
        pytest.skip("py-spy not installed: it is in the extra dragoman[stacks]")


@pytest.fixture
def no_py_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "_py_spy", lambda: None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stacks"


@pytest.mark.parametrize("hang", HANGS)
def test_a_signal_shows_every_thread_though_the_main_one_is_in_c(
    no_py_spy: None, file: Path, hang: Callable[[], None]
) -> None:
    with hanging.started(hang, file) as process:
        for _ in range(2):  # the second time, only what is new
            text = stacks.of_process(process.pid, file)
            assert (text.count(f"in {hang.__name__}\n"), text.count("in waits_in_a_thread\n")) == (1, 1), text
        assert process.poll() is None


@pytest.mark.parametrize("hang", HANGS)
def test_py_spy_shows_frames_in_python_and_in_c(py_spy: None, file: Path, hang: Callable[[], None]) -> None:
    with hanging.started(hang) as process:
        text = stacks.of_process(process.pid, file)
        assert f"{hang.__name__} (" in text
        assert not lacking(text, "waits_in_a_thread", "libc.so.6")
        assert process.poll() is None


def test_a_process_without_a_file_for_stacks_survives_the_question(no_py_spy: None, file: Path) -> None:
    with hanging.started(hanging.waits_in_c) as process:
        text = stacks.of_process(process.pid, file)
        assert not lacking(text, process.pid, "sleeping")
        assert process.poll() is None


@pytest.mark.parametrize("way", ["py_spy", "no_py_spy"])
def test_a_stopped_process_is_called_stopped_and_stays_so(
    request: pytest.FixtureRequest, file: Path, way: str
) -> None:
    request.getfixturevalue(way)
    with hanging.started(hanging.keeps_the_gil_in_c, file) as process:
        hanging.stop(process.pid)
        size = file.stat().st_size
        text = stacks.of_process(process.pid, file)
        place = "keeps_the_gil_in_c" if way == "py_spy" else "do_signal_stop"
        assert not lacking(text, process.pid, "state T", "SIGCONT", place)
        assert stacks.status(process.pid) == "stopped"
        assert file.stat().st_size == size


@pytest.mark.parametrize("way", ["py_spy", "no_py_spy"])
def test_a_process_that_waits_for_a_device_is_said_to(
    request: pytest.FixtureRequest, tmp_path: Path, way: str
) -> None:
    request.getfixturevalue(way)
    with hanging.waiting_in_the_kernel(tmp_path) as pid:
        assert not lacking(stacks.of_process(pid, tmp_path / "stacks"), pid, "state D")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_fatal_signal_leaves_its_stack(file: Path, number: signal.Signals) -> None:
    with hanging.started(hanging.waits_in_c, file) as process:
        process.send_signal(number)
        assert process.wait() == -number
    text = stacks.of_process(process.pid, file)
    assert not lacking(text, process.pid, "waits_in_c", "waits_in_a_thread")


def test_stacks_are_of_the_process_asked_for_though_another_wrote_to_the_same_file(file: Path) -> None:
    for hang, number in ((hanging.waits_in_c, signal.SIGSEGV), (hanging.computes, signal.SIGKILL)):
        with hanging.started(hang, file) as process:
            process.send_signal(number)
            process.wait()
    assert "waits_in_c" in file.read_text()
    assert "waits_in_c" not in stacks.of_process(process.pid, file)


def test_the_stacks_of_a_process_that_ends_meanwhile_are_no_error(file: Path) -> None:
    for delay in range(12):
        with hanging.started(hanging.waits_in_c, file) as process:
            killer = subprocess.Popen(["sh", "-c", f"sleep {delay / 40}; kill -9 {process.pid}"])
            while stacks.status(process.pid):
                assert not lacking(stacks.of_process(process.pid, file), process.pid)
            killer.wait()
    assert not lacking(stacks.of_process(process.pid, file), process.pid)


def test_a_py_spy_that_hangs_leaves_time_for_the_signal(
    monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path
) -> None:
    (program := tmp_path / "py-spy").write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with hanging.started(hanging.keeps_the_gil_in_c, file) as process:
        began = time.monotonic()
        text = stacks.of_process(process.pid, file, seconds=2.0)
        assert time.monotonic() - began < 3.0
        assert not lacking(text, "keeps_the_gil_in_c")


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    started = []
    for rank in (0, 1):
        words = [sys.executable, "-m", "tests.late_rank", str(rank), str(tmp_path)]
        started.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("way", ["py_spy", "no_py_spy"])
def test_a_rank_that_waits_in_gloo_is_shown_there_and_its_sum_arrives(
    request: pytest.FixtureRequest, ranks: list[subprocess.Popen[str]], tmp_path: Path, way: str
) -> None:
    request.getfixturevalue(way)
    for rank in ranks:
        assert rank.stdout and rank.stdout.readline() == "up\n"
    time.sleep(0.5)
    for _ in range(3):
        text = stacks.of_process(ranks[0].pid, tmp_path / "stacks-0")
        assert not lacking(text, "waits_for_the_other")
        assert way == "no_py_spy" or "gloo" in text
    late = stacks.of_process(ranks[1].pid, tmp_path / "stacks-1")
    assert lacking(late, "waits_for_the_other")
    assert [rank.communicate("\n", timeout=60)[0] for rank in reversed(ranks)] == ["3\n", "3\n"]
