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

from tests.train import runs

# A process and a child of its own session, as torchrun and a rank are: asked to end, each leaves a note.
PARENT = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
child = subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], start_new_session=True)
child.wait()
open(sys.argv[1] + ".parent", "w").close()
"""
CHILD = """
import signal, sys
def leave(*_):
    open(sys.argv[1] + ".child", "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, leave)
print("up", flush=True)
signal.pause()
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(300)
"""


class Held:
    """The other end of the pipe."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman.launch.agent", "dragoman.launch.calls"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert "hello" in self.hear()

    def say(self, **request: Any) -> None:
        assert self.process.stdin
        print(json.dumps(request), file=self.process.stdin, flush=True)

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def run(
        self, script: str, *arguments: str, text: str = "", environment: dict[str, str] | None = None
    ) -> None:
        self.say(do="run", arguments=["-c", script, *arguments], text=text, environment=environment or {})

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


@pytest.fixture
def agent() -> Iterator[Held]:
    held = Held()
    with held.process:
        yield held
        runs.kill_tree(held.process.pid)


def start_family(agent: Held, note: Path) -> list[psutil.Process]:
    agent.run(PARENT, str(note), CHILD)
    assert agent.hear() == {"line": "up", "is_error": False}
    assert len(agent.children()) == 2
    return agent.children()


def assert_ended_kindly(family: list[psutil.Process], note: Path) -> None:
    assert not psutil.wait_procs(family, runs.WAIT_SECONDS)[1]
    assert {path.suffix for path in note.parent.iterdir()} == {".parent", ".child"}


def test_lines_and_exit_code_come_back_and_the_agent_leaves(agent: Held) -> None:
    script = """
import os, sys
print(sys.stdin.read() + os.environ["LUCK"])
print("no", file=sys.stderr)
sys.exit(3)
"""
    agent.run(script, text="good ", environment={"LUCK": "luck"})
    heard = sorted((agent.hear() for _ in range(2)), key=lambda message: message["is_error"])
    assert heard == [{"line": "good luck", "is_error": False}, {"line": "no", "is_error": True}]
    assert agent.hear() == {"exit": 3}
    assert agent.process.wait(runs.WAIT_SECONDS) == 0


def test_the_end_of_input_ends_all_kindly(agent: Held, tmp_path: Path) -> None:
    family = start_family(agent, tmp_path / "note")
    assert agent.process.stdin
    agent.process.stdin.close()
    assert_ended_kindly(family, tmp_path / "note")
    assert agent.process.wait(runs.WAIT_SECONDS) == 0


def test_a_launcher_that_no_longer_listens_costs_no_rank(agent: Held, tmp_path: Path) -> None:
    talk = """
import signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
while not asked:
    print("line", flush=True)
    time.sleep(0.01)
open(sys.argv[1], "w").write("saved")
"""
    agent.run(talk, str(tmp_path / "note"))
    assert agent.hear()["line"] == "line"
    assert agent.process.stdin and agent.process.stdout
    agent.process.stdout.close()
    agent.process.stdin.close()
    assert agent.process.wait(runs.WAIT_SECONDS) == 0
    assert (tmp_path / "note").read_text() == "saved"


def test_signals_to_the_agent_end_all_kindly(agent: Held, tmp_path: Path) -> None:
    family = start_family(agent, tmp_path / "note")
    agent.process.send_signal(signal.SIGTERM)
    assert_ended_kindly(family, tmp_path / "note")


def test_what_does_not_end_when_asked_is_killed(agent: Held) -> None:
    agent.run(STUBBORN)
    assert agent.hear()["line"] == "up"
    agent.say(do="stop", seconds=0.5)
    assert agent.hear() == {"exit": -signal.SIGKILL}


def test_orphans_are_ended_before_the_agent_leaves(agent: Held, tmp_path: Path) -> None:
    parent, child = start_family(agent, tmp_path / "note")
    parent.kill()
    agent.say(do="stop", seconds=0.0)
    assert agent.hear() == {"exit": -signal.SIGKILL}
    assert not psutil.wait_procs([parent, child], runs.WAIT_SECONDS)[1]


def test_only_functions_of_the_table_can_be_called(agent: Held) -> None:
    agent.say(do="os:system", command="true")
    assert "error" in agent.hear()
    agent.say(do="interface_towards", address="127.0.0.1")
    assert agent.hear() == {"answer": "lo"}


def test_a_failed_call_is_reported(agent: Held) -> None:
    agent.say(do="interface_towards", address="no-such-host.invalid")
    assert "gaierror" in agent.hear()["error"]
