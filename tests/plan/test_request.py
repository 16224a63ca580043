"""plan/request.py: what is asked, what is missing, and the plan as text and JSON."""

import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from dragoman.config import Training
from dragoman.errors import DataError, UsageError
from dragoman.plan import document, show
from dragoman.plan.observed import observe
from dragoman.plan.request import PlanRequest, plan
from tests.explain.sentences import gains
from tests.facts import lacking, only

RUNS = Path(__file__).parents[1] / "runs"
V100S = PlanRequest(Training(), hosts=2, workers=2, link="1gbit", gpu="V100")


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"gpu": None}, ["--gpu", "--calibrate", "--from"]),
        ({"gpu": "V100", "calibrate": lambda work: work}, ["--gpu", "--calibrate", "--from"]),
        ({"gpu": "Z80"}, ["--gpu Z80", "V100", "T4"]),
        ({"link": None}, ["2 hosts", "--link 1gbit", "--from"]),
        ({"link": "fast"}, ["--link fast", "1gbit"]),
        ({"epochs": 3.0}, ["--epochs", "--data", "--pairs"]),
    ],
)
def test_what_is_missing_is_reported_with_what_to_add(changes: dict[str, object], facts: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        plan(replace(V100S, **changes))  # type: ignore[arg-type]
    assert not lacking(str(caught.value), *facts)


def test_a_data_set_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        plan(replace(V100S, data=tmp_path))
    assert caught.value.path == str(tmp_path)
    assert not lacking(caught.value.hint, "dragoman prepare")


def test_the_public_runs_lie_in_the_interval_of_a_plan_that_knows_nothing_of_them() -> None:
    """Two hosts with two V100 each, 256 pairs on each, 1 Gbit/s as ordered: 1.7 s in most of them."""
    settings = Training.model_validate(
        {
            "data": {"unit": "pairs", "step": 1024, "microbatch": 256},
            "train": {"precision": "fp16"},
        }
    )
    made = plan(replace(V100S, settings=settings)).forecast
    assert made.costs["value"].wire_bytes == pytest.approx(365.3e6, rel=1e-3)
    assert made.step_seconds.low < 1.7 < made.step_seconds.high
    assert made.binds == "exchange"


@pytest.mark.parametrize(("gpu", "most"), [("V100", 9.8e12), ("T4", 5.7e12), ("A100", 140.4e12)])
def test_a_gpu_without_bf16_is_not_planned_as_if_it_had_it(gpu: str, most: float) -> None:
    """Of the V100's fp32 peak of 14 TFLOP/s training gets 70 % at the most; an A100 has units for bf16."""
    settings = Training.model_validate({"train": {"precision": "bf16"}})
    pace = plan(replace(V100S, settings=settings, gpu=gpu)).forecast.pace.seconds_per_flop
    assert 1 / pace.low == pytest.approx(most, rel=0.01)
    assert (not lacking(pace.source, "train.precision=fp16")) == (gpu != "A100")


@pytest.mark.parametrize(("link", "is_of_use"), [("10gbit", True), ("100gbit", False)])
def test_a_faster_link_is_called_useless_only_where_the_exchange_is_small(link: str, is_of_use: bool) -> None:
    settings = Training.model_validate({"sync": {"mode": "diloco"}, "train": {"precision": "bf16"}})
    asked = PlanRequest(settings, hosts=2, workers=4, link=link, gpu="A10", pairs=4_500_000, epochs=10.0)
    made, output = plan(asked), io.StringIO()
    assert made.forecast.binds == "computing"
    show.show(made, Console(width=120, file=output))
    (binds,) = [line for line in output.getvalue().splitlines() if show._BINDING["computing"] in line]
    assert bool(gains(binds)) == is_of_use


def test_idle_ranks_are_pointed_out() -> None:
    few = Training.model_validate({"data": {"step": 2000, "microbatch": 1000}})
    only(plan(replace(V100S, settings=few)).assumptions, 2, "4 ranks", "data.microbatch")


def test_text_and_json_say_the_same() -> None:
    asked = replace(V100S, price_per_hour=5.0, currency="EUR", pairs=4_500_000, epochs=2.0)
    made = plan(asked)
    output = io.StringIO()
    show.show(made, Console(width=120, file=output))
    said, values = output.getvalue(), json.loads(document.text(made))
    assert not lacking(said, "EUR") and values["currency"] == "EUR"
    expected = float(f"{values['money']['value']:.2g}")
    assert not lacking(said, f"{expected:,g}")
    assert values["binds"] == "exchange"
    assert show._BINDING["exchange"] in said
    assert sum(row["is_fastest"] for row in values["alternatives"]) == 1
    assert said.count("\n* ") == said.count("\n+ ") == 1
    for number in ("step_seconds", "seconds", "money", "disk_bytes", "memory_bytes_per_rank", "steps"):
        assert values[number]["low"] <= values[number]["value"] <= values[number]["high"]
    assert all(part["source"] for part in values["step_parts_seconds"].values())


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 ms"), (0.0359, "36 ms"), (3.512, "3.5 s"), (59.7, "60 s"), (1_076, "18 min"),
        (6_000, "1.7 h"), (86_000, "1 d"), (1_054_800, "12 d"), (1.2e8, "1,400 d"),
    ],
)  # fmt: skip
def test_a_plan_says_times_to_two_digits(seconds: float, said: str) -> None:
    assert show.about(seconds) == said


def test_a_range_that_decides_little_says_what_would_narrow_it(tmp_path: Path) -> None:
    def said(asked: PlanRequest) -> str:
        output = io.StringIO()
        show.show(plan(asked), Console(width=120, file=output))
        return output.getvalue()

    wide = PlanRequest(Training(), gpu="A100", pairs=4_500_000)  # in bf16, whose pace a table tells least of
    made = plan(wide).forecast
    assert made.seconds.high > 3 * made.seconds.low
    assert not lacking(said(wide), "computing", "--calibrate")
    shutil.copy(RUNS / "compute-bound.db", tmp_path / "records.db")
    narrow = PlanRequest(Training(), run=tmp_path)
    assert plan(narrow).forecast.seconds.high < 3 * plan(narrow).forecast.seconds.low
    assert lacking(said(narrow), "--calibrate", "--from") == ["--calibrate", "--from"]


def test_a_run_of_another_model_is_trusted_less(tmp_path: Path) -> None:
    shutil.copy(RUNS / "compute-bound.db", tmp_path / "records.db")
    made = plan(PlanRequest(Training(), run=tmp_path)).forecast
    measured = observe(tmp_path).pace.seconds_per_flop
    assert made.pace.seconds_per_flop.source.startswith(f"{measured.source}; ")
    assert made.pace.seconds_per_flop.high > 1.2 * measured.high
    assert made.step_seconds.high > 1.4 * made.step_seconds.value
    assert made.work.corpus.vocabulary < 3_000, "the corpus is the run's"


def test_a_saved_plan_is_read_back_and_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run" / "plan.json"
    assert document.load(path) is None
    made = plan(V100S)
    document.save(made, path)
    saved = document.load(path)
    assert saved
    assert saved.step_seconds.value == made.forecast.step_seconds.value
    path.write_text("{}")
    with pytest.raises(DataError) as caught:
        document.load(path)
    assert caught.value.path == str(path)


def test_planning_does_not_load_torch() -> None:
    code = (
        "import sys; from dragoman.config import Training; from dragoman.plan import request, show;"
        "show.show(request.plan(request.PlanRequest(Training(), gpu='V100')));"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("gpu", "precision", "most", "units"),
    [
        ("A100", "auto", 140.4e12, "bf16"),
        ("V100", "auto", 50.4e12, "fp16"),
        ("P100", "auto", 8.415e12, "fp16"),
        ("A100", "fp32", 78e12, "TF32"),
        ("V100", "fp32", 9.8e12, "fp32"),
    ],
)
def test_a_gpu_is_planned_in_the_format_it_would_compute_in(
    gpu: str, precision: str, most: float, units: str
) -> None:
    settings = Training.model_validate({"train": {"precision": precision}})
    pace = plan(replace(V100S, settings=settings, gpu=gpu)).forecast.pace.seconds_per_flop
    assert 1 / pace.low == pytest.approx(most, rel=0.01)
    assert not lacking(pace.source, units)
