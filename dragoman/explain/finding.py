"""A finding: an answer with its numbers, its evidence, how sure it is, and what to try."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel

SCHEMA = 1

QUESTIONS = {
    "duration": "How long did the run take?",
    "convergence": "Is the model fully trained? How can you tell?",
    "overfitting": "Was it overfitting?",
    "device_utilisation": "Were the devices fully used?",
    "network": "Was the network the bottleneck?",
    "learning_rate": "What does the learning-rate curve mean?",
    "training_set": "How big is the training set?",
    "checkpoint_files": "What files is a checkpoint made of?",
    "checkpoint_size": "How big is it?",
    "step_time": "What is a step, and how long is one?",
    "step_network": "How does step time go with network traffic?",
}
VERDICTS = {
    "convergence": ("converged", "improving", "diverged", "unknown"),
    "overfitting": ("yes", "no", "unknown"),
    "device_utilisation": (
        "computing",
        "waiting_network",
        "waiting_data",
        "waiting_straggler",
        "waiting_cpu",
        "unknown",
    ),
    "network": ("bottleneck", "balanced", "not_bottleneck", "single_machine", "unknown"),
}
STATED = ("stated", "unknown")  # where a question has no verdicts of its own


class Finding(BaseModel):
    id: str
    verdict: str
    answer: str  # one or two sentences with numbers
    numbers: dict[str, Any] = {}  # named, with units in the names; absent when unknown
    evidence: list[str] = []  # where each number came from
    confidence: Literal["measured", "estimated", "unknown"] = "measured"
    advice: list[str] = []  # what to try, with the expected gain

    @property
    def question(self) -> str:
        return QUESTIONS[self.id]


def unknown(id: str, because: str, numbers: dict[str, Any] | None = None) -> Finding:
    """ "Unknown, because X was not recorded" is a good answer."""
    return Finding(
        id=id, verdict="unknown", answer=f"Unknown: {because}.", numbers=numbers or {}, confidence="unknown"
    )


def known(**numbers: Any) -> dict[str, Any]:
    """Those that are known, neither None nor NaN, as plain values that JSON can hold."""
    plain = {name: _plain(value) for name, value in numbers.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):  # numpy's scalars
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def document(run: dict[str, Any], findings: list[Finding]) -> dict[str, Any]:
    """What findings.json and every --json hold."""
    rows = [{"id": f.id, "question": f.question, **f.model_dump(exclude={"id"})} for f in findings]
    return {"schema": SCHEMA, "run": run, "findings": rows}
