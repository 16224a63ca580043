"""The agent, a process that the launcher starts on a host: `python -m dragoman.launch.agent TABLE`.

The launcher talks to it through ssh, or on its own machine through a pipe. Requests and replies are lines of
JSON on standard input and output, so nothing a user typed is ever part of a remote shell command. When its
input ends, because the launcher ended, was killed or lost the connection, the agent lets its ranks save,
kills those that remain, and exits. Nothing stays on the host.

    request                                   reply
    {"do": NAME, ...}                         {"answer": ...} or {"error": ..., "hint": ...}: the result of
                                              a function in the table
    {"do": "begin", "key": ..., ...}          {"answer": true}: ready to start ranks of this training; those
                                              that an earlier agent left behind are killed
    {"do": "start", "slot": .., "process": ..}   what ranks print: {"line": ..., "is_error": ...}, what they
                                              say: {"said": {...}, "slot": ..., "process": ...}, and their end
    {"do": "tell", "slot": .., "message": ..} none; the message goes to the rank
    {"do": "kill", "slot": ...}               none
    {"do": "examine", "slot": .., "process": ..}  {"examined": {...}, "slot": ..., "process": ...}
    {"do": "beat"}                            none; once ranks have begun, a launcher that is silent is lost

Every two seconds the agent sends {"beat": true}: a launcher that receives nothing has lost the host. If the
agent is sent a signal, it sends {"leaving": SIGNAL}: the host is about to go.

TABLE is the module whose CALLS lists every function that may be called. The launcher names it on the command
line, so this file need not import the folders whose functions it calls.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import psutil

from dragoman import __version__, orphans, temporary
from dragoman.errors import DragomanError
from dragoman.launch import environment
from dragoman.launch.channel import Message
from dragoman.launch.death import Cause
from dragoman.launch.environment import SAVE_SECONDS
from dragoman.launch.rank_processes import Listeners, RankProcess, RankProcesses
from dragoman.rundir import RunFolder
from dragoman.sync.silence import SILENT_SECONDS

BEAT_SECONDS = 2.0
_POLL_SECONDS = 0.5
_LAUNCHER_LOST_SECONDS = 2 * SILENT_SECONDS  # by then the launcher has long given this host up


class Agent:
    def __init__(self, calls: Mapping[str, str], requests: IO[str], replies: IO[str]):
        """`calls` maps the name of a call to its function, as "module:function"."""
        self._calls, self._requests, self._replies = calls, requests, replies
        self._sending = threading.Lock()
        self._ranks: RankProcesses | None = None
        self._heard = time.monotonic()  # when the launcher last sent anything
        self._open = ExitStack()

    def serve(self) -> None:
        """Handles requests until the input ends."""
        self._send(hello=__version__)
        threading.Thread(target=self._beat, daemon=True).start()
        for line in self._requests:
            self._heard = time.monotonic()
            request = json.loads(line)
            match request.pop("do"):
                case "begin":
                    self._begin(**request)
                case "start":
                    # Here and in no other thread: the kernel signals a child that its parent died as soon as
                    # the thread that started it ends.
                    self._of_ranks().start(RankProcess(request["slot"], request["process"]))
                case "tell":
                    self._of_ranks().tell(request["slot"], request["message"])
                case "kill":
                    self._of_ranks().kill(request["slot"])
                case "examine":
                    threading.Thread(target=self._examine, kwargs=request, daemon=True).start()
                case "beat":
                    pass
                case name:
                    # in a thread, so that the end of input is noticed while a call is still running
                    threading.Thread(target=self._call, args=(name, request), daemon=True).start()

    def end(self) -> None:
        """Lets the ranks save and exit, and kills those that remain, and what killed ranks have started."""
        if self._ranks:
            self._ranks.end(SAVE_SECONDS)
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self._open.close()

    def leaving(self, number: int) -> bool:
        """Tells the launcher that this host is to go; False if it has no ranks and may end at once."""
        # In a thread: a signal handler may interrupt this thread while it sends.
        threading.Thread(target=self._send, kwargs={"leaving": number}, daemon=True).start()
        return self._ranks is not None

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
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

    def _begin(
        self,
        key: str,
        config: str,
        options: Sequence[str],
        command: str,
        workers: int,
        run: str,
        variables: Mapping[str, str],
        launcher: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepares to start ranks. `config` holds every setting, so the hosts need not have the file.

        `launcher` says which process on which other machine trains the run.
        """
        environment.end_ranks_of(key)
        folder = self._open.enter_context(temporary.folder("dragoman-"))
        file = folder / "config.toml"
        file.write_text(config, encoding="utf-8")
        if launcher:
            from dragoman.launch.launcher import note_on_host

            with suppress(
                OSError, ValueError, DragomanError
            ):  # the ranks will say what is wrong with the folder
                note_on_host(RunFolder(Path(run)), launcher)
        self._ranks = RankProcesses(
            ["-m", "dragoman", "train", str(file), *options],
            workers,
            RunFolder(Path(run)),
            {**variables, **environment.with_command(command), **environment.of_run(key)},
            Listeners(heard=self._said, ended=self._ended, line=self._line),
        )
        threading.Thread(target=self._watch_launcher, daemon=True).start()
        self._send(answer=True)

    def _of_ranks(self) -> RankProcesses:
        assert self._ranks, "begin comes before start, tell and kill"
        return self._ranks

    def _watch_launcher(self) -> None:
        """Ends the ranks of a host that is cut off: its connection may seem open for hours."""
        while time.monotonic() - self._heard < _LAUNCHER_LOST_SECONDS:
            time.sleep(_POLL_SECONDS)
        self.end()
        os._exit(0)

    def _said(self, process: RankProcess, message: Message) -> None:
        self._send(said=message, slot=process.slot, process=process.number)

    def _ended(self, process: RankProcess, code: int, cause: Cause) -> None:
        self._send(exit=code, kind=cause.kind, detail=cause.detail, slot=process.slot, process=process.number)

    def _line(self, line: str, is_error: bool) -> None:
        self._send(line=line, is_error=is_error)

    def _examine(self, slot: int, process: int) -> None:
        cause, stacks = self._of_ranks().examine(slot)
        found = {"kind": cause.kind, "detail": cause.detail} if cause else None
        self._send(examined=found, stacks=stacks, slot=slot, process=process)

    def _send(self, **message: Any) -> None:
        # The launcher may be gone. The ranks must still save, so failing to write is no error.
        with self._sending, suppress(OSError, ValueError):
            self._replies.write(json.dumps(message) + "\n")
            self._replies.flush()


def main() -> None:
    orphans.adopt_orphans()  # children of a killed rank become children of this process and end with it
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # anything printed here goes to standard error, so that it is not taken for a reply
    agent = Agent(import_module(sys.argv[1]).CALLS, sys.stdin, replies)

    def leave(number: int, frame: object) -> None:
        if not agent.leaving(number):
            sys.exit()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)
    try:
        agent.serve()
    except SystemExit:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    agent.end()
    os._exit(0)  # an ordinary exit would wait for threads that are still busy


if __name__ == "__main__":
    main()
