"""A rank's membership of a run: which world it belongs to now, and its connection to the supervisor.

A world lasts until a rank is lost or joins; the next one is the next *generation*. The supervisor
(supervisor.py) decides who is in it. The messages, all of them JSON on the rank's channel:

    to the supervisor                         from the supervisor
    ready      I have no world; the step of   join    your place in the next world; rank 0 listens first
               my state, -1 if I have none    regroup leave the world after the current step
    listening  rank 0's port                  cut     the world is over, do not wait for it
    at         every second: step, activity,  stop    stop after the current step, and save
               phase                          leave   exit, you are not needed
    signal     I was sent a signal
    again      I need a new process
    done       trained to the end
    failed     I end with this error

Ranks that torchrun, mpirun or srun started have no supervisor: they belong to one world and end with it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from queue import SimpleQueue

from pydantic import BaseModel

from dragoman.errors import DragomanError
from dragoman.faults import FaultKind
from dragoman.launch import channel
from dragoman.launch.channel import Channel, Message
from dragoman.leave import leave
from dragoman.measure import clock
from dragoman.sync import connections
from dragoman.sync.route import listen_at
from dragoman.sync.world import RankPlace

AT_SECONDS = 1.0  # between two messages on where a rank is
_WORKING_SHARE = 0.2  # of a core; the meters of a rank that waits use less
_CUT_SECONDS = 0.2  # a collective may open a connection after a cut, so it is repeated
# How long ranks without a supervisor may take for the step under way before they give the others up. One that
# is cut off from them can only wait.
_ORPHAN_SECONDS = 60.0


class FaultNote(BaseModel):
    """What the supervisor knows of a fault, for the records. Clocks differ between hosts: it gives ages."""

    kind: FaultKind
    detail: str = ""
    host: str = ""
    rank: int | None = None
    step: int = 0  # completed by then, as far as ranks had said; they speak once a second
    phase: str = ""
    stacks: str = ""
    ended_world: bool = True  # False: it befell a host or rank that had yet to join
    age_seconds: float = 0.0  # since the last sign of life of what failed
    noticed_seconds: float = 0.0  # from that sign until somebody noticed


@dataclass(frozen=True)
class Invitation:
    """A place in a world, and what its ranks should know."""

    place: RankPlace
    generation: int = 0
    faults: Sequence[FaultNote] = ()  # since the world before
    joined: Sequence[str] = ()  # hosts that are back
    received: float = field(default_factory=clock.seconds)


class Membership:
    """Of the one world that this process was started for."""

    is_supervised = False
    is_orphan = False  # has the supervisor gone?
    is_cut = False  # is the world over, as the supervisor says?

    @property
    def regroup_wanted(self) -> bool:
        """Shall this rank leave its world after the current step?"""
        return False

    def join(self, step: int) -> Invitation:
        """Waits for a place in a world; `step` is that of the state in memory, -1 without one."""
        return Invitation(RankPlace.of_environment())

    def left(self) -> None:
        """Says that this rank has left its world."""

    def at(self, step: int, activity: str) -> None:
        """Notes what the rank does: starting, step, evaluation, checkpoint."""

    def note_phase(self, phase: Callable[[], str]) -> None:
        """Takes the function that tells the phase of a step; another thread calls it."""

    def on_stop(self, note: Callable[[int], None]) -> None:
        """Takes the function to call with a signal when the run is to stop."""

    def signalled(self, number: int) -> bool:
        """Passes a signal on to the supervisor; False if there is none, so that the rank acts on it."""
        return False

    def begin_again(self) -> None:
        """Ends this process and has another one started in its place, if there is somebody to do so."""

    def done(self, reason: str) -> None: ...

    def failed(self, error: BaseException) -> None: ...


class Supervised(Membership):
    is_supervised = True

    def __init__(self, supervisor: Channel):
        self._supervisor = supervisor
        self._orders: SimpleQueue[Message | None] = SimpleQueue()
        self._generation = 0  # of the newest world that this rank had a place in
        self._is_inside = False  # is it still in that world?
        self._regroup = -1  # the generation that was last asked to end
        self._changing = threading.Lock()  # a cut must not reach into the next world
        self._at: tuple[int, str] = (-1, "starting")
        self._moved = time.monotonic()  # when `_at` last changed
        self._phase: Callable[[], str] = lambda: "between steps"
        self._stop: Callable[[int], None] | None = None
        self._stop_wanted: int | None = None  # before anybody took it
        for work in (self._listen, self._tell):
            threading.Thread(target=work, daemon=True).start()

    @property
    def regroup_wanted(self) -> bool:
        return self._regroup == self._generation

    def join(self, step: int) -> Invitation:
        self.at(step, "starting")  # until its first step: to take over a state may take long
        if self.is_orphan:
            leave(1)
        self._supervisor.send(ready=step)
        order = self._orders.get()
        if order is None or "leave" in order:  # the supervisor is gone, or does not need this rank
            leave(0 if order else 1)
        return self._accepted(order["join"])

    def _accepted(self, order: Message) -> Invitation:
        generation, listener = order["generation"], None
        if order["rank"] == 0:
            listening = listen_at(order["address"], 0)
            order["port"] = listening.getsockname()[1]
            listener = listening.detach()
            self._supervisor.send(listening=order["port"])
        told = {field.name: order[field.name] for field in fields(RankPlace) if field.name in order}
        place = RankPlace(**told, listener=listener)
        with self._changing:
            self._generation, self._is_inside, self.is_cut = generation, True, False
        faults = [FaultNote.model_validate(fault) for fault in order["faults"]]
        return Invitation(place, generation, faults, order["joined"])

    def left(self) -> None:
        with self._changing:
            self._is_inside = False

    def at(self, step: int, activity: str) -> None:
        self._at, self._moved = (step, activity), time.monotonic()

    def note_phase(self, phase: Callable[[], str]) -> None:
        self._phase = phase

    def on_stop(self, note: Callable[[int], None]) -> None:
        self._stop = note
        if self._stop_wanted is not None:
            note(self._stop_wanted)

    def signalled(self, number: int) -> bool:
        self._supervisor.send(signal=number)
        return True  # also as an orphan: the kernel sends SIGTERM when the agent ends, and others may go on

    def begin_again(self) -> None:
        self._supervisor.send(again=True)
        leave(0)

    def done(self, reason: str) -> None:
        self._supervisor.send(done=reason)

    def failed(self, error: BaseException) -> None:
        """Says how this rank ends: `is_final` if starting it again would end in the same way."""
        is_ours = isinstance(error, DragomanError | OSError)
        text = "" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
        self._supervisor.send(failed=text, is_final=is_ours, is_quiet=isinstance(error, SystemExit))

    def _listen(self) -> None:
        for message in self._supervisor.messages():
            if "cut" in message:
                threading.Thread(target=self._cut, args=(message["cut"],), daemon=True).start()
            elif "regroup" in message:
                self._regroup = message["regroup"]
            elif "stop" in message:
                self._want_stop(message["stop"])
            else:
                self._orders.put(message)
        self.is_orphan = True
        self._orders.put(None)
        self._give_up_when_stuck()

    def _want_stop(self, number: int) -> None:
        self._stop_wanted = number
        if self._stop:
            self._stop(number)

    def _cut(self, generation: int) -> None:
        """Ends what the main thread waits for in this world, until it has left it.

        The main thread may still have to take up its place there: orders arrive in another thread.
        """
        while True:
            with self._changing:
                is_there = self._generation == generation
                if self._generation > generation or (is_there and not self._is_inside):
                    return
                if is_there:
                    self.is_cut = True
                    connections.cut()
            time.sleep(_CUT_SECONDS)

    def _give_up_when_stuck(self) -> None:
        """Without a supervisor nobody will say that the others are gone."""
        while True:
            time.sleep(AT_SECONDS)
            if not self._is_inside and self._at[0] < 0:
                os._exit(1)  # still starting: nothing to save
            if self._is_inside and time.monotonic() - self._moved > _ORPHAN_SECONDS:
                self._cut(self._generation)

    def _tell(self) -> None:
        """Says where this rank is. Outside steps, where nothing else changes, work on the cores counts."""
        seconds_of_work, spent = 0, time.process_time()
        while not self.is_orphan:
            step, activity = self._at
            at: Message = {"step": step, "activity": activity, "phase": self._phase()}
            self._supervisor.send(at=at if activity == "step" else at | {"work": seconds_of_work})
            time.sleep(AT_SECONDS)
            before, spent = spent, time.process_time()
            seconds_of_work += spent - before > _WORKING_SHARE * AT_SECONDS


def of_this_process() -> Membership:
    return Supervised(Channel.of_environment()) if channel.CONTROL in os.environ else Membership()
