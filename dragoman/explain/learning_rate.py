"""What does the learning-rate curve mean? The formula with this run's numbers, and planned versus applied."""

from __future__ import annotations

from typing import Any

import numpy as np

from dragoman import format_units
from dragoman.explain.course import Schedule, planned
from dragoman.explain.finding import Finding, known, unknown
from dragoman.measure.records import Records

SAME = 1e-3  # share of the peak; our records hold doubles, other programs' logs three digits or more
MOST_COMPARED = 2_000  # steps, evenly spread


def explain(records: Records) -> Finding:
    updates, applied = _applied(records)
    plan = planned(records.facts.settings)
    if plan is None and not len(applied):
        return unknown(
            "learning_rate", "neither the schedule's settings nor the rates of steps were recorded"
        )
    numbers: dict[str, Any] = known(warmup_steps=plan.settings.warmup_steps if plan else None)
    if len(applied):
        peak = int(applied.argmax())
        numbers |= known(
            peak=applied[peak], peak_step=int(updates[peak]), last=applied[-1], last_step=int(updates[-1])
        )
    elif plan:
        peak_step = min(max(1, plan.settings.warmup_steps), plan.settings.steps)
        numbers |= known(peak=plan.rates([peak_step])[0], peak_step=peak_step)
    sentences = [_formula(plan) if plan else "The schedule's settings were not recorded."]
    if len(applied):
        sentences.append(_course(updates, applied, "It" if plan else "The rate"))
    if plan and len(applied):
        difference = _difference(updates, applied, plan)
        numbers |= known(planned_difference_share=difference)
        if np.isfinite(difference):
            sentences.append(_comparison(difference))
    return Finding(
        id="learning_rate",
        verdict="stated",
        answer=" ".join(sentences),
        numbers=numbers,
        evidence=_evidence(plan is not None, len(applied)),
        confidence="measured" if len(applied) else "estimated",
    )


def _applied(records: Records) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers of updates, from 1, and the rate each used."""
    steps, rates = records.steps["step"], records.steps["learning_rate"]
    known_rows = np.isfinite(steps) & np.isfinite(rates)
    order = np.argsort(steps[known_rows], kind="stable")
    steps, rates = steps[known_rows][order], rates[known_rows][order]
    return (steps + 1 if len(steps) and steps[0] == 0 else steps), rates


def _formula(plan: Schedule) -> str:
    config, width = plan.settings, plan.width
    rate, warmup, steps = config.rate, config.warmup_steps, config.steps
    if config.schedule != "transformer" and warmup >= steps:
        end = f"the plan ends before that, at step {steps:,}"
        return f"The rate rises linearly towards {rate:.3g}, which it would reach at step {warmup:,}: {end}."
    rise = f"rises linearly to {rate:.3g} at step {warmup:,}, then " if warmup else ""
    return {
        "transformer": f"The rate is {rate:g} x {width}^-0.5 x min(step x {max(1, warmup)}^-1.5, step^-0.5): "
        f"it rises linearly for {format_units.counted(warmup, 'step')}, so that the first gradients do "
        "little harm, then falls with the inverse square root of the step.",
        "inverse_sqrt": f"The rate {rise}falls with the inverse square root of the step "
        f"({rate:g} x ({max(1, warmup)} / step)^0.5).",
        "linear": f"The rate {rise}falls linearly from {rate:.3g} to 0 at step {steps:,}.",
        "cosine": f"The rate {rise}falls along half a cosine from {rate:.3g} to 0 at step {steps:,}.",
        "constant": f"The rate {rise}stays at {rate:.3g}.",
    }[config.schedule]


def _course(updates: np.ndarray, rates: np.ndarray, subject: str) -> str:
    peak = int(rates.argmax())
    at = f"{rates[peak]:.3g} at step {updates[peak]:,.0f}"
    if peak == len(rates) - 1:
        return f"{subject} had reached {at}, the last one so far, and was not yet past its peak."
    return f"{subject} peaked at {at} and was {rates[-1]:.3g} at step {updates[-1]:,.0f}."


def _difference(updates: np.ndarray, rates: np.ndarray, plan: Schedule) -> float:
    """Returns the largest difference between planned and applied rates, as a share of the planned peak.

    Steps before the plan was made do not count: `train.minutes` makes it once the first steps are timed.
    """
    is_planned = updates > plan.settings.fitted_at
    updates, rates = updates[is_planned], rates[is_planned]
    if not len(updates):
        return float("nan")
    chosen = np.unique(np.linspace(0, len(updates) - 1, min(MOST_COMPARED, len(updates))).astype(int))
    wanted = plan.rates(updates[chosen])
    largest = wanted.max()
    return float(np.abs(wanted - rates[chosen]).max() / largest) if largest > 0 else float("nan")


def _comparison(difference: float) -> str:
    if difference <= SAME:
        return "The applied rates match the plan."
    return (
        f"Applied and planned rates differ by up to {100 * difference:.2g}% of the peak: the settings "
        "changed between attempts, or the schedule did not advance exactly once per update."
    )


def _evidence(is_planned: bool, applied: int) -> list[str]:
    evidence = []
    if applied:
        steps = format_units.counted(applied, "step")
        evidence.append(f"peak, peak_step, last: the applied rates of {steps}; steps count from 1")
    if is_planned:
        evidence.append("formula, warmup_steps: the run's settings")
    return evidence
