"""Every explainer over the records of one run: the eleven findings, in the order of the questions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dragoman.explain import (
    checkpoint,
    convergence,
    device,
    duration,
    learning_rate,
    network,
    overfitting,
    placement,
    step_network,
    step_time,
    training_set,
)
from dragoman.explain.finding import QUESTIONS, Finding, unknown
from dragoman.measure.records import Records

EXPLAINERS: dict[str, Callable[[Records], Finding]] = {
    "duration": duration.explain,
    "convergence": convergence.explain,
    "overfitting": overfitting.explain,
    "device_utilisation": device.explain,
    "network": network.explain,
    "learning_rate": learning_rate.explain,
    "training_set": training_set.explain,
    "checkpoint_files": checkpoint.explain_files,
    "checkpoint_size": checkpoint.explain_size,
    "step_time": step_time.explain,
    "step_network": step_network.explain,
}
OF_ONE_PLACEMENT = ("device_utilisation", "network", "step_time", "step_network")


def explain(records: Records, price_per_hour: float | None = None) -> list[Finding]:
    """The eleven answers. `price_per_hour` is that of one host."""
    explainers = dict(EXPLAINERS)
    explainers["duration"] = partial(duration.explain, price_per_hour=price_per_hour)
    placed = placement.longest(records)
    of = {id: placed.records if id in OF_ONE_PLACEMENT else records for id in QUESTIONS}
    findings = [_answer(id, explainers[id], of[id]) for id in QUESTIONS]
    for finding in findings:
        if finding.id in OF_ONE_PLACEMENT and placed.others:
            finding.answer += f" {placed.others}"
    return findings


def _answer(id: str, explainer: Callable[[Records], Finding], records: Records) -> Finding:
    """One answer that cannot be given must not take the other ten with it."""
    try:
        return explainer(records)
    except Exception as error:
        return unknown(id, f"the records could not be explained ({type(error).__name__}: {error})")
