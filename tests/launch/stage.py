"""A supervisor whose hosts, ranks and clock are played by a test: what happens, and what it does about it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.launch import events, supervisor
from dragoman.launch.channel import Message
from dragoman.launch.death import Cause
from dragoman.launch.events import (
    Event,
    Events,
    HostIsLeaving,
    HostIsLost,
    HostIsUp,
    RankEnded,
    RankExamined,
    RankSaid,
    StopRequest,
)
from dragoman.launch.rank_processes import RankProcess
from dragoman.launch.restarts import MOST_RESTARTS, Restarts
from dragoman.launch.supervisor import Supervisor

PORT = 40_000
KILLED = Cause("killed", "SIGKILL")
Place = tuple[int, int]  # a host, and a slot on it


@dataclass
class FakeHost:
    number: int
    workers: int
    done: list[tuple[Any, ...]]  # by all hosts, in order
    silent_seconds: float = 0.0
    processes: dict[int, int] = field(default_factory=dict)  # the newest of each slot

    @property
    def name(self) -> str:
        return f"h{self.number}"

    def open(self) -> None: ...

    def start(self, process: RankProcess) -> None:
        self.processes[process.slot] = process.number
        self.done.append(("start", (self.number, process.slot)))

    def tell(self, slot: int, message: Message) -> None:
        self.done.append(("tell", (self.number, slot), message))

    def kill(self, slot: int) -> None:
        self.done.append(("kill", (self.number, slot)))

    def examine(self, process: RankProcess) -> None:
        self.done.append(("examine", (self.number, process.slot)))

    def drop(self) -> None:
        self.done.append(("drop", self.number))

    def close(self) -> None:
        self.done.append(("close", self.number))


class FakeMeeting:
    """Every host reaches the first one, unless it is named here."""

    def __init__(self) -> None:
        self.cut_off: set[int] = set()

    def address(self, hosts: list[int]) -> tuple[str, list[int]]:
        return f"10.0.0.{hosts[0]}", [host for host in hosts if host not in self.cut_off]


class Stage:
    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        workers: Sequence[int] = (1, 1),
        *,
        most_restarts: int = MOST_RESTARTS,
        least_hosts: int = 0,
    ):
        self.now = 1_000.0
        for module in (supervisor, events):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.done: list[tuple[Any, ...]] = []
        self.hosts = [FakeHost(number, count, self.done) for number, count in enumerate(workers)]
        self.meeting = FakeMeeting()
        self._events: Events = Events()
        self._supervisor = Supervisor(
            self.hosts, self._events, self.meeting, Restarts(most_restarts), least_hosts
        )

    @property
    def places(self) -> list[Place]:
        return [(host.number, slot) for host in self.hosts for slot in range(host.workers)]

    @property
    def outcome(self) -> int | None:
        """The exit code, or None while the run continues."""
        return self._supervisor._code if self._supervisor._is_over() else None

    # --- what happens: each returns what the supervisor then does ------------------------------------------

    def happens(self, *happened: Event) -> list[tuple[Any, ...]]:
        begin = len(self.done)
        for event in happened:
            self._events.put(event)
        if happened:
            self._supervisor._take_events()
        self._supervisor._decide(self.now)
        return self.done[begin:]

    def passes(self, seconds: float) -> list[tuple[Any, ...]]:
        """Time in which live ranks of the newest world say that they are still where they were."""
        self.now += seconds
        return self.happens()

    def process(self, place: Place) -> RankProcess:
        return RankProcess(place[1], self.hosts[place[0]].processes[place[1]])

    def says(self, place: Place, **message: Any) -> list[tuple[Any, ...]]:
        return self.happens(RankSaid(place[0], self.process(place), message))

    def is_at(self, place: Place, step: int, activity: str = "step", phase: str = "exchange") -> None:
        self.says(place, at={"step": step, "activity": activity, "phase": phase})

    def ends(self, place: Place, code: int = -signal.SIGKILL, cause: Cause = KILLED) -> list[tuple[Any, ...]]:
        return self.happens(RankEnded(place[0], self.process(place), code, cause))

    def is_found(self, place: Place, cause: Cause, stacks: str = "") -> list[tuple[Any, ...]]:
        return self.happens(RankExamined(place[0], self.process(place), cause, stacks))

    def is_up(self, host: int) -> list[tuple[Any, ...]]:
        return self.happens(HostIsUp(host))

    def is_lost(self, host: int, **how: Any) -> list[tuple[Any, ...]]:
        return self.happens(HostIsLost(host, Cause("host_unreachable", "no route"), **how))

    def is_told_to_leave(self, host: int) -> list[tuple[Any, ...]]:
        return self.happens(HostIsLeaving(host, signal.SIGTERM))

    def is_stopped(self, number: int = signal.SIGTERM) -> list[tuple[Any, ...]]:
        return self.happens(StopRequest(number))

    # --- worlds ---------------------------------------------------------------------------------------------

    def are_ready(self, *places: Place, step: int = -1) -> list[tuple[Any, ...]]:
        """All of them at once; then the first rank of the world that forms, if one does, listens."""
        did = self.happens(*(RankSaid(at[0], self.process(at), {"ready": step}) for at in places))
        first = [place for place, order in joins(did).items() if order["rank"] == 0]
        return did + (self.says(first[0], listening=PORT) if first else [])

    def begins(self, step: int = -1) -> dict[Place, Message]:
        """The first world, of all ranks of all hosts, which may have made some steps: their orders."""
        self.happens(*(HostIsUp(host.number) for host in self.hosts))
        orders = joins(self.are_ready(*self.places))
        if step >= 0:
            for place in self.places:
                self.is_at(place, step)
        return orders

    def regroups(self, *places: Place, step: int) -> dict[Place, Message]:
        """These ranks come out of a world; the orders for the next one."""
        return joins(self.are_ready(*places, step=step))


def joins(done: list[tuple[Any, ...]]) -> dict[Place, Message]:
    return {what[1]: what[2]["join"] for what in done if what[0] == "tell" and what[2].keys() == {"join"}}


def told(done: list[tuple[Any, ...]], word: str) -> dict[Place, Any]:
    """Who was sent a message of this kind, with what."""
    return {what[1]: what[2][word] for what in done if what[0] == "tell" and word in what[2]}


def did(done: list[tuple[Any, ...]], what: str) -> list[Any]:
    """The places or hosts that something other than a message was done to."""
    return [each[1] for each in done if each[0] == what]
