"""`doctor --train`: makes ten real steps of a config on all hosts and reports how they went.

It is a training in a temporary folder that stops at its tenth step, with the launcher, precision, backend and
exchange of a real one. So it meets whatever a run would meet. It ends in a block to paste into a bug report.
"""

from __future__ import annotations

import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from dragoman import config, format_units, terminal
from dragoman.config import Training
from dragoman.doctor import calls
from dragoman.doctor.check import ALL, Check
from dragoman.doctor.facts import HostFacts
from dragoman.errors import DragomanError
from dragoman.launch import ssh
from dragoman.launch.hosts import Host as LaunchHost
from dragoman.launch.remote import Remote
from dragoman.launch.remote_host import TrainingCommand
from dragoman.launch.restarts import Restarts
from dragoman.measure import database
from dragoman.rundir import RunFolder

STEPS = 10
_SETTLING_STEPS = 3  # the first ones allocate memory
_FOLDER = re.compile(r"dragoman-doctor-[0-9a-f]{16}")


def run(hosts: Sequence[LaunchHost], settings: Training, data: Path) -> tuple[dict[str, Any] | None, Check]:
    """The outcome of the steps, if they were made, and the check on it. The ranks' output goes to stderr."""
    hosts = hosts or [LaunchHost("localhost")]
    folder = Path(tempfile.gettempdir(), f"dragoman-doctor-{secrets.token_hex(8)}")
    launched = TrainingCommand(
        config.text(_shortened(settings)), data, folder, None, "dragoman doctor --train"
    )
    try:
        with redirect_stdout(sys.stderr):
            code = ssh.run(launched, hosts, Restarts(0))
        if code:
            return None, _failed(f"ended with exit code {code}; the reason is in the output above")
        with Remote(hosts[0].name, table=calls.TABLE) as first:
            figures = first.call("trial_outcome", folder=str(folder))
    except DragomanError as error:
        return None, _failed(error.what, error.hint)
    finally:
        _clear(hosts, folder)
    return figures, _judged(figures)


def outcome(folder: str) -> dict[str, Any]:
    """The outcome of a trial on this host, from its records."""
    records = database.read(RunFolder(Path(folder)).records)
    facts, steps = records.facts, records.steps
    settled = slice(_SETTLING_STEPS, None)
    seconds, tokens = steps["seconds"][settled], steps["target_tokens"][settled]
    values: dict[str, Any] = {
        "steps": len(steps["step"]),
        "bad_steps": int(np.nansum(steps["is_bad"])),
        "first_loss": float(steps["loss"][0]),
        "last_loss": float(steps["loss"][-1]),
        "hosts": facts.hosts,
        "ranks": facts.ranks,
        "interfaces": facts.gradient_interfaces,
        "device": facts.device,
        "backend": "gloo" if facts.device == "cpu" else "nccl",
        "precision": facts.precision,
        "mode": facts.mode,
        "exchange": facts.exchange,
        "wire": facts.wire,
        "way": str(facts.way),
    }
    if len(seconds):
        values["step_seconds"] = float(np.median(seconds))
        values["tokens_per_second"] = float(tokens.sum() / seconds.sum())
        values["exchange_share"] = float(records.phase("exchange")[settled].mean() / seconds.mean())
    for probe in records.probes_of("link"):
        values |= {f"link_{name}": value for name, value in probe.numbers.items()}
    return values


def remove(folder: str) -> None:
    """Removes the folder of a trial on this host; refuses any other folder."""
    if _FOLDER.fullmatch(Path(folder).name):
        shutil.rmtree(folder, ignore_errors=True)


def described(figures: dict[str, Any] | None, hosts: Sequence[HostFacts]) -> dict[str, Any] | None:
    """The outcome with the hosts' versions and drivers added."""
    return figures and figures | {
        "versions": hosts[0].versions,
        "drivers": [host.gpus.driver for host in hosts],
    }


def block(figures: dict[str, Any], verdict: str) -> str:
    """The outcome as text to paste into a bug report."""
    places = zip(figures["hosts"], figures["interfaces"], strict=True)
    driver = next((driver for driver in figures["drivers"] if driver), None)
    lines = {
        "versions": ", ".join(f"{name} {version}" for name, version in figures["versions"].items()),
        "hosts": ", ".join(f"{name} ({interface})" for name, interface in places),
        "devices": f"{figures['ranks']} ranks on {figures['device']}{f', driver {driver}' if driver else ''}",
        "exchange": _exchange(figures),
        "steps": _steps(figures),
        "loss": f"{figures['first_loss']:.4f} at the first, {figures['last_loss']:.4f} at the last",
        "verdict": verdict,
    }
    return "\n".join(
        ["", f"{STEPS} steps of dragoman doctor --train", *(f"  {k:<9} {v}" for k, v in lines.items())]
    )


def _exchange(figures: dict[str, Any]) -> str:
    if figures["ranks"] == 1:
        return "none: one rank"
    text = f"{figures['backend']}, {figures['way']}"
    if "link_bits_per_second" in figures:
        text += f"; link {format_units.rate(figures['link_bits_per_second'])}"
        text += f", round trip {format_units.seconds(figures['link_round_trip_seconds'])}"
    return text


def _steps(figures: dict[str, Any]) -> str:
    text = f"{figures['steps']} made, {figures['precision']}"
    if "step_seconds" in figures:
        text += f"; {format_units.seconds(figures['step_seconds'])} each, "
        text += f"{format_units.count(figures['tokens_per_second'])} target tokens/s, "
        text += f"{format_units.share(figures['exchange_share'])} in the exchange"
    return text


def _shortened(settings: Training) -> Training:
    train = settings.train.model_copy(
        update={"stop_at": STEPS, "steps": max(settings.train.steps, STEPS + 1)}
    )
    return settings.model_copy(
        update={"train": train, "measure": settings.measure.model_copy(update={"every": STEPS})}
    )


def _judged(figures: dict[str, Any]) -> Check:
    if figures["steps"] < STEPS:
        return _failed(f"{figures['steps']} of {STEPS} were made")
    if figures["bad_steps"]:
        value = f"{figures['bad_steps']} of {STEPS} had a gradient that is not finite"
        return Check("steps", ALL, "warning", value, "set train.precision=bf16 or fp32, or lower train.rate")
    return Check("steps", ALL, "ok", _steps(figures))


def _failed(value: str, advice: str = "") -> Check:
    return Check("steps", ALL, "error", value, advice)


def _clear(hosts: Sequence[LaunchHost], folder: Path) -> None:
    with ExitStack() as stack:
        remotes = [stack.enter_context(Remote(host.name, table=calls.TABLE)) for host in hosts]
        for remote in remotes:
            try:
                remote.call("remove_trial", folder=str(folder))
            except DragomanError as error:
                terminal.warn(f"could not remove {folder} on {remote.name}: {error.what}")
