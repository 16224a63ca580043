"""The charts of each answer: which, in what order. Plain data; the page draws them."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.explain.finding import Finding
from dragoman.measure.records import Records
from dragoman.report.charts import quality, sizes, speed, traffic
from dragoman.report.charts.figure import TEMPLATE, Chart, Missing, legend

__all__ = ["TEMPLATE", "Chart", "Missing", "legend", "of"]

_CHARTS: dict[str, tuple[Callable[[Records, Finding], Chart | Missing], ...]] = {
    "duration": (sizes.duration_split,),
    "convergence": (quality.loss, quality.bleu),
    "overfitting": (quality.gap,),
    "device_utilisation": (speed.utilisation,),
    "network": (traffic.with_and_without, traffic.traffic_over_time),
    "learning_rate": (quality.learning_rate,),
    "training_set": (sizes.cleaning_losses,),
    "checkpoint_size": (sizes.checkpoint_sizes,),
    "step_time": (speed.phases_over_time, speed.ranks_by_phase),
    "step_network": (traffic.traffic_against_step_time, traffic.under_the_lens),
}


def of(records: Records, finding: Finding) -> list[Chart | Missing]:
    """The charts that belong to an answer; one whose data were not recorded says so."""
    return [make(records, finding) for make in _CHARTS.get(finding.id, ())]
