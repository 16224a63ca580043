"""The questions that every report answers: one row each, in the order of the report.

A row names its explainer and charts without importing them, so that findings can know their questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class Verdict(NamedTuple):
    """How reports show a verdict."""

    tone: Literal["good", "fair", "bad", "plain", "unknown"]  # chooses the colour
    words: str


UNKNOWN = Verdict("unknown", "unknown")
STATED = {"stated": Verdict("plain", "stated"), "unknown": UNKNOWN}


@dataclass(frozen=True, kw_only=True)
class Question:
    wording: str
    explainer: str  # module.function in dragoman.explain
    verdicts: Mapping[str, Verdict] = field(default_factory=lambda: STATED)
    of_one_placement: bool = False  # answered only for the ranks and hosts that made most steps
    charts: tuple[str, ...] = ()  # module.function in dragoman.report.charts
    key_numbers: tuple[str, ...] = ()  # shown beside the answer, the most important first
    # Units of numbers whose names do not end with one: an ending of report/units.py, another word, or "".
    units: Mapping[str, str] = field(default_factory=dict)
    in_headline: bool = False  # its verdict appears in the one-line summary of the run
    opens_tables: bool = False  # its tables are the answer, so the page shows them unfolded


QUESTIONS: dict[str, Question] = {
    "duration": Question(
        wording="How long did the run take?",
        explainer="duration.explain",
        charts=("sizes.duration_split",),
        key_numbers=(
            "wall_seconds",
            "training_seconds",
            "evaluation_seconds",
            "checkpoint_seconds",
            "fault_seconds",
            "eta_seconds",
        ),
    ),
    "convergence": Question(
        wording="Is the model fully trained? How can you tell?",
        explainer="convergence.explain",
        verdicts={
            "converged": Verdict("good", "fully trained"),
            "improving": Verdict("fair", "still improving"),
            "diverged": Verdict("bad", "diverged"),
            "unknown": UNKNOWN,
        },
        charts=("quality.loss", "quality.bleu"),
        key_numbers=("best_eval_loss", "best_bleu", "gain_if_doubled_bleu", "gain_if_doubled_loss"),
        in_headline=True,
    ),
    "overfitting": Question(
        wording="Was it overfitting?",
        explainer="overfitting.explain",
        verdicts={
            "yes": Verdict("bad", "yes"),
            "no": Verdict("good", "no"),
            "unknown": UNKNOWN,
        },
        charts=("quality.gap",),
        key_numbers=("eval_loss", "train_sample_loss", "gap", "gap_trend_per_1000_steps"),
    ),
    "device_utilisation": Question(
        wording="Were the devices fully used?",
        explainer="device.explain",
        verdicts={
            "computing": Verdict("good", "computing"),
            "waiting_network": Verdict("bad", "waiting for the exchange"),
            "waiting_data": Verdict("bad", "waiting for data"),
            "waiting_straggler": Verdict("bad", "waiting for a slow rank"),
            "waiting_cpu": Verdict("bad", "waiting for a core"),
            "unknown": UNKNOWN,
        },
        of_one_placement=True,
        charts=("speed.utilisation",),
        key_numbers=("compute_share", "flops_share", "utilisation", "power_share"),
        units={"utilisation": "share"},
        in_headline=True,
    ),
    "network": Question(
        wording="Was the network the bottleneck?",
        explainer="network.explain",
        verdicts={
            "bottleneck": Verdict("bad", "the bottleneck"),
            "balanced": Verdict("fair", "balanced"),
            "not_bottleneck": Verdict("good", "not the bottleneck"),
            "single_machine": Verdict("plain", "single machine"),
            "unknown": UNKNOWN,
        },
        of_one_placement=True,
        charts=("traffic.with_and_without", "traffic.traffic_over_time"),
        key_numbers=(
            "exposed_share",
            "straggler_share",
            "step_seconds_without_exchange",
            "link_bits_per_second",
        ),
    ),
    "learning_rate": Question(
        wording="What does the learning-rate curve mean?",
        explainer="learning_rate.explain",
        charts=("quality.learning_rate",),
        key_numbers=("peak", "peak_step", "warmup_steps", "last"),
    ),
    "training_set": Question(
        wording="How big is the training set?",
        explainer="training_set.explain",
        charts=("sizes.cleaning_losses",),
        key_numbers=("lines", "source_bytes", "target_bytes", "dropped_lines"),
    ),
    "checkpoint_files": Question(
        wording="What files is a checkpoint made of?",
        explainer="checkpoint.explain_files",
        opens_tables=True,
    ),
    "checkpoint_size": Question(
        wording="How big is it?",
        explainer="checkpoint.explain_size",
        charts=("sizes.checkpoint_sizes",),
        key_numbers=("total_bytes", "parameters", "bytes_per_parameter"),
    ),
    "step_time": Question(
        wording="What is a step, and how long is one?",
        explainer="step_time.explain",
        of_one_placement=True,
        charts=("speed.phases_over_time", "speed.ranks_by_phase"),
        key_numbers=(
            "mean_seconds",
            "median_seconds",
            "p95_seconds",
            "tokens_per_step",
            "tokens_per_second",
        ),
    ),
    "step_network": Question(
        wording="How does step time depend on network traffic?",
        explainer="step_network.explain",
        of_one_placement=True,
        charts=("traffic.traffic_against_step_time", "traffic.traffic_within_a_step"),
        key_numbers=("correlation", "bytes_per_step_per_host", "burst_share"),
        units={"correlation_with_bytes": ""},
    ),
}
