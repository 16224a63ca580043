"""The learning rate as a pure function of the step, so a checkpoint need not store it."""

from __future__ import annotations

import math

from dragoman.config import Train


def learning_rate(step: int, config: Train, width: int) -> float:
    """The learning rate of a step, counted from 0."""
    return _SCHEDULES[config.schedule](step + 1, config, width)


def _warmup(update: int, config: Train) -> float:
    """A factor that rises linearly to 1 at the last warm-up step."""
    return min(1.0, update / config.warmup_steps) if config.warmup_steps else 1.0


def _progress(update: int, config: Train) -> float:
    """The share of the steps after the warm-up that are done: 0 at its end, 1 at the last step."""
    left = max(1, config.steps - config.warmup_steps)
    return min(1.0, max(0, update - config.warmup_steps) / left)


def _transformer(update: int, config: Train, width: int) -> float:
    """The schedule of Vaswani et al. 2017, times `rate`. Its peak is at the last warm-up step."""
    warmup = max(1, config.warmup_steps)
    return config.rate * width**-0.5 * min(update * warmup**-1.5, update**-0.5)


def _inverse_sqrt(update: int, config: Train, width: int) -> float:
    """Falls with the inverse square root of the step after the warm-up. `rate` is the peak at any width."""
    return config.rate * _warmup(update, config) * min(1.0, (max(1, config.warmup_steps) / update) ** 0.5)


def _linear(update: int, config: Train, width: int) -> float:
    return config.rate * _warmup(update, config) * (1 - _progress(update, config))


def _cosine(update: int, config: Train, width: int) -> float:
    return config.rate * _warmup(update, config) * (1 + math.cos(math.pi * _progress(update, config))) / 2


def _constant(update: int, config: Train, width: int) -> float:
    return config.rate * _warmup(update, config)


_SCHEDULES = {
    "transformer": _transformer,
    "inverse_sqrt": _inverse_sqrt,
    "linear": _linear,
    "cosine": _cosine,
    "constant": _constant,
}
