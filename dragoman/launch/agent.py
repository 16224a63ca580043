"""The agent, a process that the launcher starts on a host: `python -m dragoman.launch.agent TABLE`.

The launcher talks to it through ssh, or on its own machine through a pipe. Requests and replies are lines of
JSON on standard input and output, so nothing a user typed is ever part of a remote shell command. When its
input ends, because the launcher ended, was killed or lost the connection, the agent lets its ranks save,
kills those that remain, and exits. Nothing stays on the host.

    request                                   reply
    {"do": NAME, ...}                         {"answer": ...} or {"error": ..., "hint": ...}: the result of
                                              a function in the table
    {"do": "run", "arguments": [...], ...}    {"line": ..., "is_error": ...} for each line that this Python
                                              process prints, then {"exit": code}; then the agent exits
    {"do": "stop", "seconds": 300,            none; the process gets this signal, and after this many
     "signal": 15}                            seconds it is killed

Every two seconds the agent sends {"beat": true}: a launcher that receives nothing has lost the host.

TABLE is the module whose CALLS lists every function that may be called. The launcher names it on the command
line, so this file need not import the folders whose functions it calls.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from signal import SIGTERM
from typing import IO, Any

import psutil

from dragoman import __version__, orphans
from dragoman.errors import DragomanError
from dragoman.launch.environment import SAVE_SECONDS

_KILL_SECONDS = SAVE_SECONDS + 30.0  # a node kills its ranks after SAVE_SECONDS: leave it time for that
_POLL_SECONDS = 0.1
_BEAT_SECONDS = 2.0


class Agent:
    def __init__(self, calls: Mapping[str, str], requests: IO[str], replies: IO[str]):
        """`calls` maps the name of a call to its function, as "module:function"."""
        self._calls, self._requests, self._replies = calls, requests, replies
        self._sending = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def serve(self) -> None:
        """Handles requests until the input ends."""
        self._send(hello=__version__)
        threading.Thread(target=self._beat, daemon=True).start()
        for line in self._requests:
            request = json.loads(line)
            match request.pop("do"):
                case "run":
                    self._run(**request)
                case "stop":
                    threading.Thread(target=self._stop, kwargs=request, daemon=True).start()
                case name:
                    # in a thread, so that the end of input is noticed while a call is still running
                    threading.Thread(target=self._call, args=(name, request), daemon=True).start()

    def end(self) -> None:
        """Ends the process that was started and all its descendants."""
        self._stop(_KILL_SECONDS)

    def _beat(self) -> None:
        while True:
            time.sleep(_BEAT_SECONDS)
            self._send(beat=True)

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        try:
            module, _, function = self._calls[name].partition(":")
            answer = getattr(import_module(module), function)(**arguments)
        except DragomanError as error:
            what = f"{error.where}: {error.what}" if error.where else error.what
            self._send(error=what, hint=error.hint)
        except Exception as error:  # the launcher shows it to the user
            self._send(error=f"{type(error).__name__}: {error}", hint="")
        else:
            self._send(answer=answer)

    def _run(self, arguments: Sequence[str], text: str, environment: dict[str, str]) -> None:
        """Starts Python. Only the main thread may do this: the kernel signals a child that its parent died
        as soon as the thread that started it ends."""
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=os.environ | environment,
            start_new_session=True,
        )
        assert self._process.stdin
        with suppress(BrokenPipeError):  # the process has ended; its exit code is reported
            self._process.stdin.write(text)
            self._process.stdin.close()
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def _watch(self, process: subprocess.Popen[str]) -> None:
        """Forwards everything that the process and its ranks print, and exits when they have ended."""
        assert process.stdout and process.stderr
        forwarders = [
            threading.Thread(target=self._forward, args=(stream, is_error), daemon=True)
            for stream, is_error in ((process.stdout, False), (process.stderr, True))
        ]
        for thread in forwarders:
            thread.start()
        code = process.wait()
        if code < 0:  # the process was killed: the kernel signals its ranks, which then save
            _end_children(_KILL_SECONDS)
        for thread in forwarders:
            thread.join()
        self._send(exit=code)
        os._exit(0)

    def _forward(self, stream: IO[str], is_error: bool) -> None:
        for line in stream:
            self._send(line=line.rstrip("\n"), is_error=is_error)

    def _stop(self, seconds: float, signal: int = SIGTERM) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal)
            _end_children(seconds)

    def _send(self, **message: Any) -> None:
        # The launcher may be gone. The ranks must still save, so failing to write is no error.
        with self._sending, suppress(OSError, ValueError):
            self._replies.write(json.dumps(message) + "\n")
            self._replies.flush()


def _end_children(seconds: float) -> None:
    """Waits until all descendants have ended, and kills those still running after this many seconds."""
    deadline = time.monotonic() + seconds
    while children := _running_descendants():
        if time.monotonic() > deadline:
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
        time.sleep(_POLL_SECONDS)


def _running_descendants() -> list[psutil.Process]:
    """This process's descendants, without zombies."""
    running = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE:
                running.append(child)
    return running


def main() -> None:
    orphans.adopt_orphans()  # if a node is killed, its ranks become children of this process and end with it
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # anything printed here goes to standard error, so that it is not taken for a reply
    agent = Agent(import_module(sys.argv[1]).CALLS, sys.stdin, replies)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit())
    try:
        agent.serve()
    except SystemExit:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    agent.end()
    os._exit(0)  # an ordinary exit would wait for threads that are still busy


if __name__ == "__main__":
    main()
