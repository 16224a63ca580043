"""A host of a run that is reached through an agent, and connected to again whenever it was lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch import environment
from dragoman.launch.agent import BEAT_SECONDS
from dragoman.launch.channel import Message
from dragoman.launch.death import Cause
from dragoman.launch.events import (
    Events,
    HostIsLeaving,
    HostIsLost,
    HostIsUp,
    RankEnded,
    RankExamined,
    RankSaid,
)
from dragoman.launch.hosts import Host, is_this_machine
from dragoman.launch.launcher import Launcher
from dragoman.launch.rank_processes import RankProcess
from dragoman.launch.remote import RefusedHost, Remote
from dragoman.sync.silence import SILENT_SECONDS

_RETRY_SECONDS = 3.0
_CLOSE_SECONDS = 30.0  # for an agent to end after its ranks have


@dataclass(frozen=True)
class TrainingCommand:
    """The training that every host takes part in."""

    config: str  # every setting as TOML, so that the hosts do not need the config file
    data: Path
    run: Path
    start_from: Path | None
    command: str  # as the user typed it
    launcher: Launcher | None = None  # the process that starts the ranks

    @property
    def options(self) -> list[str]:
        """The options of `dragoman train` on a host. Paths are absolute, as hosts start in other folders."""
        options = ["--data", str(self.data.absolute()), "--run", str(self.run.absolute())]
        return options + (["--from", str(self.start_from.absolute())] if self.start_from else [])


class RemoteHost:
    def __init__(
        self,
        number: int,
        host: Host,
        training: TrainingCommand,
        key: str,
        events: Events,
        show: Callable[[str, bool], None],
    ):
        """`key` is known to the agents of this launcher alone; `show` prints a line of a rank."""
        self.name, self.workers = host.name, host.workers
        self._number, self._training, self._key = number, training, key
        self._events, self._show = events, show
        self._remote: Remote | None = None
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._keep_connected, daemon=True)

    @property
    def silent_seconds(self) -> float:
        return self._remote.silent_seconds if self._remote else 0.0

    @property
    def connection(self) -> Remote:
        """Raises unless the host is connected."""
        if self._remote is None:
            raise DragomanError("not connected", path=self.name)
        return self._remote

    def open(self) -> None:
        self._thread.start()
        threading.Thread(target=self._beat, daemon=True).start()

    def start(self, process: RankProcess) -> None:
        self._send(do="start", slot=process.slot, process=process.number)

    def tell(self, slot: int, message: Message) -> None:
        self._send(do="tell", slot=slot, message=message)

    def kill(self, slot: int) -> None:
        self._send(do="kill", slot=slot)

    def examine(self, process: RankProcess) -> None:
        self._send(do="examine", slot=process.slot, process=process.number)

    def drop(self) -> None:
        if self._remote:
            self._remote.drop()

    def close(self) -> None:
        """Lets the agent save and end its ranks, and returns when it has."""
        self._is_closed.set()
        if remote := self._remote:
            remote.drop() if remote.silent_seconds > SILENT_SECONDS else remote.hang_up()
        self._thread.join(_CLOSE_SECONDS)
        self.drop()

    def _send(self, **request: Any) -> None:
        if self._remote:
            self._remote.send(**request)

    def _beat(self) -> None:
        while not self._is_closed.wait(BEAT_SECONDS):
            self._send(do="beat")

    def _keep_connected(self) -> None:
        while not self._is_closed.is_set():
            lost = self._connection()
            self._events.put(lost)
            if lost.is_refused:
                return
            self._is_closed.wait(_RETRY_SECONDS)

    def _connection(self) -> HostIsLost:
        """One connection from its beginning to its end, and why it ended."""
        try:
            with Remote(self.name, self._show, self._heard) as remote:
                remote.call(
                    "begin",
                    key=self._key,
                    config=self._training.config,
                    options=self._training.options,
                    command=self._training.command,
                    workers=self.workers,
                    run=str(self._training.run.absolute()),
                    variables=environment.for_every_host(),
                    launcher=self._told_launcher(),
                )
                self._remote = remote
                self._events.put(HostIsUp(self._number))
                remote.wait()
                lost = remote.lost()
        except DragomanError as error:
            lost = error
        finally:
            self._remote = None
        cause = Cause("host_unreachable", lost.what)
        return HostIsLost(self._number, cause, isinstance(lost, RefusedHost), lost.hint)

    def _told_launcher(self) -> dict[str, Any] | None:
        """What the first host is told of the launcher; on its own machine it tells itself.

        No other host is told: with a shared disk the last one to write would name its own agent.
        """
        told = self._training.launcher if self._number == 0 else None
        return told.model_dump() if told and not is_this_machine(self.name) else None

    def _heard(self, message: dict[str, Any]) -> None:
        if "leaving" in message:
            self._events.put(HostIsLeaving(self._number, message["leaving"]))
            return
        process = RankProcess(message["slot"], message["process"])
        if "said" in message:
            self._events.put(RankSaid(self._number, process, message["said"]))
        elif "exit" in message:
            cause = Cause(message["kind"], message["detail"])
            self._events.put(RankEnded(self._number, process, message["exit"], cause))
        else:
            found = message["examined"]
            why = Cause(found["kind"], found["detail"]) if found else None
            self._events.put(RankExamined(self._number, process, why, message["stacks"]))
