"""What twice the steps would gain, in held-out loss and in BLEU.

BLEU follows the loss, late in a run nearly in a straight line. By itself it begins late and jumps about. So
its gain comes from that of the loss, and from a curve of its own only where the loss says nothing: it was not
scored, or it rises while BLEU does not fall.
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

# What twice the steps must buy to be worth it. Half a BLEU is about the smallest difference that a test set
# of two or three thousand sentences shows reliably. 1 % of the loss, but at least 0.01 (1 % of perplexity).
BLEU_WORTH = 0.5
LOSS_WORTH_SHARE = 0.01
LOSS_WORTH_LEAST = 0.01
NOTHING_LEARNT_BLEU = 1.0
FORETOLD_FROM_BLEU = 3.0  # below it BLEU does not follow the loss yet, and by itself foretells nothing
# Of one evaluation, however smooth the few points look; and between two runs that differ in length alone.
LOSS_NOISE_SHARE = 0.001
BLEU_NOISE = 0.1
LOSS_RUN_NOISE_SHARE = 0.002
BLEU_RUN_NOISE = 0.3
POWERS = (0.0, 1.0, 2.0, 3.0)  # of a token's probability
# Of BLEU's gain, one standard deviation, and twice that where it is as much as was seen: no such line is
# quite straight (measured by benchmarks/convergence.py).
SLOPE_DOUBT = 0.25


@dataclass(frozen=True)
class Gain:
    """Positive is better, for a loss as for BLEU."""

    name: str
    gain: float
    low: float
    high: float
    worth: float  # the least that matters; not less than the noise of one evaluation
    curve: list[tuple[float, float]]

    @property
    def verdict(self) -> str:
        if self.high < self.worth:
            return "converged"
        if self.gain >= self.worth and self.low > 0:
            return "improving"
        return "converged" if self.high < 2 * self.worth else "unknown"

    def __str__(self) -> str:
        unit = "BLEU" if self.name == "bleu" else "of held-out loss"
        digits = 1 if self.name == "bleu" else 3
        gain, low, high = (f"{number:z.{digits}f}" for number in (self.gain, self.low, self.high))
        return f"{gain} {unit} (between {low} and {high})"

    def numbers(self) -> dict[str, object]:
        key = f"gain_if_doubled_{self.name}"
        curve = [[step, value] for step, value in self.curve]
        return {
            **known(**{key: self.gain, f"{key}_low": self.low, f"{key}_high": self.high}),
            f"{self.name}_curve": curve,
        }


def least_loss(facts: RunFacts) -> float:
    """The loss below which label smoothing lets no model come: the entropy of the targets themselves.

    Held-out loss is scored with the smoothing of training. 0 where smoothing or vocabulary are not known.
    """
    smoothing, pieces = facts.settings.get("train.label_smoothing"), facts.data_card.get("vocabulary_pieces")
    if not isinstance(smoothing, float) or not 0 < smoothing < 1 or not isinstance(pieces, int) or pieces < 2:
        return 0.0
    wrong = smoothing / pieces
    right = 1 - smoothing + wrong
    return -right * math.log(right) - (pieces - 1) * wrong * math.log(wrong)


def gains(past: History, course: Course | None, least_loss: float = 0.0) -> list[Gain]:
    """Of the loss and of BLEU, where there are points enough."""
    steps, losses = past.of(past.eval_loss)
    loss = None if rise(losses) else _loss_fit(steps, losses, course, least_loss)
    found = []
    if loss:
        worth = max(LOSS_WORTH_SHARE * abs(losses[-1]), LOSS_WORTH_LEAST, loss.noise)
        room = max(0.0, losses[-1] - least_loss)
        low, gain, high = (min(-change, room) for change in (loss.high, loss.change, loss.low))
        found.append(Gain("loss", gain, low, high, worth, loss.curve))
    scores = past.of(past.bleu)[1]
    if loss and len(scores) and scores[-1] < FORETOLD_FROM_BLEU:
        return found
    bleu = (_by_loss(past, loss, course) if loss else None) or _by_itself(past, course)
    return [*found, bleu] if bleu else found


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
    return Gain("bleu", fit.change, fit.low, fit.high, max(BLEU_WORTH, fit.noise), fit.curve) if fit else None


def _by_loss(past: History, loss: Extrapolation, course: Course | None) -> Gain | None:
    """None where BLEU does not rise as the loss falls."""
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
        more / (1 + (np.maximum(more, 0.0) / room) ** 4) ** 0.25,  # bends where it would pass 100 BLEU
        np.concatenate([part.weights * weight for part, weight in zip(parts, weights, strict=True)]),
    )
    low, gain, high = draws.at(INTERVAL[0], 0.5, INTERVAL[1])
    at, fitted = np.transpose(loss.curve)
    lies = sum(weight * line.at(losses[-1] - fitted) for line, weight in zip(lines, weights, strict=True))
    curve = [(float(x), float(y)) for x, y in zip(at, np.clip(lies, 0.0, 100.0), strict=True)]
    noise = float(weights @ [line.noise for line in lines])
    high = min(high, 100 - bleu[-1])
    return Gain("bleu", gain, low, high, max(BLEU_WORTH, noise), curve)


class _Line:
    """BLEU against the probability of a token to a power, which bends the line; 0 is against its logarithm,
    the loss."""

    def __init__(self, log_probability: np.ndarray, bleu: np.ndarray, power: float):
        self._power = power
        x = self._bent(log_probability)
        centred = x - x.mean()
        self._squares = max(float((centred**2).sum()), 1e-12)
        self._seen = max(float(np.ptp(bleu)), BLEU_NOISE)
        self._middle, self._level = float(x.mean()), float(bleu.mean())
        self.slope = float(centred @ bleu) / self._squares  # at the last evaluation, where the logarithm is 0
        apart = bleu - bleu.mean() - self.slope * centred
        late = apart[len(apart) // 2 :]  # the first half is where a line bends most
        self.noise = max(float(np.sqrt((late**2).mean() * len(bleu) / (len(bleu) - 2))), BLEU_NOISE)

    def _bent(self, log_probability: np.ndarray) -> np.ndarray:
        return np.expm1(self._power * log_probability) / self._power if self._power else log_probability

    def at(self, log_probability: np.ndarray) -> np.ndarray:
        return self._level + self.slope * (self._bent(log_probability) - self._middle)

    def gains(self, changes: Draws, between_runs: float) -> Draws:
        """Of BLEU, where the loss changes so: straight in the loss from here on."""
        more = -self.slope * changes.values
        of_form = SLOPE_DOUBT * (1 + np.minimum(1.0, np.abs(more) / self._seen)) * more
        of_slope = self.noise * changes.values / np.sqrt(self._squares)
        deviations = np.sqrt(of_slope**2 + of_form**2 + 2 * self.noise**2 + between_runs**2)
        return Draws(more, changes.weights).blurred(deviations)
