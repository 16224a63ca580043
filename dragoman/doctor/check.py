"""The result of one check: where, what was found, whether it is good enough, and what to try if not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warning", "error"]
ALL = "all hosts"
_ORDER: tuple[Status, ...] = ("ok", "warning", "error")


@dataclass(frozen=True)
class Check:
    """One checked thing on one host, between two, or on all."""

    name: str
    host: str  # or "a to b", or ALL
    status: Status
    value: str
    advice: str = ""

    def __str__(self) -> str:
        text = f"{self.name} on {self.host}" if " to " not in self.host else f"{self.name} from {self.host}"
        return f"{text}: {self.value}"


def worst(checks: Sequence[Check]) -> Status:
    return max((check.status for check in checks), key=_ORDER.index, default="ok")


def failed(checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.status == "error"]


def verdict(checks: Sequence[Check]) -> str:
    """The outcome of all checks in one line."""
    if errors := failed(checks):
        return "failed: " + "; ".join(map(str, errors))
    warnings = sum(check.status == "warning" for check in checks)
    return f"ok, {warnings} warning{'s' * (warnings > 1)}" if warnings else "ok"


def json_text(checks: Sequence[Check], trial: dict[str, Any] | None = None) -> str:
    """The checks as JSON; `trial` is the outcome of the ten steps of --train."""
    result: dict[str, Any] = {"schema": 1, "checks": [asdict(check) for check in checks]}
    if trial is not None:
        result["trial"] = trial
    return json.dumps(result | {"verdict": worst(checks)}, indent=2)
