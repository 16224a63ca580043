"""Completes the gathered GPU readings of a run."""

from __future__ import annotations

from typing import Any

from dragoman.cost import gpu_types
from dragoman.foreign.log_facts import ESTIMATED, NAN, Gathered


def metered(run: Gathered) -> list[dict[str, Any]]:
    """The readings without unused GPUs, and with the power limit of the GPU type if none was recorded."""
    used = {_place(row) for row in run.gpus if row.get("utilisation", NAN) != 0}
    rows = [row for row in run.gpus if _place(row) in used] or run.gpus
    limit = max((kind.watts for kind in gpu_types.named(run.value("device"))), default=NAN)
    if limit != limit or not any(map(_is_bare, rows)):
        return rows
    run.fact("gpu_meters", "the usual power limit of this GPU type", ESTIMATED)
    return [row | {"power_limit_watts": limit} if _is_bare(row) else row for row in rows]


def _is_bare(row: dict[str, Any]) -> bool:
    return row.get("power_watts", NAN) > 0 and not row.get("power_limit_watts", NAN) > 0


def _place(row: dict[str, Any]) -> tuple[str, float]:
    gpu = row.get("gpu", NAN)
    return row["host"], gpu if gpu == gpu else -1.0
