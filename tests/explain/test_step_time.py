"""explain/step_time.py: what a step is here, how long, by phase and by rank."""

import numpy as np
import pytest

from dragoman.explain.step_time import explain
from tests.explain import build
from tests.facts import lacking


def test_times_are_those_of_the_steps() -> None:
    records = build.records(exchange=0.3)
    numbers = explain(records).numbers
    seconds = records.steps["seconds"][3:]
    assert numbers["mean_seconds"] == pytest.approx(seconds.mean())
    assert numbers["median_seconds"] == pytest.approx(np.median(seconds))
    assert numbers["p95_seconds"] == pytest.approx(np.percentile(seconds, 95))
    assert numbers["tokens_per_step"] == 24_000
    assert numbers["tokens_per_second"] == pytest.approx(24_000 / seconds.mean())
    assert sum(numbers["phase_seconds"].values()) == pytest.approx(numbers["mean_seconds"], rel=0.001)


def test_definition_has_this_runs_numbers() -> None:
    finding = explain(build.records())
    assert (finding.numbers["microbatches"], finding.numbers["microbatches_per_rank"]) == (8, 2)
    assert not lacking(finding.answer, "4 ranks", "8 microbatches", 2, "3,125 tokens")


def test_each_rank_is_listed_with_its_host() -> None:
    ranks = explain(build.records(slow_rank=3, slow_by=2.0)).numbers["ranks"]
    assert [(row["rank"], row["host"]) for row in ranks] == [
        (0, "host0"),
        (1, "host0"),
        (2, "host1"),
        (3, "host1"),
    ]
    assert ranks[3]["backward_seconds"] == pytest.approx(1.2, rel=0.02)
    assert ranks[0]["backward_seconds"] == pytest.approx(0.6, rel=0.02)


def test_first_steps_do_not_count() -> None:
    records = build.records()
    records.steps["seconds"][0] = 100.0
    assert explain(records).numbers["mean_seconds"] < 1


def test_lasting_change_of_pace_is_reported() -> None:
    records = build.records()
    records.steps["seconds"][250:] *= 2
    finding = explain(records)
    assert not lacking(finding.answer, "step 251")
    assert [change["step"] for change in finding.numbers["changes"]] == [251]
    assert "changes" not in explain(build.records()).numbers


def test_step_times_alone_are_enough() -> None:
    finding = explain(build.foreign())
    assert finding.verdict == "stated"
    assert finding.numbers["mean_seconds"] == pytest.approx(1.9)
    assert "tokens_per_step" not in finding.numbers
    assert explain(build.NOTHING).verdict == "unknown"
