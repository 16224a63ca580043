"""A plan as JSON: what `plan --json` prints and `plan --for RUN` saves as plan.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from dragoman import atomic
from dragoman.errors import RecordsError, reading
from dragoman.plan import alternatives
from dragoman.plan.alternatives import AlternativePlan
from dragoman.plan.estimate import Estimate
from dragoman.plan.forecast import Forecast
from dragoman.plan.request import Plan

SCHEMA = 1


Amount = Annotated[float, Field(ge=0, le=1e24, allow_inf_nan=False)]


class Number(BaseModel):
    """An estimate read from plan.json."""

    value: Amount
    low: Amount
    high: Amount
    source: str = ""


class Steps(Number):
    value: Annotated[float, Field(ge=1, le=1e12)]


class Saved(BaseModel):
    """The part of plan.json that a report needs. Times are in seconds."""

    schema_version: int
    cluster: str
    steps: Steps
    step_seconds: Number
    step_parts_seconds: dict[str, Number]
    seconds: Number
    run_parts_seconds: dict[str, Number]
    disk_bytes: Number
    ranks: Annotated[int, Field(ge=1, le=10**9)]


def text(plan: Plan) -> str:
    return json.dumps(document(plan), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save(plan: Plan, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, text(plan).encode())


def load(path: Path) -> Saved | None:
    """The plan saved at this path, or None if there is none."""
    if not path.exists():
        return None
    with reading(path, RecordsError, hint="remove it, or write it again with dragoman plan --for RUN"):
        return Saved.model_validate_json(path.read_bytes())


def document(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values."""
    forecast = plan.forecast
    table = alternatives.alternatives(forecast)
    money = forecast.money
    return {
        "schema_version": SCHEMA,
        "cluster": str(forecast.cluster),
        "hosts": forecast.cluster.hosts,
        "workers": forecast.cluster.workers,
        "ranks": forecast.cluster.ranks,
        "device": forecast.pace.device,
        "exchange": str(forecast.way),
        "parameters": forecast.work.parameters,
        "flops_per_step": forecast.work.flops_per_step(),
        "bytes_per_step_per_host": forecast.costs["value"].wire_bytes,
        "link_bits_per_second": _link(forecast),
        "assumptions": plan.assumptions,
        "binds": forecast.binds,
        "steps": forecast.steps.document(),
        "step_seconds": forecast.step_seconds.document(),
        "step_parts_seconds": _documents(forecast.step_parts),
        "seconds": forecast.seconds.document(),
        "run_parts_seconds": _documents(forecast.run_parts),
        "money": money.document() if money else None,
        "currency": plan.currency,
        "disk_bytes": forecast.work.disk_bytes.document(),
        "memory_bytes_per_rank": memory(forecast).document(),
        "alternatives": [_row(each, table) for each in table],
    }


def memory(forecast: Forecast) -> Estimate:
    """Memory per rank: measured if possible, otherwise counted from the model."""
    return forecast.pace.used_bytes or forecast.work.memory_bytes(forecast.cluster.workers)


def _link(forecast: Forecast) -> dict[str, Any] | None:
    link = forecast.cluster.link
    return link.bits_per_second.document() if link and forecast.cluster.hosts > 1 else None


def _documents(parts: dict[str, Estimate]) -> dict[str, Any]:
    return {name: part.document() for name, part in parts.items()}


def _row(each: AlternativePlan, table: list[AlternativePlan]) -> dict[str, Any]:
    forecast = each.forecast
    return {
        "hosts": forecast.cluster.hosts,
        "link": forecast.cluster.link.name if forecast.cluster.link else None,
        "way": each.way,
        "steps": forecast.steps.value,
        "step_seconds": forecast.step_seconds.document(),
        "seconds": forecast.seconds.document(),
        "host_hours": each.host_hours,
        "money": forecast.money.document() if forecast.money else None,
        "is_fastest": each is alternatives.fastest(table),
        "is_cheapest": each is alternatives.cheapest(table),
    }
