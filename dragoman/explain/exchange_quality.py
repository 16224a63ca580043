"""Whether a way of exchanging that changes what training computes shows in the held-out loss."""

from __future__ import annotations

import numpy as np

from dragoman.explain.curves import extrapolate
from dragoman.explain.history import History
from dragoman.measure.records import Records

HARM_SHARE = 0.01  # of the loss: less is no harm


def note(records: Records, past: History) -> str:
    """Nothing where gradients were exchanged as they are, or nobody recorded how."""
    facts = records.facts
    if facts.source != "dragoman" or facts.way.is_exact:
        return ""
    what = f" Gradients went by {facts.way}"
    began, before = _since(records)
    found = _against(past, began) if before else None
    if found is None:
        plain = "there is no stretch of plain training in this run to hold its loss against"
        return f"{what}; {plain}: dragoman compare with a run in sync.mode=allreduce and fp32 tells."
    loss, expected, margin = found
    text = f"{what} since step {began:,} ({before} before): the held-out loss is {loss:.3f}, where the curve "
    text += f"before led to expect {expected:.3f} (give or take {margin:.3f})"
    return f"{text}: it learns less by this way." if loss > expected + margin else f"{text}: no harm to see."


def _since(records: Records) -> tuple[int, str]:
    """The step before the first by the present way, and the way before that; nothing if there was none."""
    ways = [(event.step, event.detail) for event in records.events if event.kind == "exchange"]
    for (began, present), (_, before) in zip(ways[::-1], ways[-2::-1], strict=False):
        if present != before:
            return began, before
    return 0, ""


def _against(past: History, began: int) -> tuple[float, float, float] | None:
    """The last loss that the curve of the steps before reaches, what it says there, and how sure it is."""
    steps, losses = past.of(past.eval_loss)
    earlier = steps <= began
    fit = extrapolate(steps[earlier], losses[earlier], rises=False, bounds=(0.0, np.inf))
    later = ~earlier & (steps <= 2 * began)
    if fit is None or not later.any():
        return None
    step, loss = steps[later][-1], losses[later][-1]
    expected = float(np.interp(step, *np.transpose(fit.curve)))
    margin = max(fit.high - fit.change, 3 * fit.noise, HARM_SHARE * expected)
    return float(loss), expected, float(margin)
