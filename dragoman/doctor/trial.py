"""Ten real steps of a config on all hosts, by the way a training takes, and what they came to.

It is a training in a temporary folder that stops at its tenth step: same launcher, precision, backend and
exchange. So what it says is what a run would meet, and it ends in a block to paste into a bug report.
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
from dragoman.launch.node import TrainingCommand as Launched
from dragoman.launch.remote import Remote
from dragoman.measure import database
from dragoman.rundir import RunFolder

STEPS = 10
_SETTLING_STEPS = 3  # the first ones allocate memory
_FOLDER = re.compile(r"dragoman-doctor-[0-9a-f]{16}")


def run(hosts: Sequence[LaunchHost], settings: Training, data: Path) -> tuple[dict[str, Any] | None, Check]:
    """What the steps came to, if they were made, and whether that will do. What ranks say goes to stderr."""
    hosts = hosts or [LaunchHost("localhost")]
    folder = Path(tempfile.gettempdir(), f"dragoman-doctor-{secrets.token_hex(8)}")
    options = ["--data", str(data.absolute()), "--run", str(folder)]
    launched = Launched(config.text(_shortened(settings)), options, "dragoman doctor --train")
    try:
        with redirect_stdout(sys.stderr):
            code = ssh.run(launched, hosts)
        if code:
            return None, _failed(f"ended with exit code {code}; what was said stands above")
        with Remote(hosts[0].name, table=calls.TABLE) as first:
            found = first.call("trial_outcome", folder=str(folder))
    except DragomanError as error:
        return None, _failed(error.what, error.hint)
    finally:
        _clear(hosts, folder)
    return found, _judged(found)


def outcome(folder: str) -> dict[str, Any]:
    """Of a trial on this host, from its records."""
    records = database.read(RunFolder(Path(folder)).records)
    facts, steps = records.facts, records.steps
    settled = slice(_SETTLING_STEPS, None)
    seconds, tokens = steps["seconds"][settled], steps["target_tokens"][settled]
    found: dict[str, Any] = {
        "steps": len(steps["step"]),
        "bad_steps": int(np.nansum(steps["is_bad"])),
        "first_loss": float(steps["loss"][0]),
        "last_loss": float(steps["loss"][-1]),
        "hosts": facts.hosts,
        "ranks": facts.ranks,
        "interfaces": facts.gradient_interfaces,
        "device": facts.device,
        "backend": "gloo" if facts.device == "cpu" else "nccl",
        "precision": "fp32" if facts.device == "cpu" else facts.settings.get("train.precision"),
        "mode": facts.mode,
        "exchange": facts.exchange,
        "wire": facts.wire,
        "way": str(facts.way),
    }
    if len(seconds):
        found["step_seconds"] = float(np.median(seconds))
        found["tokens_per_second"] = float(tokens.sum() / seconds.sum())
        found["exchange_share"] = float(records.phase("exchange")[settled].mean() / seconds.mean())
    for probe in records.probes_of("link"):
        found |= {f"link_{name}": value for name, value in probe.numbers.items()}
    return found


def remove(folder: str) -> None:
    """Of a trial on this host, and nothing else."""
    if _FOLDER.fullmatch(Path(folder).name):
        shutil.rmtree(folder, ignore_errors=True)


def described(found: dict[str, Any] | None, hosts: Sequence[HostFacts]) -> dict[str, Any] | None:
    """With what the hosts said of themselves."""
    return found and found | {"versions": hosts[0].versions, "drivers": [host.gpus.driver for host in hosts]}


def block(found: dict[str, Any], verdict: str) -> str:
    """To paste into a bug report."""
    places = zip(found["hosts"], found["interfaces"], strict=True)
    driver = next((driver for driver in found["drivers"] if driver), None)
    lines = {
        "versions": ", ".join(f"{name} {version}" for name, version in found["versions"].items()),
        "hosts": ", ".join(f"{name} ({interface})" for name, interface in places),
        "devices": f"{found['ranks']} ranks on {found['device']}{f', driver {driver}' if driver else ''}",
        "exchange": _exchange(found),
        "steps": _steps(found),
        "loss": f"{found['first_loss']:.4f} at the first, {found['last_loss']:.4f} at the last",
        "verdict": verdict,
    }
    return "\n".join(
        ["", f"{STEPS} steps of dragoman doctor --train", *(f"  {k:<9} {v}" for k, v in lines.items())]
    )


def _exchange(found: dict[str, Any]) -> str:
    if found["ranks"] == 1:
        return "none: one rank"
    text = f"{found['backend']}, {found['way']}"
    if "link_bits_per_second" in found:
        text += f"; link {format_units.rate(found['link_bits_per_second'])}"
        text += f", round trip {format_units.seconds(found['link_round_trip_seconds'])}"
    return text


def _steps(found: dict[str, Any]) -> str:
    text = f"{found['steps']} made, {found['precision']}"
    if "step_seconds" in found:
        text += f"; {format_units.seconds(found['step_seconds'])} each, "
        text += f"{format_units.count(found['tokens_per_second'])} target tokens/s, "
        text += f"{format_units.share(found['exchange_share'])} in the exchange"
    return text


def _shortened(settings: Training) -> Training:
    train = settings.train.model_copy(
        update={"stop_at": STEPS, "steps": max(settings.train.steps, STEPS + 1)}
    )
    return settings.model_copy(
        update={"train": train, "measure": settings.measure.model_copy(update={"every": STEPS})}
    )


def _judged(found: dict[str, Any]) -> Check:
    if found["steps"] < STEPS:
        return _failed(f"{found['steps']} of {STEPS} were made")
    if found["bad_steps"]:
        value = f"{found['bad_steps']} of {STEPS} had a gradient that is not finite"
        return Check("steps", ALL, "warning", value, "train.precision=bf16 or fp32, or a lower train.rate")
    return Check("steps", ALL, "ok", _steps(found))


def _failed(value: str, advice: str = "") -> Check:
    return Check("steps", ALL, "error", value, advice)


def _clear(hosts: Sequence[LaunchHost], folder: Path) -> None:
    with ExitStack() as stack:
        remotes = [stack.enter_context(Remote(host.name, table=calls.TABLE)) for host in hosts]
        for remote in remotes:
            try:
                remote.call("remove_trial", folder=str(folder))
            except DragomanError as error:
                terminal.warn(f"{folder} may be left on {remote.name}: {error.what}")
