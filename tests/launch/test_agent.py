"""An agent at the end of a pipe: what it starts lives and ends with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import hanging
from tests.train import runs

# What stands in for `dragoman train`: a package of that name, found before ours, whose main program is one of
# these. Its last argument is the run folder.
ENDS_WHEN_ASKED = """
import os, socket, sys
from pathlib import Path
supervisor = socket.socket(fileno=int(os.environ["DRAGOMAN_CONTROL"]))
print("up", flush=True)
supervisor.recv(1000)  # nothing comes: the other end closes
Path(sys.argv[-1], f"saved-{os.getpid()}").touch()
"""
TALKS = """
import os, socket, sys
print("good luck")
print("no", file=sys.stderr)
supervisor = socket.socket(fileno=int(os.environ["DRAGOMAN_CONTROL"]))
supervisor.sendall(b'{"ready": 7}\\n')
told = supervisor.recv(1000)
supervisor.sendall(b'{"heard": %s}\\n' % told.strip())
sys.exit(3)
"""
PRINTS_ON = """
import os, socket, sys
from pathlib import Path
supervisor = socket.socket(fileno=int(os.environ["DRAGOMAN_CONTROL"]))
supervisor.settimeout(0.01)
while True:
    print("line", flush=True)
    try:
        supervisor.recv(1000)
        break
    except TimeoutError:
        continue
Path(sys.argv[-1], "saved").touch()
"""
STUBBORN = """
import signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if sys.argv[-1].endswith("with-child"):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print("up", flush=True)
time.sleep(300)
"""
UP = {"line": "up", "is_error": False}
# The agent with less patience.
HASTY = """
import sys
from dragoman.launch import agent
agent.SAVE_SECONDS = 0.5
agent._LAUNCHER_LOST_SECONDS = 5.0
agent.main()
"""


class Held:
    """The other end of the pipe."""

    def __init__(self, folder: Path, *words: str):
        self.run = folder / "run"
        self.run.mkdir(exist_ok=True)
        self._stand_in = folder / "stand-in" / "dragoman"
        self.process = subprocess.Popen(
            [sys.executable, *(words or ("-m", "dragoman.launch.agent")), "dragoman.launch.calls"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        assert "hello" in self.hear()

    def say(self, **request: Any) -> None:
        assert self.process.stdin
        print(json.dumps(request), file=self.process.stdin, flush=True)

    def hear(self) -> dict[str, Any]:
        """The next message that is no beat."""
        assert self.process.stdout
        for line in self.process.stdout:
            if "beat" not in (message := json.loads(line)):
                return message
        return {}

    def begins(self, program: str, run: str = "run", key: str = "") -> None:
        """The agent is ready to start this program as its ranks."""
        self._stand_in.mkdir(parents=True, exist_ok=True)
        (self._stand_in / "__main__.py").write_text(program)
        self.say(
            do="begin",
            key=f"{self.run} {key}",  # tests run beside each other
            config="",
            options=["--run", str(self.run)] if run == "run" else [run],
            command="dragoman train ...",
            workers=2,
            run=str(self.run),
            variables={"PYTHONPATH": str(self._stand_in.parent)},
        )
        assert self.hear() == {"answer": True}

    def starts(self, slot: int = 0, process: int = 1) -> psutil.Process:
        """A rank that says that it is up."""
        before = self.children()
        self.say(do="start", slot=slot, process=process)
        assert self.hear() == UP
        (rank,) = [child for child in self.children() if child not in before]
        return rank

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def hang_up(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def saved(self) -> int:
        return sum(path.name.startswith("saved") for path in self.run.iterdir())


@pytest.fixture
def started() -> Iterator[list[Held]]:
    agents: list[Held] = []
    yield agents
    for held in agents:
        with held.process:
            runs.kill_tree(held.process.pid)


@pytest.fixture
def agent(started: list[Held], tmp_path: Path) -> Held:
    started.append(Held(tmp_path))
    return started[0]


@pytest.fixture
def hasty(started: list[Held], tmp_path: Path) -> Held:
    started.append(Held(tmp_path, "-c", HASTY))
    return started[0]


def all_ended(*processes: psutil.Process) -> bool:
    return not psutil.wait_procs(processes, runs.WAIT_SECONDS)[1]


def test_what_a_rank_prints_and_says_and_how_it_ends_come_back_and_the_agent_stays(agent: Held) -> None:
    agent.begins(TALKS)
    for process in (1, 2):
        agent.say(do="start", slot=1, process=process)
        heard = [agent.hear() for _ in range(3)]
        agent.say(do="tell", slot=1, message={"join": 5})
        while "exit" not in heard[-1]:
            heard.append(agent.hear())
        assert {"line": "good luck", "is_error": False} in heard
        assert {"line": "no", "is_error": True} in heard
        assert {"said": {"ready": 7}, "slot": 1, "process": process} in heard
        assert {"said": {"heard": {"join": 5}}, "slot": 1, "process": process} in heard
        ended = {"exit": 3, "kind": "exception", "detail": "exit code 3", "slot": 1, "process": process}
        assert heard[-1] == ended
    assert agent.process.poll() is None


def test_the_end_of_input_lets_all_ranks_save_and_the_agent_leaves(agent: Held) -> None:
    agent.begins(ENDS_WHEN_ASKED)
    ranks = [agent.starts(0, 1), agent.starts(1, 2)]
    agent.hang_up()
    assert all_ended(*ranks)
    assert agent.process.wait(runs.WAIT_SECONDS) == 0
    assert agent.saved() == 2


def test_a_launcher_that_no_longer_listens_costs_no_rank(agent: Held) -> None:
    agent.begins(PRINTS_ON)
    agent.say(do="start", slot=0, process=1)
    assert agent.hear()["line"] == "line"
    assert agent.process.stdout
    agent.process.stdout.close()
    agent.hang_up()
    assert agent.process.wait(runs.WAIT_SECONDS) == 0
    assert agent.saved() == 1


def test_a_signal_to_the_agent_is_told_and_the_launcher_decides(agent: Held) -> None:
    agent.begins(ENDS_WHEN_ASKED)
    rank = agent.starts()
    agent.process.send_signal(signal.SIGTERM)
    assert agent.hear() == {"leaving": signal.SIGTERM}
    agent.say(do="interface_towards", address="127.0.0.1")
    assert agent.hear() == {"answer": "lo"}
    assert rank.is_running()
    agent.hang_up()
    assert all_ended(rank)
    assert agent.saved() == 1


def test_a_signal_to_an_agent_without_ranks_ends_it(agent: Held) -> None:
    agent.process.send_signal(signal.SIGTERM)
    assert agent.process.wait(runs.WAIT_SECONDS) == 0


def test_ranks_that_are_cut_off_from_their_launcher_save_and_end_with_the_agent(hasty: Held) -> None:
    hasty.begins(ENDS_WHEN_ASKED)
    rank = hasty.starts()
    assert all_ended(rank)
    assert hasty.process.wait(runs.WAIT_SECONDS) == 0
    assert hasty.saved() == 1


def test_a_rank_can_be_killed(agent: Held) -> None:
    agent.begins(STUBBORN)
    agent.starts(1, 4)
    agent.say(do="kill", slot=1)
    ended = agent.hear()
    assert (ended["exit"], ended["kind"]) == (-signal.SIGKILL, "killed")
    assert (ended["slot"], ended["process"]) == (1, 4)


def test_why_a_rank_stands_still_is_told_with_its_stacks(agent: Held) -> None:
    agent.begins(STUBBORN)
    rank = agent.starts(0, 9)
    hanging.stop(rank.pid)
    agent.say(do="examine", slot=0, process=9)
    found = agent.hear()
    assert (found["slot"], found["process"], found["examined"]["kind"]) == (0, 9, "stopped")
    assert str(rank.pid) in (agent.run / found["stacks"]).read_text()


def test_what_does_not_end_when_asked_is_killed_with_the_agents_end(hasty: Held) -> None:
    hasty.begins(STUBBORN)
    rank = hasty.starts()
    hasty.hang_up()
    assert hasty.process.wait(runs.WAIT_SECONDS) == 0
    assert all_ended(rank)


def test_what_a_killed_rank_has_started_ends_before_the_agent_leaves(hasty: Held) -> None:
    hasty.begins(STUBBORN, run="with-child")
    rank = hasty.starts()
    (child,) = rank.children()
    rank.kill()
    assert hasty.hear()["exit"] == -signal.SIGKILL
    hasty.hang_up()
    assert hasty.process.wait(runs.WAIT_SECONDS) == 0
    assert all_ended(child)


def test_ranks_of_the_same_launcher_that_an_earlier_agent_left_are_ended(
    started: list[Held], agent: Held, tmp_path: Path
) -> None:
    agent.begins(STUBBORN)
    rank = agent.starts()
    started.append(Held(tmp_path))
    started[1].begins(STUBBORN, key="another")
    assert rank.is_running()
    started.append(Held(tmp_path))
    started[2].begins(STUBBORN)
    assert agent.hear()["exit"] == -signal.SIGKILL
    assert all_ended(rank)


def test_only_functions_of_the_table_can_be_called(agent: Held) -> None:
    agent.say(do="os:system", command="true")
    assert "error" in agent.hear()
    agent.say(do="interface_towards", address="127.0.0.1")
    assert agent.hear() == {"answer": "lo"}


def test_a_failed_call_is_reported(agent: Held) -> None:
    agent.say(do="interface_towards", address="no-such-host.invalid")
    assert "gaierror" in agent.hear()["error"]
