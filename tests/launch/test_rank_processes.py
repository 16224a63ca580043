"""Rank processes of this machine, with programs of a few lines in their place."""

from __future__ import annotations

import queue
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.launch.rank_processes import Listeners, RankProcess, RankProcesses
from dragoman.rundir import RunFolder
from tests.ranks import WAIT_SECONDS

BEGIN = """
import os, socket, sys
supervisor = socket.socket(fileno=int(os.environ["DRAGOMAN_CONTROL"]))
"""
ANSWERS = f"""{BEGIN}
supervisor.sendall(b'{{"ready": -1}}\\n')
print(supervisor.recv(100).decode(), os.environ["LUCK"], os.environ["OMP_NUM_THREADS"].isdigit())
"""
SAVES = f"""{BEGIN}
supervisor.sendall(b'{{"ready": 5}}\\n')
supervisor.recv(100)
print("saved")
"""
STUBBORN = f"""{BEGIN}
import time
supervisor.sendall(b'{{"ready": 5}}\\n')
time.sleep(300)
"""
FIRST = RankProcess(0, 1)


class Heard:
    def __init__(self) -> None:
        self.happened: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.listeners = Listeners(
            heard=lambda process, message: self.happened.put((process, message)),
            ended=lambda process, code, cause: self.happened.put((process, code, cause.kind)),
            line=lambda line, is_error: self.happened.put((line, is_error)),
        )

    def next(self) -> tuple[Any, ...]:
        return self.happened.get(timeout=WAIT_SECONDS)


@pytest.fixture
def heard() -> Heard:
    return Heard()


Started = Callable[[str], RankProcesses]


@pytest.fixture
def started(heard: Heard, tmp_path: Path) -> Iterator[Started]:
    """Runs a program as the first rank."""
    made: list[RankProcesses] = []

    def start(program: str) -> RankProcesses:
        run = RunFolder(tmp_path)
        processes = RankProcesses(["-c", program], 2, run, {"LUCK": "luck"}, heard.listeners)
        made.append(processes)
        processes.start(FIRST)
        return processes

    yield start
    for processes in made:
        processes.end(0.0)


def test_a_rank_is_heard_told_and_its_end_comes_last(heard: Heard, started: Started) -> None:
    processes = started(ANSWERS)
    assert heard.next() == (FIRST, {"ready": -1})
    processes.tell(FIRST.slot, {"join": 1})
    lines = [heard.next(), heard.next(), heard.next()]
    assert lines == [('{"join": 1}', False), (" luck True", False), (FIRST, 0, "exception")]


def test_a_killed_rank_is_told_with_the_signal(heard: Heard, started: Started) -> None:
    processes = started(STUBBORN)
    heard.next()
    processes.kill(FIRST.slot)
    assert heard.next() == (FIRST, -signal.SIGKILL, "killed")
    processes.kill(FIRST.slot)  # of nobody
    processes.tell(FIRST.slot, {"join": 1})
    assert processes.examine(FIRST.slot) == (None, "")


def test_a_slot_is_used_again(heard: Heard, started: Started) -> None:
    processes = started(STUBBORN)
    heard.next()
    processes.kill(FIRST.slot)
    heard.next()
    again = RankProcess(FIRST.slot, 2)
    processes.start(again)
    assert heard.next() == (again, {"ready": 5})


def test_at_the_end_ranks_save_and_those_that_do_not_leave_are_killed(heard: Heard, started: Started) -> None:
    processes = started(SAVES)
    heard.next()
    processes.end(WAIT_SECONDS)
    assert heard.next() == ("saved", False)
    assert heard.next() == (FIRST, 0, "exception")
    processes = started(STUBBORN)
    heard.next()
    processes.end(0.2)
    assert heard.next() == (FIRST, -signal.SIGKILL, "killed")


def test_why_a_rank_stands_still_is_kept_with_its_stacks(
    heard: Heard, started: Started, tmp_path: Path
) -> None:
    processes = started(STUBBORN)
    heard.next()
    cause, stacks = processes.examine(FIRST.slot)
    assert cause and cause.kind == "slow_rank"
    assert (tmp_path / stacks).stat().st_size > 0
