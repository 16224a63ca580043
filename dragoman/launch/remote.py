"""The launcher's side of the connection to a host's agent; `agent.py` describes the messages."""

from __future__ import annotations

import json
import queue
import re
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.launch.environment import SAVE_SECONDS
from dragoman.launch.hosts import is_this_machine

_AGENT = [sys.executable, "-m", "dragoman.launch.agent"]
_TABLE = "dragoman.launch.calls"
# The kinds of messages from an agent, each by the key that only it has, with the types of its values.
_KINDS: dict[str, dict[str, type]] = {
    "hello": {"hello": str},
    "answer": {"answer": object},
    "error": {"error": str, "hint": str},
    "line": {"line": str, "is_error": bool},
    "said": {"said": dict, "slot": int, "process": int},
    "exit": {"exit": int, "kind": str, "detail": str, "slot": int, "process": int},
    "examined": {"examined": object, "stacks": str, "slot": int, "process": int},
    "leaving": {"leaving": int},
    "beat": {"beat": bool},
}
_EVENTS = {"said", "exit", "examined", "leaving"}
LOST_SECONDS = 60  # ssh gives a host up after this long without a sign of life
# Port, key and user come from the user's ~/.ssh/config. BatchMode: ssh must not ask for a password.
_OPTIONS = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=10"]
_OPTIONS += [f"ServerAliveCountMax={LOST_SECONDS // 10}"]
_END_SECONDS = SAVE_SECONDS + 60.0  # longer than an agent takes to end what it started

# Errors of ssh and of the remote shell: a pattern in their output, what it means, and what to try.
_REASONS = [
    (r"Permission denied", "ssh refused us", "copy your key there once: ssh-copy-id {host}"),
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its ssh key has changed",
        "if the machine was set up again: ssh-keygen -R {machine}, then ssh {host}",
    ),
    (r"Host key verification failed", "its ssh key is not known yet", "accept it once by hand: ssh {host}"),
    (r"Could not resolve hostname", "no such host", "check the name, or give its address"),
    (
        r"Connection refused",
        "no ssh server answers",
        "start sshd there; if it listens on another port, put Port into ~/.ssh/config",
    ),
    (r"timed out|No route to host|unreachable", "cannot be reached", "check its address and the firewall"),
    (
        r"No module named '?dragoman",
        "dragoman is not installed there",
        "install the same version for {python} on every host",
    ),
    (
        re.escape(sys.executable) + r".*(not found|No such file)",
        "the Python of this command is not there",
        "put the Python environment at the same path on every host: {python}",
    ),
]


class RefusedHost(DragomanError):
    """A host that answers, and cannot take part as it is."""


class Remote:
    """A connection to an agent on a host: through ssh, or through a pipe if the host is this machine.

    Use it as a context manager. Entering starts the agent without waiting, so that many start at once; if the
    start fails, the first call raises. Leaving lets everything that the agent started save and exit.
    """

    def __init__(
        self,
        name: str,
        on_line: Callable[[str, bool], None] = lambda line, is_error: None,
        on_event: Callable[[dict[str, Any]], None] = lambda message: None,
        table: str = _TABLE,
    ):
        """`on_line` gets each line that ranks print, `on_event` what they say and how they end.

        `table` is the module that lists the functions that may be called.
        """
        self.name = name
        self._on_line, self._on_event = on_line, on_event
        self._agent = [*_AGENT, table]
        self._replies: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._error_lines: deque[str] = deque(maxlen=50)
        self._is_version_checked = False
        self._sending = threading.Lock()
        self._last_message = time.monotonic()

    def __enter__(self) -> Remote:
        command = self._agent
        if not is_this_machine(self.name):
            options = [word for option in _OPTIONS for word in ("-o", option)]
            command = ["ssh", "-T", *options, "--", self.name, shlex.join(self._agent)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            # in a session of its own, so that Ctrl-C reaches only the launcher, which tells the hosts
            self._process = subprocess.Popen(
                command, text=True, errors="replace", start_new_session=True, **pipes
            )  # type: ignore[call-overload]
        except FileNotFoundError:
            raise DragomanError(
                "ssh is not installed on this machine", hint="install the OpenSSH client"
            ) from None
        assert self._process.stdout and self._process.stderr
        self._readers = [
            threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True),
            threading.Thread(target=self._read_messages, args=(self._process.stdout,), daemon=True),
        ]
        for thread in self._readers:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self.hang_up()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for thread in self._readers:
            thread.join()
        self._process.stdout.close()
        self._process.stderr.close()

    def greet(self) -> None:
        """Waits until the agent answers; raises if the host cannot be reached or has another version."""
        if not self._is_version_checked:
            self._check_version()

    def call(self, name: str, seconds: float | None = None, **arguments: Any) -> Any:
        """Calls a function of the agent's table and returns its answer; its error is raised with our host.

        After this many seconds the host counts as lost.
        """
        self._send(do=name, **arguments)
        reply = self._next_reply(seconds)
        if "error" in reply:
            raise DragomanError(reply["error"], path=self.name, hint=reply["hint"])
        return self._expected(reply, "answer")

    def send(self, **request: Any) -> None:
        """Sends a request that has no answer; in vain if the agent is gone, of which `wait` tells."""
        with suppress(DragomanError):
            self._send(**request)

    def wait(self) -> None:
        """Returns when the connection has ended."""
        self._process.wait()
        for thread in self._readers:
            thread.join()

    def hang_up(self) -> None:
        """Ends the input of the agent, which then lets its ranks save and exits."""
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()

    def drop(self) -> None:
        """Ends the connection at once. An agent that can still be reached ends its ranks."""
        self._process.kill()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the agent's last message. It sends one at least every two seconds."""
        return time.monotonic() - self._last_message

    def _send(self, **request: Any) -> None:
        self.greet()
        assert self._process.stdin
        try:
            with self._sending:
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
        except (OSError, ValueError):  # ValueError: we hung up
            raise self.lost() from None

    def _check_version(self) -> None:
        version = self._expected(self._next_reply(), "hello")
        if version != __version__:
            raise RefusedHost(
                f"has dragoman {version}, this machine has {__version__}",
                path=self.name,
                hint="install the same version on every host",
            )
        self._is_version_checked = True

    def _expected(self, reply: dict[str, Any], kind: str) -> Any:
        if kind not in reply:
            raise DragomanError(
                f"its agent sent {', '.join(reply)} instead of {kind}",
                path=self.name,
                hint=f"check what a login prints there: ssh {self.name}",
            )
        return reply[kind]

    def _next_reply(self, seconds: float | None = None) -> dict[str, Any]:
        try:
            reply = self._replies.get(timeout=seconds)
        except queue.Empty:
            self.drop()
            reply = self._replies.get()
        if reply is None:
            self._replies.put(None)  # for the next caller
            raise self.lost()
        return reply

    def _read_messages(self, messages: IO[str]) -> None:
        for line in messages:
            self._last_message = time.monotonic()
            message = _message(line)
            if "beat" in message:
                continue
            if "line" in message:
                self._on_line(message["line"], message["is_error"])
            elif message.keys() & _EVENTS:
                self._on_event(message)
            elif message:
                self._replies.put(message)
        self._process.wait()
        self._readers[0].join()
        self._replies.put(None)

    def _read_errors(self, errors: IO[str]) -> None:
        for line in errors:
            self._error_lines.append(line.rstrip())

    def lost(self) -> DragomanError:
        """The reason why the agent is gone, taken from the errors of ssh and of the remote shell."""
        self._process.wait()
        self._readers[0].join()
        errors = "\n".join(self._error_lines)
        names = {
            "host": self.name,
            "machine": self.name.rpartition("@")[2],
            "python": shlex.quote(sys.executable),
        }
        for pattern, meaning, hint in _REASONS:
            if re.search(pattern, errors):
                last = next(line for line in reversed(self._error_lines) if re.search(pattern, line))
                return DragomanError(f"{meaning} ({last})", path=self.name, hint=hint.format(**names))
        last = self._error_lines[-1] if self._error_lines else f"exit code {self._process.returncode}"
        return DragomanError(
            f"the connection ended ({last})", path=self.name, hint=f"check it by hand: ssh {self.name}"
        )


def _message(line: str) -> dict[str, Any]:
    """The agent's message in this line; empty for other lines.

    A login shell may print lines before the agent starts, and even those may be valid JSON, such as a number.
    """
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
