"""This machine as the only host of a run: `--workers`. Its ranks share our terminal."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Sequence

from dragoman.launch import environment
from dragoman.launch.channel import Message
from dragoman.launch.events import Events, HostIsUp, RankEnded, RankExamined, RankSaid
from dragoman.launch.rank_processes import Listeners, RankProcess, RankProcesses
from dragoman.launch.restarts import Restarts
from dragoman.launch.supervisor import Supervisor
from dragoman.rundir import RunFolder

_NUMBER = 0  # of the only host
_LOOPBACK = "127.0.0.1"


class LocalHost:
    silent_seconds = 0.0

    def __init__(self, words: Sequence[str], workers: int, run: RunFolder, events: Events):
        self.name, self.workers, self._events = socket.gethostname(), workers, events
        self._processes = RankProcesses(
            words,
            workers,
            run,
            environment.of_run(secrets.token_hex(16)),
            Listeners(
                heard=lambda process, message: events.put(RankSaid(_NUMBER, process, message)),
                ended=lambda process, code, cause: events.put(RankEnded(_NUMBER, process, code, cause)),
            ),
        )

    def open(self) -> None:
        self._events.put(HostIsUp(_NUMBER))

    def start(self, process: RankProcess) -> None:
        self._processes.start(process)

    def tell(self, slot: int, message: Message) -> None:
        self._processes.tell(slot, message)

    def kill(self, slot: int) -> None:
        self._processes.kill(slot)

    def examine(self, process: RankProcess) -> None:
        def examine() -> None:
            self._events.put(RankExamined(_NUMBER, process, *self._processes.examine(process.slot)))

        threading.Thread(target=examine, daemon=True).start()

    def drop(self) -> None: ...

    def close(self) -> None:
        self._processes.end(0.0)


class _OnLoopback:
    def address(self, hosts: list[int]) -> tuple[str, list[int]]:
        return _LOOPBACK, hosts


def run(words: Sequence[str], workers: int, run_folder: RunFolder, restarts: Restarts) -> int:
    """Runs `python WORDS` as the ranks of a training on this machine, to its end; the exit code."""
    events: Events = Events()
    host = LocalHost(words, workers, run_folder, events)
    return Supervisor([host], events, _OnLoopback(), restarts, 0).run()
