"""Trains on several machines, through an agent on each that is reached by ssh.

The launcher may run on one of the machines or elsewhere. When it ends, so does the run: agents end with their
connection, and let the ranks save.
"""

from __future__ import annotations

import secrets
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dragoman import terminal
from dragoman.errors import DragomanError
from dragoman.launch.events import Events, StopRequest
from dragoman.launch.hosts import Host
from dragoman.launch.remote import Remote
from dragoman.launch.remote_host import RemoteHost, TrainingCommand
from dragoman.launch.restarts import Restarts
from dragoman.launch.supervisor import Supervisor

_LOOPBACK = "127.0.0.1"
_ANSWER_SECONDS = 10.0  # for an agent to answer a call


def run(training: TrainingCommand, hosts: Sequence[Host], restarts: Restarts, least_hosts: int = 0) -> int:
    """Trains on these hosts and returns the exit code. Each line from a rank is printed with its host."""
    events: Events = Events()
    key, width = secrets.token_hex(16), max(len(host.name) for host in hosts)
    links = [
        RemoteHost(number, host, training, key, events, _printer(host.name, width, events))
        for number, host in enumerate(hosts)
    ]
    return Supervisor(links, events, NetworkMeeting(links), restarts, least_hosts).run()


_printing = threading.Lock()


def _printer(name: str, width: int, events: Events) -> Callable[[str, bool], None]:
    def show(line: str, is_error: bool) -> None:
        try:
            with _printing:
                (terminal.warn if is_error else terminal.say)(f"{name:<{width}} | {line}")
        except BrokenPipeError:  # the reader of our output has closed the pipe
            events.put(StopRequest(signal.SIGTERM))

    return show


@dataclass
class NetworkMeeting:
    """Finds an address of the first host that the others reach, by trying."""

    links: Sequence[RemoteHost]
    _known: dict[tuple[Remote, Remote], list[str]] = field(default_factory=dict)
    _is_told: bool = False

    def address(self, hosts: list[int]) -> tuple[str, list[int]]:
        """Where ranks of these hosts can meet, on the first of them, and those that reach it."""
        try:
            first, *others = [self.links[host].connection for host in hosts]
            reached = self._reached(first, others) if others else {}
        except DragomanError:  # a host is lost at this moment, and will be reported so
            return "", []
        if others and not any(reached.values()):
            return _LOOPBACK, hosts[:1]
        counts = [address for addresses in reached.values() for address in addresses]
        address = max(dict.fromkeys(counts), key=counts.count) if others else _LOOPBACK
        members = [host for host, other in zip(hosts[1:], others, strict=True) if address in reached[other]]
        self._tell_once([hosts[0], *members], address)
        return address, [hosts[0], *members]

    def _reached(self, first: Remote, others: Sequence[Remote]) -> dict[Remote, list[str]]:
        """The addresses of the first host at which each other one reaches it. Each pair is tried once."""
        if unknown := [other for other in others if not self._known.get((first, other))]:
            listener = first.call("listen_for_hosts", _ANSWER_SECONDS)
            names = [first.name.rpartition("@")[2], *listener["addresses"]]
            asked = {"names": names, "port": listener["port"], "password": listener["password"]}
            for other in unknown:
                answer = other.call("reachable_addresses", _ANSWER_SECONDS + 3 * len(names), **asked)
                self._known[first, other] = answer
            first.call("stop_listening", _ANSWER_SECONDS)
        return {other: self._known[first, other] for other in others}

    def _tell_once(self, hosts: Sequence[int], address: str) -> None:
        if self._is_told:
            return
        self._is_told = True
        places = []
        for number in hosts:
            link = self.links[number]
            interface = link.connection.call("interface_towards", _ANSWER_SECONDS, address=address)
            ranks = f"{link.workers} rank{'s' if link.workers > 1 else ''}"
            places.append(f"{link.name} ({ranks}, {interface})")
        terminal.say(f"Training on {', '.join(places)}; ranks meet at {address}")
