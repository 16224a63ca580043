"""Whether an exchange that changes what training computes harms the held-out loss."""

from __future__ import annotations

import numpy as np

from dragoman.explain.curves import extrapolate
from dragoman.explain.history import History
from dragoman.measure.records import Records

HARM_SHARE = 0.01  # of the loss; a smaller increase is no harm


def note(records: Records, past: History) -> str:
    """Says whether the exchange harmed the loss; empty for an exact exchange, or if it was not recorded."""
    facts = records.facts
    if facts.source != "dragoman" or facts.way.is_exact:
        return ""
    exchanged = f" Gradients were exchanged by {facts.way}"
    began, before = _since(records)
    losses = _loss_and_expected(past, began) if before else None
    if losses is None:
        exact = "a run with sync.mode=allreduce and sync.wire=fp32"
        return f"{exchanged}; `dragoman compare` with {exact} shows whether that harms the loss."
    loss, expected, margin = losses
    text = f"{exchanged} since step {began:,} ({before} before). The held-out loss is {loss:.3f}, where the "
    text += f"curve until then predicted {expected:.3f} (give or take {margin:.3f})"
    return (
        f"{text}: training learns less this way." if loss > expected + margin else f"{text}: no harm shows."
    )


def _since(records: Records) -> tuple[int, str]:
    """Returns the last step before the present way of exchanging, and the way before it ("" if none)."""
    ways = [(event.step, event.detail) for event in records.events if event.kind == "exchange"]
    for (began, present), (_, before) in zip(ways[::-1], ways[-2::-1], strict=False):
        if present != before:
            return began, before
    return 0, ""


def _loss_and_expected(past: History, began: int) -> tuple[float, float, float] | None:
    """Returns the last loss that the curve of the earlier steps reaches, its prediction, and the margin."""
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
