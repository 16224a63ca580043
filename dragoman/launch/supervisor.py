"""Keeps a run going: decides which ranks form its world, and forms it again when one is lost or comes back.

Ranks keep weights and moments in memory from one world to the next, so a fault costs the time to notice it
and to meet again. A rank that was lost is started again, and joins at a step boundary. One thread handles all
events, in the order in which they happened. `membership.py` lists the messages.
"""

from __future__ import annotations

import queue
import secrets
import signal
import time
from collections.abc import Sequence
from typing import Any

from dragoman import terminal
from dragoman.faults import WORDS, FaultKind
from dragoman.launch import stragglers
from dragoman.launch.channel import Message
from dragoman.launch.death import Cause
from dragoman.launch.environment import AFTER_LOSS_SECONDS, SAVE_SECONDS
from dragoman.launch.events import (
    Event,
    Events,
    HostIsLeaving,
    HostIsLost,
    HostIsUp,
    HostLink,
    Meeting,
    RankEnded,
    RankExamined,
    RankSaid,
    Slot,
    Status,
    StopRequest,
)
from dragoman.launch.rank_processes import RankProcess
from dragoman.launch.restarts import Restarts
from dragoman.launch.signals import stop_requests
from dragoman.launch.stragglers import RankBeat
from dragoman.launch.watch import OTHER_SECONDS, ProgressWatch
from dragoman.sync.silence import SILENT_SECONDS

_TICK_SECONDS = 0.1
_REASON_SECONDS = 2.5  # ranks may notice that one is lost before we hear why: a kernel log takes 2 s to read
_RETURN_SECONDS = 15.0  # for ranks to leave a world that is over; those that have not are killed
_EXAMINE_SECONDS = 10.0  # for the stacks of all ranks
_HOSTS_SECONDS = 600.0  # to wait for hosts when there are fewer than --min-hosts
_MEETING_SECONDS = 5.0  # between two tries to reach a host over the network of the ranks
_MOST_FAILED_STARTS = 3


class Supervisor:
    def __init__(
        self,
        hosts: Sequence[HostLink],
        events: Events,
        meeting: Meeting,
        restarts: Restarts,
        least_hosts: int,
    ):
        """`least_hosts`: with fewer than these the run waits; 0: all to begin with, then any."""
        self._hosts, self._events, self._meeting, self._restarts = hosts, events, meeting, restarts
        self._first_hosts, self._least_hosts = least_hosts or len(hosts), max(1, least_hosts)
        self._slots = [
            Slot(number, slot) for number, host in enumerate(hosts) for slot in range(host.workers)
        ]
        self._processes = 0  # started so far
        self._up: set[int] = set()
        self._out: set[int] = set()  # hosts that cannot or shall not take part any more
        self._unreachable: set[int] = set()  # their agents answer, but other hosts' ranks cannot connect
        self._generation = 0  # 0: no world yet
        self._waiting_for_port: list[tuple[Slot, Message]] = []
        self._over_since: float | None = None  # when the newest world was given up
        self._is_explained = True  # is it known why?
        self._regroups = False  # the ranks of the newest world were asked to leave it after their step
        self._examined_since: float | None = None
        self._examined: dict[int, RankExamined] = {}  # by the position of the slot
        self._faults: list[dict[str, Any]] = []  # not yet told to rank 0
        self._watch = ProgressWatch()
        self._next_meeting = 0.0  # when to try again whether a host can be reached
        self._next_count = 0.0  # when to see again whether hosts are enough
        self._lacking_since: float | None = None  # when hosts became too few
        self._stop: int | None = None  # the signal with which everybody is asked to save and exit
        self._is_done = False
        self._ends_since: float | None = None  # when the run began to end, well or not
        self._code = 0

    def run(self) -> int:
        """Runs to the end, and returns the exit code."""
        with stop_requests(lambda number: self._events.put(StopRequest(number))):
            try:
                for host in self._hosts:
                    host.open()
                while not self._is_over():
                    self._take_events()
                    self._decide(time.monotonic())
            finally:
                for slot in self._slots:
                    if slot.process:
                        self._hosts[slot.host].kill(slot.number)
                for host in self._hosts:
                    host.close()
        return self._code

    def _take_events(self) -> None:
        """Handles everything that has happened, so that nothing is decided on half of it."""
        try:
            self._handle(self._events.get(timeout=_TICK_SECONDS))
            while True:
                self._handle(self._events.get_nowait())
        except queue.Empty:
            return

    # --- what happened ------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        match event:
            case RankSaid(host, process, message):
                if slot := self._slot(host, process):
                    slot.heard = time.monotonic()
                    self._hear(slot, message)
            case RankEnded(host, process, code, cause):
                if slot := self._slot(host, process):
                    self._ended(slot, code, cause)
            case RankExamined(host, process):
                if slot := self._slot(host, process):
                    self._examined[self._slots.index(slot)] = event
            case HostIsUp(host):
                self._up.add(host)
                if self._stop is None and host not in self._out:
                    for slot in self._of(host):
                        self._start(slot)
            case HostIsLost(host, cause, is_refused, hint):
                self._lost(host, cause, is_refused, hint)
            case HostIsLeaving(host, number):
                self._let_go(host, number)
            case StopRequest(number):
                self._want_stop(number)

    def _slot(self, host: int, process: RankProcess) -> Slot | None:
        """The slot with this process; None for one that has been replaced or given up."""
        slot = self._of(host)[process.slot]
        return slot if slot.process == process.number else None

    def _hear(self, slot: Slot, message: Message) -> None:
        if "at" in message:
            if slot.at != message["at"]:
                slot.at, slot.moved = message["at"], slot.heard
            if slot.status == "placed":
                slot.step = max(slot.step, slot.at["step"])
                self._watch.note(slot.at, slot.heard)
        elif "ready" in message:
            self._is_ready(slot, message["ready"])
        elif "listening" in message:
            waiting, self._waiting_for_port = self._waiting_for_port, []
            for other, order in waiting:
                self._tell(other, {"join": order | {"port": message["listening"]}})
        elif "signal" in message:
            self._let_go(slot.host, message["signal"])
        elif "done" in message:
            if slot.rank == 0:
                self._is_done = True
                self._end()
            slot.status = "ended"
        elif "again" in message:
            slot.needs_new_process = True
            self._give_up_world(is_explained=False)
        elif "failed" in message:
            slot.failure, slot.is_quiet = message["failed"], message["is_quiet"]
            slot.is_final = message["is_final"]
            if slot.is_final:
                self._has_failed(slot)

    def _is_ready(self, slot: Slot, step: int) -> None:
        if slot.status == "placed" and not self._regroups:
            self._give_up_world(is_explained=False)
        slot.status, slot.step, slot.failed_starts = "ready", step, 0
        if self._ends_since is not None or slot.host in self._out:
            self._tell(slot, {"leave": True})

    def _has_failed(self, slot: Slot) -> None:
        """A rank ends with an error that it would meet again. It has said so itself."""
        others = [other for other in self._slots if other is not slot and other.is_live]
        if slot.step < 0 and len(self._hosts) > 1 and any(other.step >= 0 for other in others):
            self._refuse(slot.host, slot.failure)
            self._give_up_world()
        elif any(other.step >= 0 or other.status == "placed" for other in others):
            self._code = max(1, self._code)
            self._want_stop(signal.SIGTERM)  # the others save what they have
            self._give_up_world()
        else:
            self._end(failed=True)

    def _ended(self, slot: Slot, code: int, cause: Cause) -> None:
        was_placed, status = slot.status == "placed", slot.status
        slot.vacate()
        if slot.is_final or (self._ends_since is not None and not self._is_done):
            self._code = max(self._code, code)
        is_expected = self._ends_since is not None or slot.host in self._out or status == "ended"
        is_expected |= self._stop is not None and code in (0, -self._stop)
        is_expected |= slot.is_final
        if is_expected:
            return
        if slot.needs_new_process and self._stop is None:
            self._start(slot)
            return
        if slot.is_quiet:  # the rank that knows the reason has not spoken yet
            self._give_up_world(is_explained=False)
            return
        kind: FaultKind = "exception" if slot.failure else cause.kind
        self._note_fault(Cause(kind, slot.failure or cause.detail), slot.host, slot, ended_world=was_placed)
        slot.failed_starts += not was_placed
        if was_placed:
            self._give_up_world()
        if slot.failed_starts >= _MOST_FAILED_STARTS and self._generation and len(self._hosts) > 1:
            self._refuse(slot.host, f"its ranks ended {slot.failed_starts} times before they could join")
        self._try_again(slot)

    def _lost(self, host: int, cause: Cause, is_refused: bool, hint: str) -> None:
        name, was_up = self._hosts[host].name, host in self._up
        self._up.discard(host)
        had_a_place = any(slot.status == "placed" for slot in self._of(host))
        for slot in self._of(host):
            slot.vacate()
        if self._ends_since is not None:
            return
        if is_refused or not self._generation:
            self._out.add(host)
            is_needed = not self._generation and len(self._hosts) - len(self._out) < self._first_hosts
            terminal.warn(f"{'error' if is_needed else 'warning'}: {name}: {cause.detail}")
            if hint:
                terminal.warn(f"  try: {hint}")
            if is_needed:
                self._end(failed=True)
        elif was_up and host not in self._out:
            self._note_fault(cause, host, None, ended_world=had_a_place)
            if had_a_place:
                self._give_up_world()
                self._try_again(None)

    def _let_go(self, host: int, number: int) -> None:
        """A host or one of its ranks was sent a signal, though not by us: the host shall leave."""
        if host in self._out or self._stop is not None:
            return
        others = {slot.host for slot in self._slots if slot.is_live} - {host}
        if len(others) < self._least_hosts:
            self._want_stop(number)
            return
        self._note_fault(
            Cause("notice", f"{signal.Signals(number).name}: it leaves after this step"), host, None
        )
        self._out.add(host)
        self._regroup()
        for slot in self._of(host):
            if slot.status == "ready":
                self._tell(slot, {"leave": True})

    def _refuse(self, host: int, why: str) -> None:
        """Trains without a host that cannot take part."""
        self._out.add(host)
        terminal.warn(f"warning: {self._hosts[host].name} cannot take part: {why}")
        for slot in self._of(host):
            self._tell(slot, {"leave": True})

    def _want_stop(self, number: int) -> None:
        is_first, self._stop = self._stop is None, number
        if is_first and not any(slot.step >= 0 or slot.status == "placed" for slot in self._slots):
            self._end(failed=True)  # nobody has anything to save
        for slot in self._with_status("placed"):
            self._tell(slot, {"stop": number})

    # --- what follows -------------------------------------------------------------------------------------

    def _decide(self, now: float) -> None:
        if self._ends_since is not None:
            return
        for host in sorted(self._up):
            if (silent := self._hosts[host].silent_seconds) > SILENT_SECONDS:
                self._hosts[host].drop()
                self._lost(host, Cause("link_cut", f"no sign of it for {silent:.0f} s"), False, "")
        for slot in self._with_status("starting"):
            if now - slot.moved > OTHER_SECONDS:
                self._hosts[slot.host].kill(slot.number)
        if self._generation and not any(slot.is_live for slot in self._slots):
            self._begin_again(now)
            return
        placed = self._with_status("placed")
        if not placed:
            self._form(now)
        elif self._over_since is not None:
            self._hurry(placed, now)
        elif self._examined_since is not None:
            self._conclude(placed, now)
        elif self._watch.silent(placed, now) or self._watch.is_stuck(placed, now):
            self._examined_since, self._examined = now, {}
            for slot in placed:
                self._hosts[slot.host].examine(RankProcess(slot.number, slot.process))
        elif not self._regroups and self._stop is None and self._newcomers(now):
            self._regroup()

    def _begin_again(self, now: float) -> None:
        """Nobody is left: starts the ranks of the hosts that are there, or waits for hosts."""
        if self._stop is not None:
            self._end(failed=True)
        elif hosts := self._up - self._out:
            self._is_explained = True  # as far as it can be
            self._try_again(None)
            for slot in self._slots if self._ends_since is None else ():
                if slot.host in hosts:
                    self._start(slot)
        else:
            self._wait_for_hosts(0, self._least_hosts, now)

    def _hurry(self, placed: Sequence[Slot], now: float) -> None:
        """Kills the ranks that do not leave a world that is over."""
        assert self._over_since is not None
        if now - self._over_since > _RETURN_SECONDS:
            for slot in placed:
                slot.needs_new_process = True  # its end is no fault of its own
                self._hosts[slot.host].kill(slot.number)
            self._over_since = now

    def _conclude(self, placed: Sequence[Slot], now: float) -> None:
        """Says which ranks hold the others up, once their stacks are there, and gives them up."""
        assert self._examined_since is not None
        if len(self._examined) < len(placed) and now - self._examined_since < _EXAMINE_SECONDS:
            return
        self._examined_since = None
        beats = {self._slots.index(slot): self._beat(slot, now) for slot in placed}
        missing = stragglers.missing(list(beats.values()))
        guilty = [slot for slot in placed if beats[self._slots.index(slot)] in missing]
        if missing:
            terminal.warn(stragglers.sentence(missing, list(beats.values())))
        for slot in guilty:
            found = self._examined.get(self._slots.index(slot))
            cause = (found.cause if found else None) or Cause("slow_rank", "it does not move")
            self._note_fault(cause, slot.host, slot, now - slot.moved, found.stacks if found else "")
            self._hosts[slot.host].kill(slot.number)
            slot.vacate()
        if not guilty:
            self._note_fault(Cause("link_cut", "all ranks wait for each other"), None, placed[0], 0.0)
        self._give_up_world()
        self._try_again(None)
        for slot in guilty:
            self._start(slot)

    def _beat(self, slot: Slot, now: float) -> RankBeat:
        found = self._examined.get(self._slots.index(slot))
        is_stopped = found is not None and found.cause is not None and found.cause.kind == "stopped"
        return RankBeat(
            rank=slot.rank,
            host=self._hosts[slot.host].name,
            step=slot.at.get("step", -1),
            phase=slot.at.get("phase", stragglers.BETWEEN_STEPS),
            silent_seconds=now - slot.heard,
            state="stopped" if is_stopped else "silent" if now - slot.heard > SILENT_SECONDS else "running",
        )

    def _newcomers(self, now: float) -> bool:
        """Is a host with all its ranks waiting to join, within reach of the others?"""
        starting = {slot.host for slot in self._with_status("starting")}
        waiting = {slot.host for slot in self._with_status("ready")} - starting - self._out
        if not waiting & self._unreachable or now < self._next_meeting:
            return bool(waiting - self._unreachable)
        self._next_meeting = now + _MEETING_SECONDS
        inside = {slot.host for slot in self._with_status("placed")}
        _, reached = self._meeting.address(sorted(inside | waiting))
        self._unreachable -= set(reached)
        return bool(waiting - self._unreachable)

    def _form(self, now: float) -> None:
        """Forms the next world of those who are ready, if they are enough."""
        ready = [slot for slot in self._with_status("ready") if slot.host not in self._out]
        has_state = any(slot.step >= 0 for slot in ready)
        if self._over_since is not None and not self._is_explained:
            if now - self._over_since < _REASON_SECONDS:
                return
            self._note_fault(Cause("link_cut", "its ranks lost the connection to each other"), None, None)
            self._try_again(None)
        if self._stop is not None and not has_state:
            self._end(failed=True)  # nobody who is left has anything to save
        if not ready or now < self._next_count or self._ends_since is not None:
            return
        if not has_state and self._with_status("starting"):
            return
        if not self._generation and len(self._up) < len(self._hosts) - len(self._out):
            return  # the first world takes all hosts that can be reached
        hosts = sorted({slot.host for slot in ready})
        address, reached = self._meeting.address(hosts)
        if not reached:  # a host is lost at this very moment
            return
        self._leave_out(set(hosts) - set(reached), now)
        needed = self._least_hosts if self._generation else self._first_hosts
        if len(reached) >= (needed if self._stop is None else 1):
            self._lacking_since = None
            self._invite([slot for slot in ready if slot.host in reached], address)
        else:
            self._wait_for_hosts(len(reached), needed, now)

    def _leave_out(self, hosts: set[int], now: float) -> None:
        """Forms a world without the hosts that the first one cannot be reached from."""
        for host in sorted(hosts - self._unreachable):
            self._note_fault(
                Cause("port_blocked", "its ranks cannot connect to those of the first host"), host, None
            )
        self._unreachable = hosts
        if hosts:
            self._next_meeting = now + _MEETING_SECONDS

    def _wait_for_hosts(self, count: int, needed: int, now: float) -> None:
        if self._lacking_since is None:
            self._lacking_since = now
            terminal.warn(
                f"waiting for hosts: {count} of at least {needed} are there (--min-hosts); "
                f"the run ends if that lasts {_HOSTS_SECONDS / 60:.0f} minutes"
            )
        self._next_count = now + _TICK_SECONDS
        if now - self._lacking_since > _HOSTS_SECONDS:
            self._end_with(f"too few hosts for {_HOSTS_SECONDS / 60:.0f} minutes")

    def _invite(self, slots: Sequence[Slot], address: str) -> None:
        self._generation += 1
        self._over_since, self._is_explained, self._regroups = None, True, False
        self._examined_since = None
        self._watch.forget()
        now, key, secret = time.monotonic(), secrets.token_hex(16), secrets.token_hex(32)
        faults = [fault | {"age_seconds": now - fault.pop("moment")} for fault in self._faults]
        has_state = any(slot.step >= 0 for slot in slots)
        new = {slot.host for slot in slots if slot.step < 0} if has_state else set()
        joined = [self._hosts[host].name for host in sorted(new)]
        counts = {host: sum(slot.host == host for slot in slots) for host in {slot.host for slot in slots}}
        places = dict.fromkeys(counts, 0)
        for rank, slot in enumerate(slots):
            slot.rank, slot.status = rank, "placed"
            slot.heard = slot.moved = now
            order: Message = {
                "generation": self._generation,
                "rank": rank,
                "size": len(slots),
                "local_rank": places[slot.host],
                "local_size": counts[slot.host],
                "local_workers": self._hosts[slot.host].workers,
                "address": address,
                "port": 0,
                "key": key,
                "secret": secret,
                "faults": faults,
                "joined": joined,
            }
            places[slot.host] += 1
            if rank == 0:
                self._tell(slot, {"join": order})
            else:
                self._waiting_for_port.append((slot, order))
        self._faults = []
        if self._stop is not None:
            for slot in slots:
                self._tell(slot, {"stop": self._stop})

    # --- means --------------------------------------------------------------------------------------------

    def _give_up_world(self, is_explained: bool = True) -> None:
        """The newest world is over: those in it need not wait for each other."""
        self._is_explained = is_explained if self._over_since is None else self._is_explained or is_explained
        if self._over_since is None:
            self._over_since = time.monotonic()
        for slot, _ in self._waiting_for_port:  # they still wait for a place
            slot.status = "ready"
        self._waiting_for_port = []
        for slot in self._with_status("placed"):
            self._tell(slot, {"cut": self._generation})

    def _regroup(self) -> None:
        """Asks the newest world to end after its step, so that ranks can join or leave."""
        self._regroups = True
        for slot in self._with_status("placed"):
            self._tell(slot, {"regroup": self._generation})

    def _try_again(self, slot: Slot | None) -> None:
        """Counts a fault; starts the slot's rank again unless that is hopeless."""
        if hopeless := self._restarts.note(time.monotonic(), self._step()):
            self._end_with(hopeless)
        elif slot and slot.host in self._up and slot.host not in self._out and self._stop is None:
            self._start(slot)

    def _step(self) -> int:
        """The newest step that any rank has told of."""
        return max(0, *(slot.at.get("step", 0) for slot in self._slots))

    def _start(self, slot: Slot) -> None:
        self._processes += 1
        slot.begin(self._processes)
        self._hosts[slot.host].start(RankProcess(slot.number, self._processes))

    def _note_fault(
        self,
        cause: Cause,
        host: int | None,
        slot: Slot | None,
        noticed_seconds: float = 0.0,
        stacks: str = "",
        ended_world: bool = True,
    ) -> None:
        name = "" if host is None else self._hosts[host].name
        at = slot.at if slot else {}
        self._faults.append(
            {
                "moment": time.monotonic() - noticed_seconds,
                "noticed_seconds": noticed_seconds,
                "kind": cause.kind,
                "detail": cause.detail,
                "host": name,
                "rank": slot.rank if slot and slot.rank >= 0 else None,
                "step": self._step(),
                "ended_world": ended_world,
                "phase": at.get("phase", ""),
                "stacks": stacks,
            }
        )
        self._is_explained = True
        who = f"rank {slot.rank}" if slot and slot.rank >= 0 else ""
        if name and (len(self._hosts) > 1 or not who):
            who = f"{who} on {name}" if who else name
        terminal.warn(f"lost: {who or 'the connection'}: {WORDS[cause.kind]} ({cause.detail})")

    def _end_with(self, reason: str) -> None:
        """Ends the run with a failure; those with a state in memory save it first."""
        terminal.warn(f"error: the run ends: {reason}\n  try: the same command, which continues from here")
        self._code = max(1, self._code)
        if any(slot.step >= 0 or slot.status == "placed" for slot in self._slots if slot.is_live):
            self._want_stop(signal.SIGTERM)
        else:
            self._end(failed=True)

    def _end(self, failed: bool = False) -> None:
        if self._ends_since is not None:
            return
        self._ends_since = time.monotonic()
        if failed:
            self._code = max(1, self._code)
        for slot in self._slots:
            if slot.status == "starting":  # it has nothing to save, and hears us only when it has started
                self._hosts[slot.host].kill(slot.number)
            elif slot.status == "ready" or failed:
                self._tell(slot, {"leave": True})
        if failed:
            self._give_up_world()

    def _is_over(self) -> bool:
        """Has everybody ended, or had time to? Those that have not are killed."""
        live = [slot for slot in self._slots if slot.process]
        if self._ends_since is None or not live:
            return self._ends_since is not None
        waits = SAVE_SECONDS if self._is_done or self._stop is not None else AFTER_LOSS_SECONDS
        return time.monotonic() - self._ends_since > waits

    def _of(self, host: int) -> list[Slot]:
        return [slot for slot in self._slots if slot.host == host]

    def _with_status(self, status: Status) -> list[Slot]:
        return [slot for slot in self._slots if slot.status == status]

    def _tell(self, slot: Slot, message: Message) -> None:
        if slot.process:
            self._hosts[slot.host].tell(slot.number, message)
