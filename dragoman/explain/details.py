"""Functions with which reports read a run's records the way the answers do.

`report` may use findings, questions, comparisons and these names; the rest of `explain` may change.
"""

from dragoman.explain.counterfactual import link_rate
from dragoman.explain.course import planned
from dragoman.explain.duration import PARTS
from dragoman.explain.placement import longest
from dragoman.explain.step_breakdown import phases_within
from dragoman.explain.timeline import Happening, is_eventful, timeline
from dragoman.explain.traffic import bytes_of_steps, is_one_machine

__all__ = [
    "PARTS",
    "Happening",
    "bytes_of_steps",
    "is_eventful",
    "is_one_machine",
    "link_rate",
    "longest",
    "phases_within",
    "planned",
    "timeline",
]
