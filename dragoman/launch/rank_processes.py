"""The rank processes of a run on this machine: starts them, hears them, and says how each one ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, NamedTuple

from dragoman import orphans, stacks
from dragoman.launch import channel, death, environment
from dragoman.launch.channel import Channel, Message
from dragoman.launch.death import Cause
from dragoman.rundir import RunFolder

_POLL_SECONDS = 0.05
_LAST_LINES_SECONDS = 2.0  # to read what a rank printed last; a process that it started may print on
_KILLED_SECONDS = 10.0  # for the kernel to end a killed process; one that waits for a dead disk never ends


class RankProcess(NamedTuple):
    """A rank's process: the slot on its host, and the number that the supervisor gave it."""

    slot: int
    number: int


@dataclass(frozen=True, kw_only=True)
class Listeners:
    """Who hears of the processes. Each is called in a thread of the process's own."""

    heard: Callable[[RankProcess, Message], None]
    ended: Callable[[RankProcess, int, Cause], None]  # with the exit code
    line: Callable[[str, bool], None] | None = None  # what it prints; None: it shares our output


@dataclass(frozen=True)
class _Started:
    process: subprocess.Popen[str]
    channel: Channel


class RankProcesses:
    def __init__(
        self, words: Sequence[str], workers: int, run: RunFolder, variables: Mapping[str, str], to: Listeners
    ):
        """`words` follow Python's name on the command line, `variables` join the environment of each rank."""
        self._words, self._to = words, to
        self._environment = os.environ | variables | environment.for_ranks(workers)
        self._run = run
        self._watch = death.Watch()
        self._running: dict[int, _Started] = {}

    def start(self, this: RankProcess) -> None:
        """Starts a process. Only the main thread may: the kernel tells a child that its parent has ended as
        soon as the thread that started it has."""
        ours, theirs = channel.pair()
        pipe = subprocess.PIPE if self._to.line else None
        with theirs:
            process = subprocess.Popen(
                [sys.executable, *self._words],
                env=self._environment | {channel.CONTROL: str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                text=True,
                errors="replace",
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C reaches only the launcher, which passes it on
                preexec_fn=orphans.end_with_parent,
            )
        started = self._running[this.slot] = _Started(process, ours)
        threading.Thread(target=self._follow, args=(this, started), daemon=True).start()

    def tell(self, slot: int, message: Message) -> None:
        if started := self._running.get(slot):
            started.channel.send(**message)

    def kill(self, slot: int) -> None:
        if started := self._running.get(slot):
            started.process.kill()

    def examine(self, slot: int) -> tuple[Cause | None, str]:
        """Why a rank is silent or slow, and the file with its stacks. Takes seconds."""
        if not (started := self._running.get(slot)):
            return None, ""
        pid = started.process.pid
        cause, file = death.why_silent(pid), self._run.stacks_of(pid)
        text = stacks.of_process(pid, file)
        with suppress(OSError):  # a full disk, or no run folder yet: the cause is told all the same
            file.parent.mkdir(exist_ok=True)
            with file.open("a") as opened:
                opened.write(f"\n--- {time.strftime('%Y-%m-%d %H:%M:%S')} ---\n{text}\n")
        return cause, str(file.relative_to(self._run.path)) if file.exists() else ""

    def end(self, seconds: float) -> None:
        """Closes the channels, so that the ranks save and exit; kills those left after this many seconds."""
        for started in self._running.values():
            started.channel.close()
        deadline = time.monotonic() + seconds
        while self._running and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        for slot in list(self._running):
            self.kill(slot)
        deadline = time.monotonic() + _KILLED_SECONDS
        while self._running and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _follow(self, this: RankProcess, started: _Started) -> None:
        forwarders = self._forwarders(started.process)
        for message in started.channel.messages():
            self._to.heard(this, message)
        code = started.process.wait()
        for thread in forwarders:
            thread.join(_LAST_LINES_SECONDS)
        started.channel.close()
        cause = self._watch.cause(started.process.pid, code)
        stacks.remove_unless_used(self._run.stacks_of(started.process.pid))
        if self._running.get(this.slot) is started:
            del self._running[this.slot]
        self._to.ended(this, code, cause)

    def _forwarders(self, process: subprocess.Popen[str]) -> list[threading.Thread]:
        streams = ((process.stdout, False), (process.stderr, True))
        threads = [
            threading.Thread(target=self._forward, args=(stream, is_error), daemon=True)
            for stream, is_error in streams
            if stream
        ]
        for thread in threads:
            thread.start()
        return threads

    def _forward(self, stream: IO[str], is_error: bool) -> None:
        assert self._to.line
        with stream:
            for line in stream:
                self._to.line(line.rstrip("\n"), is_error)
