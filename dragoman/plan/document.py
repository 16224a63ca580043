"""A plan as JSON: what `plan --json` prints, and what stands in a run folder as plan.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from dragoman import atomic
from dragoman.errors import RecordsError, reading
from dragoman.plan import alternatives
from dragoman.plan.alternatives import Alternative
from dragoman.plan.estimate import Estimate
from dragoman.plan.forecast import Forecast
from dragoman.plan.request import Plan

SCHEMA = 1


Amount = Annotated[float, Field(ge=0, le=1e24, allow_inf_nan=False)]


class Number(BaseModel):
    """An estimate, read back."""

    value: Amount
    low: Amount
    high: Amount
    source: str = ""


class Steps(Number):
    value: Annotated[float, Field(ge=1, le=1e12)]


class Saved(BaseModel):
    """As much of a plan.json as a report needs. Seconds."""

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
    """None where no plan was made."""
    if not path.exists():
        return None
    with reading(path, RecordsError, hint="remove it, or make it again: dragoman plan"):
        return Saved.model_validate_json(path.read_bytes())


def document(plan: Plan) -> dict[str, Any]:
    made = plan.forecast
    table = alternatives.alternatives(made)
    money = made.money
    return {
        "schema_version": SCHEMA,
        "cluster": str(made.cluster),
        "hosts": made.cluster.hosts,
        "workers": made.cluster.workers,
        "ranks": made.cluster.ranks,
        "device": made.pace.device,
        "exchange": str(made.way),
        "parameters": made.work.parameters,
        "flops_per_step": made.work.flops_per_step(),
        "bytes_per_step_per_host": made.costs["value"].wire_bytes,
        "link_bits_per_second": _link(made),
        "assumptions": plan.assumptions,
        "binds": made.binds,
        "steps": made.steps.document(),
        "step_seconds": made.step_seconds.document(),
        "step_parts_seconds": _documents(made.step_parts),
        "seconds": made.seconds.document(),
        "run_parts_seconds": _documents(made.run_parts),
        "money": money.document() if money else None,
        "currency": plan.currency,
        "disk_bytes": made.work.disk_bytes.document(),
        "memory_bytes_per_rank": memory(made).document(),
        "alternatives": [_row(each, table) for each in table],
    }


def memory(made: Forecast) -> Estimate:
    """Of a rank: as it was measured, or as it is counted."""
    return made.pace.used_bytes or made.work.memory_bytes


def _link(made: Forecast) -> dict[str, Any] | None:
    link = made.cluster.link
    return link.bits_per_second.document() if link and made.cluster.hosts > 1 else None


def _documents(parts: dict[str, Estimate]) -> dict[str, Any]:
    return {name: part.document() for name, part in parts.items()}


def _row(each: Alternative, table: list[Alternative]) -> dict[str, Any]:
    made = each.forecast
    return {
        "hosts": made.cluster.hosts,
        "link": made.cluster.link.name if made.cluster.link else None,
        "way": each.way,
        "steps": made.steps.value,
        "step_seconds": made.step_seconds.document(),
        "seconds": made.seconds.document(),
        "host_hours": each.host_hours,
        "money": made.money.document() if made.money else None,
        "is_fastest": each is alternatives.fastest(table),
        "is_cheapest": each is alternatives.cheapest(table),
    }
