"""Starts ranks on several machines, through an agent on each that is reached by ssh.

The launcher may run on one of the machines or elsewhere. All machines end together: when the user stops the
run, when one of them fails or is lost, and when the launcher is killed (agents end with their connection).
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
from dragoman.launch.remote import LOST_SECONDS, Remote
from dragoman.launch.signals import stop_requests
from dragoman.sync import silence
from dragoman.sync.silence import SILENT_SECONDS


@dataclass(frozen=True)
class _Stop:
    """The event that the user wants to stop the run."""

    signal: int


Events = queue.SimpleQueue[int | _Stop]  # an int is the number of a host whose agent has ended


def training(config: str, data: Path, run: Path, start_from: Path | None, command: str) -> TrainingCommand:
    """The training command for the hosts. Paths become absolute, as hosts start in other folders."""
    options = ["--data", str(data.absolute()), "--run", str(run.absolute())]
    return TrainingCommand(
        config, options + (["--from", str(start_from.absolute())] if start_from else []), command
    )


def run(training: TrainingCommand, hosts: Sequence[Host]) -> int:
    """Trains on these hosts and returns the exit code. Each line from a rank is printed with its host."""
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
    listener = first.call("listen_for_hosts")
    port = listener["port"]
    names = [first.name.rpartition("@")[2], *listener["addresses"]]
    common: list[str] = [] if others else ["127.0.0.1"]
    for number, other in enumerate(others):
        reached = other.call("reachable_addresses", names=names, port=port, password=listener["password"])
        common = reached if number == 0 else [address for address in common if address in reached]
        if not common:
            raise DragomanError(
                f"{other.name} does not reach {first.name} (TCP port {port} of {', '.join(names)})",
                hint="open all TCP ports between the hosts (firewall, security group)",
            )
    first.call("stop_listening")
    return common[0], port


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
        except BrokenPipeError:  # the reader of our output has closed the pipe
            events.put(_Stop(signal.SIGTERM))

    return Remote(host.name, show, lambda: events.put(number))


def _watch(remotes: Sequence[Remote], events: Events) -> list[Remote]:
    """Waits until all hosts have ended and returns those that failed, in that order.

    When one fails, the others are stopped.
    """
    running, failed = set(range(len(remotes))), []
    good_codes = {0}
    silent: set[str] = set()
    while running:
        try:
            event = events.get(timeout=1.0)
        except queue.Empty:
            silent = _report_silence([remotes[number] for number in sorted(running)], silent)
            continue
        if isinstance(event, _Stop):
            good_codes.add(-event.signal)  # the exit code of a process stopped before it handles signals
            for number in running:
                remotes[number].stop(SAVE_SECONDS, event.signal)
        else:
            running.discard(event)
            if remotes[event].exit_code in good_codes:
                continue
            failed.append(remotes[event])
            for number in running:
                remotes[number].stop(AFTER_LOSS_SECONDS)
    return failed


def _report_silence(remotes: Sequence[Remote], before: set[str]) -> set[str]:
    """The names of silent hosts. Warns when a host falls silent, and when it is back.

    `before` holds the names that were returned last time.
    """
    silent = {
        remote.name: remote.silent_seconds for remote in remotes if remote.silent_seconds > SILENT_SECONDS
    }
    for name in silent.keys() - before:
        terminal.warn(silence.fell_silent(name, silent[name], LOST_SECONDS))
    for remote in remotes:
        if remote.name in before - silent.keys():
            terminal.warn(silence.answers_again(remote.name))
    return set(silent)


def _outcome(failed: Sequence[Remote]) -> int:
    """The exit code. Reports the hosts to look at: the lost ones, if any, as others fail because of them."""
    lost = [remote for remote in failed if remote.exit_code is None]
    for remote in lost:
        terminal.warn(f"error: {remote.lost()}")
    if lost:
        terminal.warn("  the other hosts were stopped; the same command continues from the last checkpoint")
    elif failed:
        terminal.warn(f"error: training failed on {failed[0].name}; see its lines above for the reason")
    return max((max(1, remote.exit_code or 1) for remote in failed), default=0)
