"""Our hands on another host: `python -m dragoman.launch.agent TABLE`, at the far end of ssh or of a pipe.

Requests and replies are lines of JSON on standard input and output, so no word of a user ever stands in a
remote shell. An agent lives as long as its input: when the launcher ends, is killed or loses the
connection, it has its ranks save, ends what is left of them, and goes. Nothing stays on a host.

    {"do": "stop", "seconds": 300,            ends what runs: asked first by this signal, killed after so many
     "signal": 15}                            seconds
    {"do": "run", "arguments": [...], ...}    starts Python; then {"line": ..., "is_error": ...} for each of
                                              its lines, {"exit": code}, and the agent leaves
    {"beat": true}                            is said all the while: whoever hears nothing has lost the host
    {"do": NAME, ...}                         calls a function of the table; {"answer": ...}, or
                                              {"error": ..., "hint": ...}

TABLE is the module whose CALLS lists every function that may be called. The launcher names it on the command
line, so this file knows none of the folders that offer calls.
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

_KILL_SECONDS = SAVE_SECONDS + 30.0  # a node ends its ranks after SAVE_SECONDS: it is given the time to
_LOOK_SECONDS = 0.1
_BEAT_SECONDS = 2.0


class Agent:
    def __init__(self, calls: Mapping[str, str], requests: IO[str], replies: IO[str]):
        """`calls` maps a name to the function it calls, as "module:function"."""
        self._calls, self._requests, self._replies = calls, requests, replies
        self._speaking = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def serve(self) -> None:
        """Until the input ends."""
        self._say(hello=__version__)
        threading.Thread(target=self._beat, daemon=True).start()
        for line in self._requests:
            request = json.loads(line)
            match request.pop("do"):
                case "run":
                    self._run(**request)
                case "stop":
                    threading.Thread(target=self._stop, kwargs=request, daemon=True).start()
                case name:
                    # in a thread, so that the end of input is noticed also while a call waits for something
                    threading.Thread(target=self._call, args=(name, request), daemon=True).start()

    def end(self) -> None:
        """Everything that was started here, and what that started."""
        self._stop(_KILL_SECONDS)

    def _beat(self) -> None:
        while True:
            time.sleep(_BEAT_SECONDS)
            self._say(beat=True)

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        try:
            module, _, function = self._calls[name].partition(":")
            answer = getattr(import_module(module), function)(**arguments)
        except DragomanError as error:
            what = f"{error.where}: {error.what}" if error.where else error.what
            self._say(error=what, hint=error.hint)
        except Exception as error:  # reported where the user is
            self._say(error=f"{type(error).__name__}: {error}", hint="")
        else:
            self._say(answer=answer)

    def _run(self, arguments: Sequence[str], text: str, environment: dict[str, str]) -> None:
        """In the main thread: a child is told of its parent's death when the *thread* that made it ends."""
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
        with suppress(BrokenPipeError):  # it has ended: its exit code tells
            self._process.stdin.write(text)
            self._process.stdin.close()
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def _watch(self, process: subprocess.Popen[str]) -> None:
        """Passes on all that the process and its ranks say, and leaves with them."""
        assert process.stdout and process.stderr
        passing = [
            threading.Thread(target=self._pass_on, args=(stream, is_error), daemon=True)
            for stream, is_error in ((process.stdout, False), (process.stderr, True))
        ]
        for thread in passing:
            thread.start()
        code = process.wait()
        if code < 0:  # killed: its ranks are told by the kernel, and save
            _end_children(_KILL_SECONDS)
        for thread in passing:
            thread.join()
        self._say(exit=code)
        os._exit(0)

    def _pass_on(self, stream: IO[str], is_error: bool) -> None:
        for line in stream:
            self._say(line=line.rstrip("\n"), is_error=is_error)

    def _stop(self, seconds: float, signal: int = SIGTERM) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal)
            _end_children(seconds)

    def _say(self, **message: Any) -> None:
        # A launcher that is gone hears nothing, and ranks must not be lost for that.
        with self._speaking, suppress(OSError, ValueError):
            self._replies.write(json.dumps(message) + "\n")
            self._replies.flush()


def _end_children(seconds: float) -> None:
    """Waits for children of any depth to end by themselves, and kills those that do not."""
    deadline = time.monotonic() + seconds
    while children := _alive():
        if time.monotonic() > deadline:
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
        time.sleep(_LOOK_SECONDS)


def _alive() -> list[psutil.Process]:
    """Our descendants. One that has ended and was not looked at yet is of no account."""
    alive = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE:
                alive.append(child)
    return alive


def main() -> None:
    orphans.adopt_orphans()  # ranks whose node is killed become our children, and end with us
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed here is no reply
    agent = Agent(import_module(sys.argv[1]).CALLS, sys.stdin, replies)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit())
    try:
        agent.serve()
    except SystemExit:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    agent.end()
    os._exit(0)  # threads may still wait for something


if __name__ == "__main__":
    main()
