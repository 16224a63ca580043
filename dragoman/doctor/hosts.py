"""Examines several hosts through their agents, and tries the link of every pair."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dragoman.config import Training
from dragoman.doctor import capacity, compare, pairs
from dragoman.doctor.check import ALL, Check
from dragoman.doctor.clock_offset import READINGS, ClockReading, clock_offset
from dragoman.doctor.facts import HostFacts
from dragoman.doctor.judge import judge, needs_of
from dragoman.doctor.link import TriedConnection
from dragoman.doctor.pairs import ConnectionAttempt
from dragoman.errors import DragomanError
from dragoman.launch import hosts as launch_hosts

Answer = TypeVar("Answer")


class HostAgent(Protocol):
    """Calls functions on a host, as `launch.remote.Remote` does. Used by one thread at a time."""

    name: str

    def call(self, name: str, **arguments: Any) -> Any: ...


@dataclass
class Reached:
    """A host that answered, and its facts."""

    agent: HostAgent
    facts: HostFacts


def examine(
    hosts: Sequence[launch_hosts.Host],
    data: Path | None,
    run: Path,
    settings: Training | None,
    connect: Callable[[str], Any],
) -> tuple[list[Check], list[HostFacts]]:
    """All checks of these hosts, and their facts. `connect` opens an agent as a context manager."""
    with ExitStack() as stack:
        agents = [stack.enter_context(connect(host.name)) for host in hosts]
        answers = _at_once(agents, lambda agent: _ask(agent, data, run))
        checks = [answer for answer in answers if isinstance(answer, Check)]
        reached = [answer for answer in answers if isinstance(answer, Reached)]
        for host, answer in zip(hosts, answers, strict=True):
            if isinstance(answer, Reached):
                answer.facts.ranks = host.workers
        if not checks:
            checks = [Check("ssh", ALL, "ok", "every host answers")]
        if not reached:
            return checks, []
        return checks + _examine_reached(reached, settings), [each.facts for each in reached]


def _examine_reached(reached: Sequence[Reached], settings: Training | None) -> list[Check]:
    facts = [each.facts for each in reached]
    names = [each.name for each in facts]
    resolved = _at_once([each.agent for each in reached], lambda agent: agent.call("resolve", names=names))
    first_offset = facts[0].clock_offset_seconds or 0.0
    for host, view in zip(facts, resolved, strict=True):
        host.own_name_addresses = view[host.name]
        host.clock_offset_seconds = (host.clock_offset_seconds or 0.0) - first_offset
    attempts = _try_pairs(reached)
    needs = needs_of(facts, settings)
    return [
        *judge(facts, needs, settings),
        *capacity.place(facts),
        *compare.peer_names(facts, resolved),
        *(pairs.ports(attempts) if attempts else []),
        *pairs.links(attempts),
        *pairs.exchange(facts, attempts, needs),
    ]


def _ask(agent: HostAgent, data: Path | None, run: Path) -> Reached | Check:
    try:
        answer = agent.call("inspect", data=str(data) if data else None, run=str(run), with_peak=True)
        reached = Reached(agent, HostFacts.model_validate(answer))
        _read_clock(reached)
        return reached
    except DragomanError as error:
        return Check("ssh", agent.name, "error", error.what, error.hint)


def _read_clock(reached: Reached) -> None:
    """Notes the offset from this machine's clock; once all are read, the first host's is subtracted."""
    # Python evaluates a reading's fields in the order in which they are written: sent, there, received.
    readings = [
        ClockReading(time.time(), reached.agent.call("clock")["unix_seconds"], time.time())
        for _ in range(READINGS)
    ]
    reached.facts.clock_offset_seconds, reached.facts.clock_error_seconds = clock_offset(readings)


def _try_pairs(reached: Sequence[Reached]) -> list[ConnectionAttempt]:
    """Connects each pair in both directions and measures its rates; pairs without a common host at once."""
    attempts: list[ConnectionAttempt] = []
    for chosen in pairs.rounds(len(reached)):
        for of_pair in _at_once(chosen, lambda pair: _try_both_ways(reached[pair[0]], reached[pair[1]])):
            attempts += of_pair
    return attempts


def _try_both_ways(first: Reached, second: Reached) -> list[ConnectionAttempt]:
    """Connects in both directions; one connection is enough to measure the rates both ways."""
    return [_try(first, second, measured=True), _try(second, first, measured=False)]


def _try(sender: Reached, receiver: Reached, measured: bool) -> ConnectionAttempt:
    listener = receiver.agent.call("listen")
    name = receiver.agent.name.rpartition("@")[2]  # `user@host` as given, without the user
    resolved = sender.agent.call("resolve", names=[name])[name]
    addresses = list(dict.fromkeys([*resolved, *receiver.facts.addresses]))
    port = listener["port"]
    answer = sender.agent.call(
        "connect", addresses=addresses, port=port, token=listener["token"], measured=measured
    )
    connection = TriedConnection.model_validate(answer)
    sender.facts.interface = sender.facts.interface or connection.interface
    return ConnectionAttempt(sender.facts.name, receiver.facts.name, port, listener["ports"], connection)


Item = TypeVar("Item")


def _at_once(items: Sequence[Item], action: Callable[[Item], Answer]) -> list[Answer]:
    with ThreadPoolExecutor(max(1, len(items))) as pool:
        return list(pool.map(action, items))
