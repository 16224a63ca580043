"""What twice the steps would gain, in held-out loss and in BLEU.

BLEU follows the loss, late in a run almost in a straight line. On its own it starts late and is noisy. So the
gain in BLEU is derived from the gain in loss, and comes from a curve of its own only where the loss is no
guide: it was not scored, or it rises while BLEU does not fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dragoman.explain.course import Course
from dragoman.explain.curves import INTERVAL, LEAST_POINTS, Draws, Extrapolation, extrapolate
from dragoman.explain.finding import known
from dragoman.explain.history import History, rise
from dragoman.measure.records import RunFacts

# The gain that makes twice the steps worth it. Half a BLEU is about the smallest difference that a test set
# of two or three thousand sentences shows reliably. For the loss 1 %, but at least 0.01 (1 % of perplexity).
BLEU_WORTH = 0.5
LOSS_WORTH_SHARE = 0.01
LOSS_WORTH_LEAST = 0.01
NOTHING_LEARNT_BLEU = 1.0
LIKELY = 0.2  # more training is advised where four in five predictions gain something that matters
FORETOLD_FROM_BLEU = 3.0  # lower BLEU does not follow the loss yet, and on its own predicts nothing
# Least noise of one evaluation, however smooth the points look, and of two runs that differ only in length.
LOSS_NOISE_SHARE = 0.001
BLEU_NOISE = 0.1
LOSS_RUN_NOISE_SHARE = 0.002
BLEU_RUN_NOISE = 0.3
POWERS = (0.0, 1.0, 2.0, 3.0)  # of a token's probability
MOST_BENT = 100.0  # e^100 is a finite number
# One standard deviation as a share of BLEU's gain, doubled where the gain is as large as what was seen: such
# lines are not quite straight (measured by benchmarks/convergence.py).
SLOPE_DOUBT = 0.3


@dataclass(frozen=True)
class Gain:
    """A predicted gain; positive is better for loss and BLEU alike."""

    name: str
    gain: float
    low: float
    high: float
    likely: float  # gained, or more, with a probability of 80 %
    worth: float  # the smallest gain that matters; at least the noise of one evaluation
    curve: list[tuple[float, float]]

    @property
    def verdict(self) -> str:
        if self.high < self.worth:
            return "converged"
        if self.likely >= self.worth:
            return "improving"
        return "converged" if self.high < 2 * self.worth else "unknown"

    def __str__(self) -> str:
        """The gain with its interval."""
        return f"{self.expected} (90% interval {self._figure(self.low)} to {self._figure(self.high)})"

    @property
    def expected(self) -> str:
        raises = "raise BLEU" if self.name == "bleu" else "lower the held-out loss"
        return f"{raises} by {self._figure(self.gain)}"

    def _figure(self, number: float) -> str:
        return f"{number:z.{1 if self.name == 'bleu' else 3}f}"

    def numbers(self) -> dict[str, object]:
        key = f"gain_if_doubled_{self.name}"
        curve = [[step, value] for step, value in self.curve]
        return {
            **known(**{key: self.gain, f"{key}_low": self.low, f"{key}_high": self.high}),
            f"{self.name}_curve": curve,
        }


def least_loss(facts: RunFacts) -> float:
    """Returns the lowest loss that label smoothing allows: the entropy of the smoothed targets.

    Held-out loss is scored with the same smoothing as training. 0 if smoothing or vocabulary is not known.
    """
    smoothing, pieces = facts.settings.get("train.label_smoothing"), facts.data_card.get("vocabulary_pieces")
    if not isinstance(smoothing, float) or not 0 < smoothing < 1 or not isinstance(pieces, int) or pieces < 2:
        return 0.0
    wrong = smoothing / pieces
    right = 1 - smoothing + wrong
    return -right * math.log(right) - (pieces - 1) * wrong * math.log(wrong)


def gains(past: History, course: Course | None, least_loss: float = 0.0) -> list[Gain]:
    """Returns the predicted gains in loss and BLEU for which there are enough points."""
    steps, losses = past.of(past.eval_loss)
    loss = None if rise(losses) else _loss_fit(steps, losses, course, least_loss)
    predicted = []
    if loss:
        worth = max(LOSS_WORTH_SHARE * abs(losses[-1]), LOSS_WORTH_LEAST, loss.noise)
        room = max(0.0, losses[-1] - least_loss)
        changes = (loss.high, loss.change, loss.low, loss.draws.at(1 - LIKELY)[0])
        low, gain, high, likely = (min(-change, room) for change in changes)
        predicted.append(Gain("loss", gain, low, high, likely, worth, loss.curve))
    scores = past.of(past.bleu)[1]
    if loss and len(scores) and scores[-1] < FORETOLD_FROM_BLEU:
        return predicted
    bleu = (_by_loss(past, loss, course) if loss else None) or _by_itself(past, course)
    return [*predicted, bleu] if bleu else predicted


def _loss_fit(
    steps: np.ndarray, losses: np.ndarray, course: Course | None, least: float
) -> Extrapolation | None:
    level = abs(losses[-1]) if len(losses) else 0.0
    between_runs = LOSS_RUN_NOISE_SHARE * level if course and course.way == "anew" else 0.0
    return extrapolate(
        steps, losses, False, (0.0, np.inf), course, LOSS_NOISE_SHARE * level, between_runs, least
    )


def _by_itself(past: History, course: Course | None) -> Gain | None:
    between_runs = BLEU_RUN_NOISE if course and course.way == "anew" else 0.0
    fit = extrapolate(*past.of(past.bleu), True, (0.0, 100.0), course, BLEU_NOISE, between_runs)
    if fit is None:
        return None
    likely, worth = fit.draws.at(LIKELY)[0], max(BLEU_WORTH, fit.noise)
    return Gain("bleu", fit.change, fit.low, fit.high, likely, worth, fit.curve)


def _by_loss(past: History, loss: Extrapolation, course: Course | None) -> Gain | None:
    """Derives the gain in BLEU from the gain in loss; None if BLEU does not rise as the loss falls."""
    both = np.isfinite(past.eval_loss) & np.isfinite(past.bleu) & (past.steps >= loss.curve[0][0])
    losses, bleu = past.eval_loss[both], past.bleu[both]
    if len(bleu) < LEAST_POINTS:
        return None
    lines = [_Line(losses[-1] - losses, bleu, power) for power in POWERS]
    scores = np.array([-0.5 * (len(bleu) - 1) * np.log(line.noise) * 2 for line in lines])
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    if not weights @ [line.slope for line in lines] > 0:
        return None
    between_runs = BLEU_RUN_NOISE if course and course.way == "anew" else 0.0
    parts = [line.gains(loss.draws, between_runs) for line in lines]
    more, room = np.concatenate([part.values for part in parts]), max(100 - float(bleu[-1]), 1e-9)
    draws = Draws(
        more / (1 + (np.maximum(more, 0.0) / room) ** 4) ** 0.25,  # bends before it would pass 100 BLEU
        np.concatenate([part.weights * weight for part, weight in zip(parts, weights, strict=True)]),
    )
    low, likely, gain, high = draws.at(INTERVAL[0], LIKELY, 0.5, INTERVAL[1])
    at, fitted = np.transpose(loss.curve)
    lies = sum(weight * line.at(losses[-1] - fitted) for line, weight in zip(lines, weights, strict=True))
    curve = _drawn(at, np.clip(lies, 0.0, 100.0), float(past.steps[both][-1]), float(bleu[-1]), gain)
    noise = float(weights @ [line.noise for line in lines])
    high = min(high, 100 - bleu[-1])
    return Gain("bleu", gain, low, high, likely, max(BLEU_WORTH, noise), curve)


def _drawn(
    at: np.ndarray, fitted: np.ndarray, last_step: float, last: float, gain: float
) -> list[tuple[float, float]]:
    """Returns the fitted curve; ahead of the last step, it leads from its score to the predicted one."""
    ahead = at > last_step
    if ahead.any():
        begins = np.interp(last_step, at, fitted)
        rises = fitted[-1] - begins
        share = (fitted[ahead] - begins) / rises if rises > 0 else np.linspace(0, 1, int(ahead.sum()))
        fitted = fitted.copy()
        fitted[ahead] = last + gain * share
    return [(float(x), float(y)) for x, y in zip(at, fitted, strict=True)]


class _Line:
    """BLEU as a line in a power of the token probability, which bends it; power 0 means its logarithm, the
    loss."""

    def __init__(self, log_probability: np.ndarray, bleu: np.ndarray, power: float):
        self._power = power
        x = self._bent(log_probability)
        centred = x - x.mean()
        self._squares = max(float((centred**2).sum()), 1e-12)
        self._seen = max(float(np.ptp(bleu)), BLEU_NOISE)
        self._middle, self._level = float(x.mean()), float(bleu.mean())
        self.slope = float(centred @ bleu) / self._squares  # at the last evaluation, whose logarithm is 0
        apart = bleu - bleu.mean() - self.slope * centred
        late = apart[len(apart) // 2 :]  # lines bend most in the first half
        self.noise = max(float(np.sqrt((late**2).mean() * len(bleu) / (len(bleu) - 2))), BLEU_NOISE)

    def _bent(self, log_probability: np.ndarray) -> np.ndarray:
        if not self._power:
            return log_probability
        # A loss that rose by hundreds, as in a damaged record, would overflow.
        return np.expm1(np.minimum(self._power * log_probability, MOST_BENT)) / self._power

    def at(self, log_probability: np.ndarray) -> np.ndarray:
        return self._level + self.slope * (self._bent(log_probability) - self._middle)

    def gains(self, changes: Draws, between_runs: float) -> Draws:
        """Returns the gains in BLEU for these changes of the loss, on a straight line from the last point."""
        more = -self.slope * changes.values
        of_form = SLOPE_DOUBT * (1 + np.minimum(1.0, np.abs(more) / self._seen)) * more
        of_slope = self.noise * changes.values / np.sqrt(self._squares)
        deviations = np.sqrt(of_slope**2 + of_form**2 + 2 * self.noise**2 + between_runs**2)
        return Draws(more, changes.weights).blurred(deviations)
