"""Was it overfitting? Held-out against training pairs, scored the same way and without dropout."""

from __future__ import annotations

import numpy as np

from dragoman.explain import remedies
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.history import History, history, rise
from dragoman.measure.records import Records

LEAST_POINTS = 4  # the fewest that can show a minimum and two values after it
MOST_DROPOUT = 0.3  # the advice goes no higher
PATIENCE = 5  # evaluations without improvement
STANDSTILL = 0.01  # share of the held-out loss: the later half gained less, while the gap widened by more


def explain(records: Records) -> Finding:
    past = history(records)
    both = np.isfinite(past.eval_loss) & np.isfinite(past.train_sample_loss)
    _, held_out = past.of(past.eval_loss)
    if not len(past.steps):
        made, every = _made_and_due(records)
        return unknown("overfitting", _not_yet(made, every), known(steps=made, first_evaluation_step=every))
    if not both.any():
        because = (
            "no sample of training pairs was scored like the held-out set, and the training loss, with its"
        )
        because += " dropout and label smoothing, cannot be compared with it"
        return unknown("overfitting", because, known(eval_loss=held_out[-1] if len(held_out) else None))
    steps, held_out, sample = past.steps[both], past.eval_loss[both], past.train_sample_loss[both]
    gap = held_out - sample
    trend = _trend(steps, gap)
    numbers = known(
        eval_loss=held_out[-1],
        train_sample_loss=sample[-1],
        gap=gap[-1],
        gap_trend_per_1000_steps=trend,
        best_eval_loss=held_out.min(),
        best_eval_loss_step=int(steps[held_out.argmin()]),
        evaluations_of_both=len(steps),
    )
    if len(steps) < LEAST_POINTS:
        because = f"a trend needs {LEAST_POINTS} evaluations of both sets, and the run has {len(steps)}"
        return unknown("overfitting", because, numbers)
    return _judge(records, past, steps, held_out, sample, trend, numbers)


def _made_and_due(records: Records) -> tuple[int | None, int | None]:
    """Returns the last step and the step of the first evaluation, where they are known."""
    steps, every = records.steps["step"], records.facts.settings.get("evaluate.every")
    steps = steps[np.isfinite(steps)]
    return int(steps[-1]) if len(steps) else None, every if isinstance(every, int) else None


def _not_yet(made: int | None, every: int | None) -> str:
    """Says that there is no evaluation, and if the first one is not due yet, when it is."""
    if made is None or every is None or made >= every:
        return "no evaluation was recorded"
    return f"no evaluation yet; the run is at step {made:,}, and the first one is due at step {every:,}"


def _judge(
    records: Records,
    past: History,
    steps: np.ndarray,
    held_out: np.ndarray,
    sample: np.ndarray,
    trend: float,
    numbers: dict[str, float],
) -> Finding:
    best, rose = int(held_out.argmin()), rise(held_out)
    losses = f"Last held-out loss {held_out[-1]:.3f}, training sample {sample[-1]:.3f}"
    losses += f", gap {held_out[-1] - sample[-1]:z.3f} ({trend:+z.3f} per 1,000 steps)"
    numbers |= known(risen_from_best=rose)
    advice = []
    if rose and sample[-1] < sample[best]:
        verdict = "yes"
        answer = f"Yes, since about step {steps[best]:,.0f}: the held-out loss has risen by {rose:.3f} from "
        answer += f"its best while the loss on the training sample kept falling. {losses}."
        by_loss = remedies.setting(records.facts, "evaluate.metric", "loss")
        advice.append(
            f"use the model of step {steps[best]:,.0f}, whose held-out loss is {rose:.3f} lower{by_loss}"
        )
        advice.append(_next_time(records))
        if _bleu_still_rises(past, int(steps[best])):
            answer += " BLEU kept rising all the same: the model has become overconfident, not worse."
            by_bleu = remedies.setting(records.facts, "evaluate.metric", "bleu")
            advice[0] = f"choose the model by BLEU rather than by held-out loss{by_bleu}"
    elif rose:
        verdict = "no"
        answer = f"No: the held-out loss has risen by {rose:.3f} from its best, but so has the loss on the "
        answer += f"training sample: training itself went wrong. {losses}."
    else:
        verdict = "no"
        answer = f"No: the held-out loss has not risen from its best. {losses}."
        half, matters = len(steps) // 2, STANDSTILL * abs(held_out[-1])
        if held_out[half] - held_out[-1] < matters < (held_out - sample)[-1] - (held_out - sample)[half]:
            answer += " But it has stopped falling while the gap widens: more steps would start to overfit."
    evidence = ["eval_loss, train_sample_loss: held-out and training pairs, scored alike at each evaluation"]
    evidence.append(
        f"gap_trend_per_1000_steps: a straight line through the later half of {len(steps)} evaluations"
    )
    return Finding(
        id="overfitting", verdict=verdict, answer=answer, numbers=numbers, evidence=evidence, advice=advice
    )


def _next_time(records: Records) -> str:
    dropout = records.facts.settings.get("model.dropout")
    more = min(MOST_DROPOUT, dropout + 0.1) if isinstance(dropout, float) else MOST_DROPOUT
    how = remedies.setting(records.facts, "model.dropout", f"{more:g}")
    stop = remedies.setting(records.facts, "evaluate.patience", PATIENCE)
    return f"next time, use more pairs or more dropout{how}, and stop earlier{stop}"


def _trend(steps: np.ndarray, gap: np.ndarray) -> float:
    """Returns the slope of the gap per 1,000 steps, over the later half of the evaluations."""
    later = min(len(gap) // 2, max(0, len(gap) - 3))
    x, y = steps[later:] - steps[later:].mean(), gap[later:]
    spread = (x**2).sum()
    return float(1000 * (x * y).sum() / spread) if spread > 0 else float("nan")


def _bleu_still_rises(past: History, since: int) -> bool:
    """Whether BLEU after the best loss is clearly higher than before it."""
    steps, bleu = past.of(past.bleu)
    before, after = bleu[steps <= since], bleu[steps > since]
    return bool(len(before) and len(after) and np.median(after[-3:]) > before.max() + 0.5)
