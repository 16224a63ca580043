"""plan/observed.py: recorded runs, predicted from their own records and from each other's."""

import shutil
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.exchange_way import ExchangeWay
from dragoman.explain.step_breakdown import step_parts
from dragoman.measure import database
from dragoman.plan.cluster import Cluster, PlannedLink
from dragoman.plan.forecast import Forecast
from dragoman.plan.observed import Observed, observe
from dragoman.plan.work import Work

RUNS = Path(__file__).parents[1] / "runs"
PLACES = {  # hosts, ranks on each
    "compute-bound": (1, 1),
    "converged": (1, 1),
    "fast-link": (2, 1),
    "slow-data": (1, 1),
    "slow-disk-1.5": (1, 2),
    "slow-link-1": (2, 1),
}


def observed(name: str, folder: Path) -> Observed:
    shutil.copy(RUNS / f"{name}.db", folder / "records.db")
    return observe(folder)


def mean_seconds(name: str) -> float:
    parts = step_parts(database.read(RUNS / f"{name}.db"))
    assert parts
    return parts.seconds


@pytest.mark.parametrize("name", PLACES)
def test_a_run_predicts_itself(name: str, tmp_path: Path) -> None:
    past = observed(name, tmp_path)
    made = Forecast(
        Work(past.settings, past.corpus), past.pace, Cluster(*PLACES[name], past.pace.link), ExchangeWay()
    )
    assert made.step_seconds.value == pytest.approx(mean_seconds(name), rel=0.10)


def test_a_run_over_a_fast_link_predicts_the_same_run_over_a_slow_one(tmp_path: Path) -> None:
    past = observed("fast-link", tmp_path)
    work = Work(past.settings, past.corpus)
    made = Forecast(work, past.pace, Cluster(2, 1, PlannedLink.parse("100mbit")), ExchangeWay())
    assert made.step_seconds.value == pytest.approx(mean_seconds("slow-link-1"), rel=0.15)
    assert made.step_seconds.low < mean_seconds("slow-link-1") < made.step_seconds.high
    assert made.binds == "exchange"


def test_two_hosts_are_predicted_from_two_workers_of_one(tmp_path: Path) -> None:
    past = observed("slow-disk-1.5", tmp_path)
    made = Forecast(
        Work(past.settings, past.corpus),
        past.pace,
        Cluster(2, 1, PlannedLink.parse("100mbit")),
        ExchangeWay(),
    )
    assert made.step_seconds.value == pytest.approx(mean_seconds("slow-link-1"), rel=0.20)


def test_slow_evaluations_and_checkpoints_are_found_again(tmp_path: Path) -> None:
    past = observed("slow-disk-1.5", tmp_path)
    made = Forecast(Work(past.settings, past.corpus), past.pace, Cluster(1, 2, None), ExchangeWay())
    saved = [e.seconds for e in database.read(RUNS / "slow-disk-1.5.db").events if e.kind == "checkpoint"]
    assert made.checkpoint_seconds.value == pytest.approx(sum(saved) / len(saved))


def test_a_folder_without_records_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=str(tmp_path)):
        observe(tmp_path)
