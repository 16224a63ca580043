"""Real logs, recordings and facts of public runs, where they are at hand."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from dragoman import figures
from dragoman.explain.finding import Finding
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from tests.facts import failed

RUNS = Path(os.environ.get("DRAGOMAN_DATA", "/nowhere")) / "public-runs"
pytestmark = pytest.mark.skipif(not RUNS.exists(), reason="DRAGOMAN_DATA has no public-runs")


def of(name: str, **given: object) -> dict[str, Finding]:
    made = diagnose([RUNS / name], Given.model_validate(given))
    assert not failed(made.findings)
    return {finding.id: finding for finding in made.findings}


@pytest.mark.parametrize(
    ("name", "steps", "mean", "median", "eval_loss"),
    [
        ("d-early-stop.nohup.out.gz", 18_900, 1.690, 1.685, 1.7754),
        ("d-stopped-23k.nohup.out.gz", 23_100, 1.601, 1.594, 1.7393),
        ("d-first-800-steps.nohup.out.gz", 800, 1.829, None, 9.5497),
    ],
)
def test_the_figures_are_those_of_the_log(
    name: str, steps: int, mean: float, median: float | None, eval_loss: float
) -> None:
    found = of(name)
    assert found["duration"].numbers["steps"] == steps
    assert found["duration"].numbers["finished"] is False
    assert found["step_time"].numbers["mean_seconds"] == pytest.approx(mean, abs=6e-4)
    assert median is None or found["step_time"].numbers["median_seconds"] == pytest.approx(median, abs=6e-4)
    assert found["convergence"].numbers["last_eval_loss"] == eval_loss


def test_a_run_over_a_gigabit_was_held_up_by_it_and_over_a_hundred_would_not_be() -> None:
    facts = {"params": 60_880_896}
    for name in ("d-early-stop", "d-stopped-23k", "d-first-800-steps"):
        assert of(f"{name}.nohup.out.gz", link="1gbit", **facts)["network"].verdict == "bottleneck"
        fast = of(f"{name}.nohup.out.gz", link="100gbit", gpu_power="200/250", **facts)["network"]
        assert fast.verdict == "not_bottleneck"


def test_crashes_are_crashes() -> None:
    assert "out of memory" in of("d-out-of-memory.nohup.out.gz")["duration"].answer
    assert "launch failure" in of("d-launch-failure.nohup.out.gz")["duration"].answer


def test_the_index_holds_the_parameters() -> None:
    found = of("model.ckpt-50000.index")["checkpoint_size"]
    assert found.numbers["parameters"] == 60_880_896
    assert found.numbers["bytes_per_parameter"] == pytest.approx(14, rel=0.001)


def test_the_recording_shows_over_a_gigabit() -> None:
    made = diagnose([RUNS / "d-24h.nmon.gz"], Given(step_seconds=1.7))
    rate = made.records.facts.nic_bytes_per_second
    assert rate and 1.5e9 < 8 * rate < 2e9


# What their owners could have typed, of each row: no parameters, no ranks, no batch.
OPTIONS = {
    "gpu": "gpu",
    "requested_network": "link",
    "steps_done": "steps",
    "hours": "hours",
    "sec_per_step_written": "step_seconds",
    "nmon_screenshot_trans_KBps": "nic_kb_per_s",
    "gpu_power_screenshot_W": "gpu_power",
}


def handful(row: dict[str, str]) -> dict[str, object]:
    """The options of a row: the plain figures of its cells."""
    given: dict[str, object] = {"model": "transformer-base", "machines": 2}
    for column, option in OPTIONS.items():
        value = figures.step_seconds(row[column]) if option == "step_seconds" else figures.figure(row[column])
        if option == "gpu":
            given |= {"gpu": row[column]} if row[column] else {}
        elif option == "gpu_power" and value:
            given[option] = f"{value:g}/250"
        elif value:
            given[option] = int(value) if option == "steps" else f"{value:g}" if option == "link" else value
    return given


def test_a_handful_of_facts_gives_most_rows_their_verdict() -> None:
    said: dict[str, list[str]] = {"network-bound": [], "balanced": []}
    with (RUNS / "runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            given = handful(row)
            if "step_seconds" in given or {"steps", "hours"} <= given.keys():
                made = diagnose([], Given.model_validate(given))
                verdict = next(finding.verdict for finding in made.findings if finding.id == "network")
                said[row["ours_verdict"].partition(":")[0]].append(verdict)
    assert set(said["balanced"]) == {"unknown"}  # on a GPU and a link that nobody named
    assert set(said["network-bound"]) <= {"bottleneck", "unknown"}
    assert said["network-bound"].count("bottleneck") >= 0.9 * len(said["network-bound"]) >= 20
