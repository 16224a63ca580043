"""What happens in a run, as its supervisor hears of it, and what it can do to a host."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dragoman.launch.channel import Message
from dragoman.launch.death import Cause
from dragoman.launch.rank_processes import RankProcess


@dataclass(frozen=True)
class RankSaid:
    host: int
    process: RankProcess
    message: Message


@dataclass(frozen=True)
class RankEnded:
    host: int
    process: RankProcess
    code: int
    cause: Cause


@dataclass(frozen=True)
class RankExamined:
    """Why a rank is silent or slow, and the file with its stacks: the answer to `HostLink.examine`."""

    host: int
    process: RankProcess
    cause: Cause | None
    stacks: str


@dataclass(frozen=True)
class HostIsUp:
    host: int


@dataclass(frozen=True)
class HostIsLost:
    host: int
    cause: Cause
    is_refused: bool = False  # it answers, but cannot take part; it is not tried again
    hint: str = ""


@dataclass(frozen=True)
class HostIsLeaving:
    """The host was told to shut down."""

    host: int
    signal: int


@dataclass(frozen=True)
class StopRequest:
    signal: int


Event = RankSaid | RankEnded | RankExamined | HostIsUp | HostIsLost | HostIsLeaving | StopRequest
Events = queue.SimpleQueue[Event]


class HostLink(Protocol):
    """One host of a run. All that happens there arrives as events."""

    name: str
    workers: int

    @property
    def silent_seconds(self) -> float:
        """Seconds without a sign of the host."""

    def open(self) -> None:
        """Begins to connect, and does so again whenever the host is lost."""

    def start(self, process: RankProcess) -> None: ...
    def tell(self, slot: int, message: Message) -> None: ...
    def kill(self, slot: int) -> None: ...
    def examine(self, process: RankProcess) -> None: ...

    def drop(self) -> None:
        """Gives up the connection to a silent host."""

    def close(self) -> None:
        """Ends the connection and everything that is left there."""


class Meeting(Protocol):
    def address(self, hosts: list[int]) -> tuple[str, list[int]]:
        """Where ranks of these hosts can meet, on the first of them, and those that reach it."""


Status = Literal["absent", "starting", "ready", "placed", "ended"]


@dataclass
class Slot:
    """A place for a rank on a host, and the process that is in it now."""

    host: int
    number: int
    process: int = 0  # 0: none
    status: Status = "absent"
    step: int = -1  # of the state in its memory; -1: it has none
    rank: int = -1  # in the newest world that the process was in
    at: dict[str, Any] = field(default_factory=dict)  # step, activity and phase
    heard: float = 0.0  # when the process last sent something
    moved: float = 0.0  # when it last did something else than before
    failure: str = ""  # the error that it ends with
    needs_new_process: bool = False
    is_final: bool = False  # and would end with again
    is_quiet: bool = False  # it ends because of another rank's error
    failed_starts: int = 0  # processes in a row that ended before they had a place

    @property
    def is_live(self) -> bool:
        return self.status in ("starting", "ready", "placed")

    def begin(self, process: int) -> None:
        self.process, self.status, self.step, self.rank = process, "starting", -1, -1
        self.at, self.failure, self.is_quiet, self.needs_new_process = {}, "", False, False
        self.is_final = False
        self.heard = self.moved = time.monotonic()

    def vacate(self) -> None:
        self.process, self.status = 0, "absent"
