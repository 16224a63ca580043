"""Runs that do not need the command that started them: `dragoman train --detach` and `dragoman stop`.

The launcher of a detached run is the same command without --detach, in the background on the first host. From
other machines it is started, watched and stopped through an agent on that host, over ssh: no port is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dragoman import terminal
from dragoman.errors import DragomanError, RecordsError, UsageError, reading
from dragoman.launch import environment, launcher
from dragoman.launch.hosts import Host, is_this_machine, parse
from dragoman.launch.launcher import Launcher
from dragoman.launch.remote import Remote
from dragoman.launch.remote_host import TrainingCommand
from dragoman.rundir import RunFolder

_POLL_SECONDS = 0.5
_LAST_LINES = -1  # an offset: begin with the last lines


@dataclass(frozen=True)
class TrainingRequest:
    """What a `dragoman train` command asks for."""

    training: TrainingCommand
    words: Sequence[str]  # the same command without --detach
    hosts: Sequence[Host] = ()
    workers: int = 1
    max_restarts: int = 100
    least_hosts: int = 0

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.training.run)

    @property
    def first(self) -> str:
        """The machine on which the launcher of a detached run is started; empty: this one."""
        return self.hosts[0].name if self.hosts and not is_this_machine(self.hosts[0].name) else ""

    @property
    def digest(self) -> str:
        """The same for every command that asks for the same."""
        asked = [self.training.config, *self.training.options, self.max_restarts, self.least_hosts]
        machines = [[host.name, host.workers] for host in self.hosts] or self.workers
        return hashlib.sha256(json.dumps([asked, machines]).encode()).hexdigest()


class _Place(Protocol):
    """A machine on which functions of the table can be called."""

    def call(self, name: str, seconds: float | None = None, **arguments: Any) -> Any: ...


class _Here:
    _functions = {
        function.__name__: function
        for function in (launcher.living_launcher, launcher.launcher_news, launcher.stop_launcher)
    }

    def call(self, name: str, seconds: float | None = None, **arguments: Any) -> Any:
        return self._functions[name](**arguments)


class _Places:
    """Machines by name, each connected when it is first needed."""

    def __init__(self, stack: ExitStack):
        self._stack, self._known = stack, dict[str, _Place]()

    def at(self, name: str) -> _Place:
        if name not in self._known:
            here = not name or is_this_machine(name)
            self._known[name] = _Here() if here else self._stack.enter_context(Remote(name))
        return self._known[name]


@dataclass(frozen=True)
class _Found:
    launcher: Launcher
    place: _Place


def launch(
    request: TrainingRequest,
    is_detached: bool,
    check: Callable[[], None],
    train: Callable[[Launcher], int],
) -> int:
    """Joins the run if its launcher lives; else trains, in the background if wanted. The exit code.

    `check` raises what is wrong with the request; `train` trains in this process, which is the launcher.
    """
    folder = request.folder
    with ExitStack() as stack:
        places = _Places(stack)
        if found := _find(folder, request.first, places, is_needed=False):
            if not found.launcher.is_detached or found.launcher.request != request.digest:
                raise launcher.being_trained(folder, found.launcher)
            return _follow(found, folder, _LAST_LINES)
        check()
        if is_detached:
            return _follow(*_start(request, places))
    own = Launcher.of_process(os.getpid(), request.training.command, request.digest)
    if request.first:
        return train(own)  # its agents note it on the hosts
    return launcher.run_registered(folder, own, train)


def stop(run: Path, host: str) -> None:
    """Ends a run as Ctrl-C would, and returns when it has ended. `host`: where its launcher may be."""
    folder = RunFolder(run)
    with ExitStack() as stack:
        found = _find(folder, host, _Places(stack), is_needed=True)
        if not found:
            raise _does_not_run(folder)
        if found.launcher.is_of_agent:
            raise launcher.being_trained(folder, found.launcher)
        run_path, pid = str(folder.path.absolute()), found.launcher.pid
        if not found.place.call("stop_launcher", run=run_path, pid=pid):
            raise _does_not_run(folder)
        who = f"process {found.launcher.pid} on {found.launcher.host}"
        terminal.say(f"Stopping {who}: it saves first. The same command again hurries it.")
        try:
            code = _show(found, folder, _LAST_LINES)
        except KeyboardInterrupt:
            terminal.say("left: the run ends without this command")
            return
        terminal.say(f"Stopped {who}" + (f"; its exit code is {code}" if code else ""))


def _does_not_run(folder: RunFolder) -> DragomanError:
    last = launcher.read(folder)
    if not last:
        return DragomanError(
            "this machine knows of no launcher of this run",
            path=folder.path,
            hint=f"name the first host of the run: dragoman stop {shlex.quote(str(folder.path))} --host HOST",
        )
    end = "" if last.exit_code is None else f"; it ended with exit code {last.exit_code}"
    return DragomanError(f"not running: process {last.pid} on {last.host} is gone{end}", path=folder.path)


def _find(folder: RunFolder, first: str, places: _Places, is_needed: bool) -> _Found | None:
    """The launcher that trains this run, by what this machine and the first host know of it.

    A machine that cannot be asked is an error only if `is_needed`.
    """
    names = []
    if known := launcher.read(folder):
        if known.is_here and not _is_elsewhere(known):
            if known.lives() and not known.is_this_process:
                return _Found(known, _Here())
        elif not known.is_here or known.lives():
            names.append(_checked(known.host, folder))
    names += [first] if first and first not in names else []
    for name in names:  # grows
        try:
            answer = places.at(name).call("living_launcher", run=str(folder.path.absolute()))
        except DragomanError as lost:
            if is_needed:
                raise
            if name != first:
                terminal.warn(f"warning: cannot ask {name} whether it still trains this run: {lost.what}")
            continue
        if not answer:
            continue
        found = _launcher_of(answer, name)
        if _is_elsewhere(found) and found.host not in names:
            names.append(_checked(found.host, folder))
        else:
            return _Found(
                found if found.is_of_agent else found.model_copy(update={"host": name}), places.at(name)
            )
    return None


def _is_elsewhere(known: Launcher) -> bool:
    """Was it noted by the agent of a detached launcher, which can be reached on its own host?"""
    return known.is_of_agent and known.is_detached


def _launcher_of(answer: object, name: str) -> Launcher:
    with reading(name, RecordsError):
        return Launcher.model_validate(answer)


def _checked(name: str, folder: RunFolder) -> str:
    """A host's name from the file: run folders come from anywhere, and no name may be an option of ssh."""
    try:
        (host,) = parse(f"[{name}]" if name.count(":") > 1 else name)
    except (UsageError, ValueError):
        raise RecordsError(
            f"{name!r} is not a valid host", path=folder.launcher, hint="remove the file"
        ) from None
    return host.name


def _start(request: TrainingRequest, places: _Places) -> tuple[_Found, RunFolder, int]:
    folder, training, first = request.folder, request.training, request.first
    place = places.at(first)
    if not first:
        started = launcher.start(request.words, folder, training.command, request.digest)
    else:
        _check_reach(place, request)
        answer = place.call(
            "start_detached",
            config=training.config,
            options=training.options,
            run=str(folder.path.absolute()),
            hosts=[[host.name, host.workers] for host in request.hosts],
            max_restarts=request.max_restarts,
            least_hosts=request.least_hosts,
            command=training.command,
            request=request.digest,
            variables=environment.for_every_host(),
        )
        started = _launcher_of(answer, first).model_copy(update={"host": first})
        launcher.point_to(folder, started)
    return _Found(started, place), folder, started.output_start


def _check_reach(place: _Place, request: TrainingRequest) -> None:
    """Raises if the first host does not reach enough of the others by ssh."""
    first, others = request.first, [host.name for host in request.hosts[1:]]
    lost = place.call("hosts_out_of_reach", names=others)
    if lost and len(request.hosts) - len(lost) < (request.least_hosts or len(request.hosts)):
        name, what, hint = lost[0]
        raise DragomanError(
            f"a detached run is led by its first host, which does not reach {name} by ssh: {what}",
            path=first,
            hint=f"on {first}: {hint}",
        )


def hosts_out_of_reach(names: Sequence[str]) -> list[list[str]]:
    """The hosts that this machine does not reach by ssh, each with the reason and what to try."""
    lost = []
    with ExitStack() as stack:
        for remote in [stack.enter_context(Remote(name)) for name in names]:
            try:
                remote.greet()
            except DragomanError as error:
                lost.append([remote.name, error.what, error.hint])
    return lost


def start_detached(
    config: str,
    options: Sequence[str],
    run: str,
    hosts: Sequence[tuple[str, int]],
    max_restarts: int,
    least_hosts: int,
    command: str,
    request: str,
    variables: dict[str, str],
) -> dict[str, Any]:
    """Starts the launcher of a detached run on this machine, which is its first host."""
    folder = RunFolder(Path(run))
    (first, workers), *others = hosts
    # An alias from the ssh configuration of the launching machine means nothing here.
    first = first if is_this_machine(first) else socket.gethostname()
    places = ",".join(
        f"{f'[{name}]' if ':' in name else name}:{count}" for name, count in [(first, workers), *others]
    )
    words = ["train", str(folder.sent_config), *options, "--hosts", places]
    words += ["--max-restarts", str(max_restarts)]
    words += ["--min-hosts", str(least_hosts)] if least_hosts else []
    return launcher.start(words, folder, command, request, variables, config).model_dump()


def _follow(found: _Found, folder: RunFolder, offset: int) -> int:
    """Shows what a detached launcher prints until it ends; its exit code, 0 if the user leaves before."""
    who, run = f"process {found.launcher.pid} on {found.launcher.host}", shlex.quote(str(folder.path))
    ways = f"join it again with the same command, end it with: dragoman stop {run}"
    terminal.say(f"Training in the background ({who}). Ctrl-C leaves it running; {ways}")
    try:
        code = _show(found, folder, offset)
    except KeyboardInterrupt:
        terminal.say(f"left: the run continues; {ways}")
        return 0
    if code is None:
        raise DragomanError(
            f"{who} ended without a word: it was killed, or its machine went down",
            path=folder.path,
            hint="the same command, which continues from the last checkpoint",
        )
    return code


def _show(found: _Found, folder: RunFolder, offset: int) -> int | None:
    """Shows the launcher's output from this offset until it ends; its exit code, None if that is unknown."""
    run, pid = str(folder.path.absolute()), found.launcher.pid
    while True:
        try:
            news = found.place.call("launcher_news", run=run, pid=pid, offset=offset)
        except DragomanError as lost:
            raise DragomanError(
                f"{lost.what}; the run does not need this connection",
                path=lost.path,
                hint="the same command again",
            ) from None
        for line in news["lines"]:
            terminal.say(line)
        offset = news["offset"]
        if not news["lines"]:
            if not news["is_alive"]:
                return news["exit_code"]
            time.sleep(_POLL_SECONDS)
