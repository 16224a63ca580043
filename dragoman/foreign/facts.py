"""Facts that the user gives because no log holds them: as options, or in TOML under the same names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.cost import gpu_types
from dragoman.errors import ConfigError, UsageError
from dragoman.figures import ordered_link, readings
from dragoman.foreign import models, steptime
from dragoman.foreign.log_facts import (
    GIVEN,
    MOST_HOURS,
    MOST_RANKS,
    MOST_STEP_SECONDS,
    MOST_STEPS,
    NAN,
    Gathered,
)
from dragoman.foreign.nmon import KB

_POWER = re.compile(r"(\d+(?:\.\d+)?) ?W?(?: ?/ ?(\d+(?:\.\d+)?) ?W?)?")
_MOST_WATTS = 10_000
_COMPARED = ("ranks", "machines", "parameters", "gradient_bytes", "precision", "pairs_per_rank")


class Given(BaseModel):
    """The facts that the user gave; None if not given. Fields have the names of the options."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    ranks: int | None = Field(None, ge=1, le=MOST_RANKS)
    machines: int | None = Field(None, ge=1, le=MOST_RANKS)
    link: str | None = None  # as ordered: 1gbit, 1000 Mbps
    gpu: str | None = None
    nic_kb_per_s: float | None = Field(None, gt=0, le=1e10)  # nmon's, for the interface of the gradients
    nic: str | None = None  # a network reading in any words and unit
    gpu_power: str | None = None  # watts and their limit: 42/250
    gpu_util: float | None = Field(None, ge=0, le=100)  # percent
    model: str | None = None  # by name: transformer-base
    params: int | None = Field(None, ge=1, le=10**13)
    gradient_bytes: int | None = Field(None, ge=1, le=10**14)  # of one rank, as exchanged
    precision: str | None = None  # fp32 or mixed
    batch: int | None = Field(None, ge=1, le=10**9)  # pairs per rank and step
    step_seconds: float | None = Field(None, gt=0, le=MOST_STEP_SECONDS)
    steps: int | None = Field(None, ge=1, le=MOST_STEPS)
    hours: float | None = Field(None, gt=0, le=MOST_HOURS)


def load(path: Path | None, options: Mapping[str, Any]) -> Given:
    """The facts of a TOML file and of the options. Options override the file."""
    given = {name: value for name, value in options.items() if value is not None}
    from_options = _checked(given, None)
    if path is None:
        return from_options
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError: also not UTF-8, or a number of 5,000 digits
        raise ConfigError(f"not TOML: {error}", path=path) from None
    return _checked(values | given, path)


def _checked(values: Mapping[str, Any], path: Path | None) -> Given:
    try:
        given = Given(**values)
        _check(given)
        return given
    except UsageError as error:
        raise ConfigError(error.what, path=path, hint=error.hint) if path else error from None
    except ValidationError as error:
        first = error.errors()[0]
        name, message = ".".join(map(str, first["loc"])), first["msg"][:1].lower() + first["msg"][1:]
        if path is None:
            raise UsageError(f"--{name.replace('_', '-')} {first['input']}: {message}") from None
        known = ", ".join(Given.model_fields)
        raise ConfigError(f"{name}: {message}", path=path, hint=f"possible facts: {known}") from None


def add(given: Given, gathered: Gathered, origin: str = GIVEN) -> None:
    """Adds the given facts to the gathered ones. They replace a log's facts, except its steps and times."""
    _check(given)
    given = _without_what_the_log_times(given, gathered)
    seconds = _step_seconds(given, gathered)
    if given.model:  # settings in the log override those of the named model
        gathered.settings = models.settings(given.model) | gathered.settings
    plain = {
        "ranks": given.ranks,
        "machines": given.machines,
        "parameters": given.params or (models.parameters(given.model) if given.model else None),
        "gradient_bytes": given.gradient_bytes,
        "precision": given.precision,
        "pairs_per_rank": given.batch,
        "device": given.gpu,
        "link_bits_per_second": ordered_link(given.link) if given.link else None,
        "given_steps": given.steps,
        "given_step_seconds": seconds,
        "wall_seconds": given.hours * 3600 if given.hours else None,
        "nic_readings": readings(given.nic) or None,
    }
    if given.gpu and not gpu_types.named(given.gpu):
        known = ", ".join(kind.name for kind in gpu_types.GPU_TYPES)
        gathered.notes.append(
            f"--gpu {given.gpu}: not one of {known}; computing is estimated for the whole range of GPUs"
        )
    for name in _COMPARED:
        logged, wanted = gathered.value(name), plain[name]
        if wanted is not None and logged is not None and logged != wanted:
            gathered.notes.append(f"{name.replace('_', ' ')}: using {wanted} as given; the log says {logged}")
            if name in ("ranks", "machines"):
                gathered.facts.pop("rank_hosts", None)
                gathered.facts.pop("hosts", None)
    for name, value in plain.items():
        gathered.fact(name, value, origin)
    if given.nic_kb_per_s:
        gathered.fact("nic_kb_per_s", given.nic_kb_per_s, origin)
        gathered.fact("nic_bytes_per_second", KB * given.nic_kb_per_s, origin)
    if given.gpu_power or given.gpu_util is not None:
        _power(given, gathered, origin)


def _without_what_the_log_times(given: Given, gathered: Gathered) -> Given:
    """The given facts without steps and times that the log has: one figure does not replace thousands."""
    has_times = any(seconds == seconds for seconds in gathered.intervals["seconds"])
    has_own = {"step_seconds": has_times, "steps": bool(gathered.intervals["step"]), "hours": has_times}
    ignored = [name for name, has in has_own.items() if has and getattr(given, name) is not None]
    gathered.notes += [
        f"--{name.replace('_', '-')}: ignored, because the log has its own" for name in ignored
    ]
    return given.model_copy(update=dict.fromkeys(ignored))


def _step_seconds(given: Given, gathered: Gathered) -> float | None:
    """The given time per step, unless the run's length shows it to be a rate; else the length over steps."""
    settled, remark = steptime.settled(given.step_seconds, 0.0, given.steps, given.hours, 0.0)
    if remark:
        gathered.remark("step_time", remark)
    is_rate = given.step_seconds and settled and steptime.is_rate(given.step_seconds, settled)
    return settled if is_rate else given.step_seconds or settled


def _check(given: Given) -> None:
    if given.ranks and given.machines and given.ranks < given.machines:
        raise UsageError(
            f"--ranks {given.ranks} is less than --machines {given.machines}",
            hint="--ranks counts the processes on all machines together",
        )
    if given.precision not in (None, "fp32", "mixed"):
        raise UsageError(f"--precision {given.precision}: neither fp32 nor mixed")
    if given.nic and (given.nic.lstrip().startswith("-") or not readings(given.nic)):
        raise UsageError(
            f"--nic {given.nic}: no rate found in this text", hint='for example --nic "200 Mbps"'
        )
    if given.link:
        ordered_link(given.link)
    if given.model:
        models.check(given.model)
    if given.gpu_power:
        _watts(given.gpu_power)


def _watts(text: str) -> list[float]:
    """The watts drawn, followed by their limit if it was given."""
    match = _POWER.fullmatch(text.strip())
    numbers = [float(number) for number in match.groups() if number] if match else []
    if not numbers or not all(0 <= watts <= _MOST_WATTS for watts in numbers) or numbers[1:] == [0]:
        what = f"--gpu-power {text}: not watts between 0 and {_MOST_WATTS:,}"
        raise UsageError(what, hint="for example --gpu-power 42/250")
    return numbers


def _power(given: Given, gathered: Gathered, origin: str) -> None:
    numbers = _watts(given.gpu_power) if given.gpu_power else []
    kinds = gpu_types.named(gathered.value("device"))
    limit = numbers[1] if len(numbers) == 2 else kinds[-1].watts if kinds else NAN
    row = {"host": "", "time": NAN, "span": 1.0, "gpu": 0}
    row |= {"power_watts": numbers[0] if numbers else NAN, "power_limit_watts": limit}
    row |= {"utilisation": given.gpu_util / 100 if given.gpu_util is not None else NAN}
    gathered.gpus.append(row)
    gathered.fact("gpu_meters", f"{given.gpu_power or ''} {given.gpu_util or ''}".strip(), origin)
