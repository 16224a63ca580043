"""Ranks on several machines, started from one of them or from elsewhere: an agent on each, through ssh.

The machines end together: when the user stops the run, when one of them fails or is lost, and when this
process is killed (agents live as long as their connection).
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dragoman import terminal
from dragoman.errors import DragomanError
from dragoman.launch import environment, node
from dragoman.launch.environment import AFTER_LOSS_SECONDS, SAVE_SECONDS
from dragoman.launch.hosts import Host
from dragoman.launch.node import TrainingCommand
from dragoman.launch.ranks import Node
from dragoman.launch.remote import Remote
from dragoman.launch.signals import stop_requests

_SILENT_SECONDS = 10.0  # an agent speaks every other second; ssh gives a host up after a minute


@dataclass(frozen=True)
class _Stop:
    """Among the events: the user wants to stop. The others are numbers of hosts that have ended."""

    signal: int


Events = queue.SimpleQueue[int | _Stop]


def training(config: str, data: Path, run: Path, start_from: Path | None, command: str) -> TrainingCommand:
    """What the hosts are sent: paths as seen from here, whatever folder the hosts start in."""
    options = ["--data", str(data.absolute()), "--run", str(run.absolute())]
    return TrainingCommand(
        config, options + (["--from", str(start_from.absolute())] if start_from else []), command
    )


def run(training: TrainingCommand, hosts: Sequence[Host]) -> int:
    """Trains on these hosts; the exit code. What ranks say is printed with the name of their host."""
    events: Events = queue.SimpleQueue()
    width = max(len(host.name) for host in hosts)
    with ExitStack() as stack:
        remotes = [
            stack.enter_context(_remote(number, host, width, events)) for number, host in enumerate(hosts)
        ]
        address, port = meeting_point(remotes)
        terminal.say(_plan(remotes, hosts, address, port))
        size, first_rank = sum(host.workers for host in hosts), 0
        for remote, host in zip(remotes, hosts, strict=True):
            part = Node(host.workers, first_rank, size, address, port)
            remote.start(["-m", node.MODULE], node.request(training, part), environment.for_every_host())
            first_rank += host.workers
        with stop_requests(lambda number: events.put(_Stop(number))):
            return _outcome(_watch(remotes, events))


def meeting_point(remotes: Sequence[Remote]) -> tuple[str, int]:
    """An address of the first host at which all others reach it, and a free port there."""
    first, *others = remotes
    door = first.call("open_door")
    names = [first.name.rpartition("@")[2], *door["addresses"]]
    common: list[str] = [] if others else ["127.0.0.1"]
    for number, other in enumerate(others):
        found = other.call("knock", names=names, port=door["port"], password=door["password"])
        common = found if number == 0 else [address for address in common if address in found]
        if not common:
            raise DragomanError(
                f"{other.name} does not reach {first.name} (TCP port {door['port']} of {', '.join(names)})",
                hint="let the hosts reach each other at all TCP ports: firewall, security group",
            )
    first.call("close_door")
    return common[0], door["port"]


def _plan(remotes: Sequence[Remote], hosts: Sequence[Host], address: str, port: int) -> str:
    places = []
    for remote, host in zip(remotes, hosts, strict=True):
        interface = remote.call("interface_towards", address=address)
        ranks = f"{host.workers} rank{'s' if host.workers > 1 else ''}"
        places.append(f"{host.name} ({ranks}, {interface})")
    return f"Training on {', '.join(places)}; ranks meet at {address}:{port}"


_printing = threading.Lock()


def _remote(number: int, host: Host, width: int, events: Events) -> Remote:
    def show(line: str, is_error: bool) -> None:
        try:
            with _printing:
                (terminal.warn if is_error else terminal.say)(f"{host.name:<{width}} | {line}")
        except BrokenPipeError:  # nobody reads any more
            events.put(_Stop(signal.SIGTERM))

    return Remote(host.name, show, lambda: events.put(number))


def _watch(remotes: Sequence[Remote], events: Events) -> list[Remote]:
    """Until all have ended; those that ended badly, in this order. One that does ends the others."""
    running, failed = set(range(len(remotes))), []
    good = {0}
    silent: set[str] = set()
    while running:
        try:
            event = events.get(timeout=1.0)
        except queue.Empty:
            silent = _tell_silence([remotes[number] for number in sorted(running)], silent)
            continue
        if isinstance(event, _Stop):
            good.add(-event.signal)  # it had not begun
            for number in running:
                remotes[number].stop(SAVE_SECONDS, event.signal)
        else:
            running.discard(event)
            if remotes[event].exit_code in good:
                continue
            failed.append(remotes[event])
            for number in running:
                remotes[number].stop(AFTER_LOSS_SECONDS)
    return failed


def _tell_silence(remotes: Sequence[Remote], before: set[str]) -> set[str]:
    """Names of hosts that have not been heard of for a while; told once, and again when they are back."""
    silent = {
        remote.name: remote.silent_seconds for remote in remotes if remote.silent_seconds > _SILENT_SECONDS
    }
    for name in silent.keys() - before:
        terminal.warn(
            f"warning: no word from {name} for {silent[name]:.0f} s: its network or the machine may be down; "
            "the run waits for it for a minute"
        )
    for remote in remotes:
        if remote.name in before - silent.keys():
            terminal.warn(f"{remote.name} is heard again")
    return set(silent)


def _outcome(failed: Sequence[Remote]) -> int:
    """Names the host to look at: one that was lost rather than those that missed it."""
    lost = [remote for remote in failed if remote.exit_code is None]
    for remote in lost:
        terminal.warn(f"error: {remote.lost()}")
    if lost:
        terminal.warn("  the other hosts were ended; the same command continues from the last checkpoint")
    elif failed:
        terminal.warn(f"error: training failed on {failed[0].name}; the lines above say why")
    return max((max(1, remote.exit_code or 1) for remote in failed), default=0)
