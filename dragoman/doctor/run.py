"""`dragoman doctor`: examines this machine or several hosts, and on request makes ten real steps on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dragoman import terminal
from dragoman.config import Training
from dragoman.doctor import calls, capacity, host, trial
from dragoman.doctor.check import Check, failed, json_text, verdict
from dragoman.doctor.facts import HostFacts
from dragoman.doctor.hosts import examine
from dragoman.doctor.judge import judge, needs_of
from dragoman.doctor.show import show
from dragoman.errors import UsageError
from dragoman.launch.hosts import Host as LaunchHost
from dragoman.launch.remote import Remote
from dragoman.measure.neighbours import Neighbours


@dataclass(frozen=True)
class DoctorRequest:
    """What to check. Without hosts, this machine."""

    hosts: Sequence[LaunchHost]
    data: Path | None
    run: Path  # where checkpoints would go
    settings: Training | None
    with_steps: bool


@dataclass(frozen=True)
class Result:
    """The checks and the outcome of the ten steps, to print or to return as JSON."""

    checks: list[Check]
    steps: dict[str, Any] | None  # the outcome of the ten steps, if they were made

    @property
    def exit_code(self) -> int:
        return 1 if failed(self.checks) else 0

    def json_text(self) -> str:
        return json_text(self.checks, self.steps)

    def show(self) -> None:
        show(self.checks)
        end = verdict(self.checks)
        terminal.say(trial.block(self.steps, end) if self.steps else f"\n{end}")


def run(request: DoctorRequest) -> Result:
    if request.with_steps and not (request.settings and request.data):
        raise UsageError("--train needs a config and a data set", hint="add --config CONFIG --data DATA")
    checks, hosts = _examine(request)
    if not request.with_steps or failed(checks):
        return Result(checks, None)
    assert request.settings and request.data
    outcome, check = trial.run(request.hosts, request.settings, request.data)
    return Result([*checks, check], trial.described(outcome, hosts))


def _examine(request: DoctorRequest) -> tuple[list[Check], list[HostFacts]]:
    if request.hosts:
        return examine(
            request.hosts, request.data, request.run, request.settings, partial(Remote, table=calls.TABLE)
        )
    neighbours = Neighbours()
    here = [host.facts(request.data, request.run, with_peak=True)]
    here[0].programs = host.programs(neighbours)
    needs = needs_of(here, request.settings)
    return [*judge(here, needs, request.settings), *capacity.place(here)], here
