"""A host, held by its agent: see `agent.py` for what is said between the two."""

from __future__ import annotations

import json
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.launch.environment import SAVE_SECONDS
from dragoman.launch.hosts import is_this_machine

_AGENT = [sys.executable, "-m", "dragoman.launch.agent"]
_TABLE = "dragoman.launch.calls"
# What it says, by the key that only that kind has, with the types of its values.
_KINDS: dict[str, dict[str, type]] = {
    "hello": {"hello": str},
    "answer": {"answer": object},
    "error": {"error": str, "hint": str},
    "line": {"line": str, "is_error": bool},
    "exit": {"exit": int},
    "beat": {"beat": bool},
}
# Port, key and user are the business of the user's own ~/.ssh/config. BatchMode: nobody is there to type a
# password. A host that is silent for a minute (6 x 10 s) is lost.
_OPTIONS = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=10", "ServerAliveCountMax=6"]
_END_SECONDS = SAVE_SECONDS + 60.0  # longer than an agent takes to end what it started

# What ssh and the far shell say when it does not work: a sign in their words, what it means, what to try.
_REASONS = [
    (r"Permission denied", "ssh refused us", "let your key in once: ssh-copy-id {host}"),
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its ssh key is another than before",
        "if the machine was set up anew: ssh-keygen -R {machine}, then ssh {host}",
    ),
    (r"Host key verification failed", "its ssh key is not known yet", "accept it once by hand: ssh {host}"),
    (r"Could not resolve hostname", "no such host", "look at the name, or give its address"),
    (r"Connection refused", "no ssh server answers", "start sshd there; a Port belongs into ~/.ssh/config"),
    (r"timed out|No route to host|unreachable", "not reached", "look at its address and the firewall"),
    (
        r"No module named '?dragoman",
        "dragoman is not installed there",
        "install the same version for {python} on every host",
    ),
    (
        re.escape(sys.executable) + r".*(not found|No such file)",
        "the Python of this command is not there",
        "put the environment at the same path on every host: {python}",
    ),
]


class Remote:
    """An agent on a host, through ssh, or directly where the host is this machine. Use as a context.

    Entering starts it without waiting, so that many start at once; what goes wrong with the start is told by
    the first call. Leaving ends everything the agent has started, kindly.
    """

    def __init__(
        self,
        name: str,
        on_line: Callable[[str, bool], None] = lambda line, is_error: None,
        on_end: Callable[[], None] = lambda: None,
        table: str = _TABLE,
    ):
        """`on_line` gets what a started process says; `on_end` is called when the agent is gone.

        `table` is the module that lists what the agent may be asked to call.
        """
        self.name = name
        self.exit_code: int | None = None  # of what was started; None at the end: the host was lost
        self._on_line, self._on_end = on_line, on_end
        self._agent = [*_AGENT, table]
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._last_words: deque[str] = deque(maxlen=50)
        self._greeted = False
        self._heard = time.monotonic()

    def __enter__(self) -> Remote:
        command = self._agent
        if not is_this_machine(self.name):
            options = [word for option in _OPTIONS for word in ("-o", option)]
            command = ["ssh", "-T", *options, "--", self.name, shlex.join(self._agent)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            # of its own session: Ctrl-C is for the launcher, who tells the hosts
            self._process = subprocess.Popen(
                command, text=True, errors="replace", start_new_session=True, **pipes
            )  # type: ignore[call-overload]
        except FileNotFoundError:
            raise DragomanError(
                "ssh is not installed on this machine", hint="install the OpenSSH client"
            ) from None
        assert self._process.stdout and self._process.stderr
        self._listening = [
            threading.Thread(target=self._hear_errors, args=(self._process.stderr,), daemon=True),
            threading.Thread(target=self._hear, args=(self._process.stdout,), daemon=True),
        ]
        for thread in self._listening:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout and self._process.stderr
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for thread in self._listening:
            thread.join()
        self._process.stdout.close()
        self._process.stderr.close()

    def call(self, name: str, **arguments: Any) -> Any:
        """The answer of a function in the agent's table; its error, with the host named, is raised."""
        self._ask(do=name, **arguments)
        reply = self._reply()
        if "error" in reply:
            raise DragomanError(reply["error"], path=self.name, hint=reply["hint"])
        return self._expected(reply, "answer")

    def start(self, arguments: Sequence[str], text: str = "", environment: Mapping[str, str] = {}) -> None:  # noqa: B006
        """Runs Python with these arguments and this text as its input. The last thing asked of an agent."""
        self._ask(do="run", arguments=list(arguments), text=text, environment=dict(environment))

    def stop(self, seconds: float = SAVE_SECONDS, number: int = signal.SIGTERM) -> None:
        """Asks what was started, by this signal, to save and leave; after so many seconds it is killed."""
        with suppress(DragomanError):  # gone already
            self._ask(do="stop", seconds=seconds, signal=int(number))

    @property
    def silent_seconds(self) -> float:
        """Since its agent last said something; it does so every other second."""
        return time.monotonic() - self._heard

    def _ask(self, **request: Any) -> None:
        if not self._greeted:
            self._greet()
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self.lost() from None

    def _greet(self) -> None:
        version = self._expected(self._reply(), "hello")
        if version != __version__:
            raise DragomanError(
                f"has dragoman {version}, this machine {__version__}",
                path=self.name,
                hint="install the same version on every host",
            )
        self._greeted = True

    def _expected(self, reply: dict[str, Any], kind: str) -> Any:
        if kind not in reply:
            said = ", ".join(reply)
            raise DragomanError(
                f"its agent said {said} where {kind} was due",
                path=self.name,
                hint=f"ssh {self.name}: what is there?",
            )
        return reply[kind]

    def _reply(self) -> dict[str, Any]:
        reply = self._answers.get()
        if reply is None:
            self._answers.put(None)  # for whoever asks next
            raise self.lost()
        return reply

    def _hear(self, replies: IO[str]) -> None:
        for line in replies:
            self._heard = time.monotonic()
            message = _message(line)
            if "beat" in message:
                continue
            if "line" in message:
                self._on_line(message["line"], message["is_error"])
            elif "exit" in message:
                self.exit_code = message["exit"]
            elif message:
                self._answers.put(message)
        self._process.wait()
        self._listening[0].join()
        self._answers.put(None)
        self._on_end()

    def _hear_errors(self, errors: IO[str]) -> None:
        for line in errors:
            self._last_words.append(line.rstrip())

    def lost(self) -> DragomanError:
        """Why there is no agent, from the words of ssh and of the far shell."""
        self._process.wait()
        self._listening[0].join()
        said = "\n".join(self._last_words)
        fill = {
            "host": self.name,
            "machine": self.name.rpartition("@")[2],
            "python": shlex.quote(sys.executable),
        }
        for sign, meaning, hint in _REASONS:
            if re.search(sign, said):
                last = next(line for line in reversed(self._last_words) if re.search(sign, line))
                return DragomanError(f"{meaning} ({last})", path=self.name, hint=hint.format(**fill))
        last = self._last_words[-1] if self._last_words else f"exit code {self._process.returncode}"
        return DragomanError(
            f"the connection ended ({last})", path=self.name, hint=f"look at it by hand: ssh {self.name}"
        )


def _message(line: str) -> dict[str, Any]:
    """What the agent says; empty for what the login shell says before it, which may be JSON: a number."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(message, dict):
        return {}
    for kind, values in _KINDS.items():
        if kind in message:
            return message if all(isinstance(message.get(name), of) for name, of in values.items()) else {}
    return {}
