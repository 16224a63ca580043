"""plan/alternatives.py: other clusters and ways."""

from dragoman.exchange_way import ExchangeWay
from dragoman.plan import alternatives
from dragoman.plan.cluster import Cluster, PlannedLink
from dragoman.plan.forecast import Forecast
from tests.plan import build


def table(workers: int = 2, step_seconds: float = 8.0) -> list[alternatives.AlternativePlan]:
    cluster = Cluster(2, workers, PlannedLink.ordered(1e9))
    made = Forecast(build.work(), build.pace(step_seconds), cluster, ExchangeWay(), price_per_hour=1.0)
    return alternatives.alternatives(made)


def test_every_host_count_meets_every_link_and_way() -> None:
    assert len(table()) == 4 + 3 * 3 * 4
    assert len(table(workers=1)) == 1 + 3 * 3 * 4, "one rank exchanges nothing: one way"
    assert {each.place for each in table()} >= {"1 host", "8 hosts, 100 Gbit/s"}


def test_marks_are_among_those_that_learn_the_same() -> None:
    found = table()
    for marked in (alternatives.fastest(found), alternatives.cheapest(found)):
        assert marked.learns_the_same
    fastest = alternatives.fastest(found).forecast.seconds.value
    assert fastest == min(each.forecast.seconds.value for each in found if each.learns_the_same)


def test_where_the_link_costs_more_than_it_brings_one_host_is_cheapest() -> None:
    assert alternatives.cheapest(table(step_seconds=0.001)).place == "1 host"


def test_a_link_that_is_not_on_the_list_stands_beside_it() -> None:
    cluster = Cluster(2, 1, PlannedLink.ordered(3e8))
    found = alternatives.alternatives(Forecast(build.work(), build.pace(), cluster, ExchangeWay()))
    assert "2 hosts, 300 Mbit/s" in {each.place for each in found}


def test_a_sharded_model_is_planned_with_shards_everywhere() -> None:
    way = ExchangeWay(mode="sharded", shape="hierarchical")
    cluster = Cluster(2, 2, PlannedLink.ordered(1e9))
    found = alternatives.alternatives(Forecast(build.work(), build.pace(), cluster, way))
    assert {each.forecast.way for each in found} == {way}
    assert len(found) == 2 + 3 * 3 * 2
    assert alternatives.fastest(found).way == "sharded"
