"""plan/forecast.py: a step's cost on a cluster, against arithmetic done by hand."""

from dataclasses import replace

import pytest

from dragoman.cost.step import buckets, exposed_after
from dragoman.exchange_way import ExchangeWay
from dragoman.plan.cluster import Cluster, PlannedLink
from dragoman.plan.estimate import Estimate
from dragoman.plan.forecast import Forecast
from tests.facts import lacking
from tests.plan import build

PLAIN = ExchangeWay()


def forecast(
    hosts: int = 1, workers: int = 1, bits: float = 1e9, way: ExchangeWay = PLAIN, tokens: int = 1
) -> Forecast:
    cluster = Cluster(hosts, workers, build.link(bits) if hosts > 1 else None)
    return Forecast(build.work(), build.pace(), cluster, way, tokens)


def test_one_rank_computes_and_exchanges_nothing() -> None:
    made = forecast()
    assert made.step_seconds.value == pytest.approx(8.0)
    assert made.step_parts["exchange"].value == 0
    assert made.seconds.value == pytest.approx(8_000)
    assert made.binds == "computing"


def test_the_rank_with_the_most_microbatches_decides() -> None:
    assert forecast(workers=2).step_seconds.value == pytest.approx(4.0)
    assert forecast(workers=3).step_seconds.value == pytest.approx(3.0), "8 microbatches: 3, 3 and 2"
    idle = forecast(workers=16)
    assert idle.step_seconds.value == pytest.approx(1.0)
    assert idle.idle_ranks == 8


def test_a_slow_link_takes_as_long_as_its_bytes() -> None:
    made = forecast(2, bits=1e5)
    wire = 8 * 4 * made.work.parameters / 1e5
    assert made.costs["value"].wire_bytes == 4 * made.work.parameters
    # The whole model is one bucket, which sets off when computing is over.
    assert made.step_seconds.value == pytest.approx(4.0 + wire)
    assert made.binds == "exchange"
    bf16, rounds = ExchangeWay(wire="bf16"), ExchangeWay(mode="diloco", steps_per_round=16)
    assert forecast(2, bits=1e5, way=bf16).step_seconds.value == pytest.approx(4.0 + wire / 2)
    assert forecast(2, bits=1e5, way=rounds).step_seconds.value == pytest.approx(4 + wire / 16)


def test_the_ring_of_several_ranks_per_host_leaves_each_host_once() -> None:
    gradients = 4 * build.work().parameters
    assert forecast(2, 2).costs["value"].wire_bytes == pytest.approx(1.5 * gradients)
    hierarchical = forecast(2, 2, way=ExchangeWay(shape="hierarchical"))
    assert hierarchical.costs["value"].wire_bytes == pytest.approx(gradients)


def test_shards_pay_inside_a_host_for_every_microbatch() -> None:
    way = ExchangeWay(mode="sharded", shape="hierarchical")
    pace = replace(build.pace(), drag_seconds_per_byte=Estimate.exactly(1e-6))
    weights = 4 * build.work().parameters
    one_host = Forecast(build.work(), pace, Cluster(1, 2, None), way)
    assert one_host.costs["value"].wire_bytes == 0
    inside = 1e-6 * 4 * 1.5 * weights  # a rank has 4 microbatches, and sends half of the weights three times
    assert one_host.step_parts["exchange"].value == pytest.approx(inside)
    two_hosts = Forecast(build.work(), pace, Cluster(2, 2, build.link(1e9)), way)
    assert two_hosts.costs["value"].wire_bytes == weights, "a ring of two hosts"


@pytest.mark.parametrize("bits", [1e6, 3e6, 1e7, 1e8])
def test_overlap_is_what_auto_expects_of_it(bits: float) -> None:
    """The closed form against bucket after bucket, as `sync.mode = "auto"` reckons."""
    way = ExchangeWay(bucket_bytes=20_000)
    made = forecast(2, bits=bits, way=way)
    filled = buckets(made.work.gradient_tensors, 20_000)
    one_backward = 2 / 3 * 1.0  # of a microbatch, which takes a second
    by_bucket = exposed_after(filled, one_backward, lambda nbytes: 8 * nbytes / bits)
    assert made.step_parts["exchange"].value == pytest.approx(by_bucket, abs=0.03 * 4)


def test_four_times_the_tokens_in_a_quarter_of_the_steps_pay_for_a_quarter_of_the_exchanges() -> None:
    plain, larger = forecast(2, bits=1e5), forecast(2, bits=1e5, tokens=4)
    assert larger.steps.value == plain.steps.value / 4
    computing = 1_000 * 4.0
    assert larger.seconds.value - computing == pytest.approx((plain.seconds.value - computing) / 4)


def test_every_number_lies_within_its_interval() -> None:
    cluster = Cluster(2, 2, PlannedLink.ordered(1e9))
    made = Forecast(build.work(), build.pace(doubt=0.2), cluster, PLAIN, price_per_hour=2.0)
    assert made.money
    numbers = [
        made.step_seconds,
        made.seconds,
        made.money,
        *made.step_parts.values(),
        *made.run_parts.values(),
    ]
    assert all(number.low <= number.value <= number.high for number in numbers)
    assert made.step_parts["computing"].high == pytest.approx(1.2 * made.step_parts["computing"].value)
    assert made.money.value == pytest.approx(2 * 2.0 * made.seconds.value / 3600)
    assert not lacking(made.step_parts["exchange"].source, "94%")


def test_evaluations_checkpoints_and_the_start_take_time_too() -> None:
    pace = replace(
        build.pace(),
        decoding=Estimate.exactly(10.0),
        saving_seconds_per_parameter=Estimate.exactly(1e-6),
        startup_seconds=Estimate.exactly(7.0),
    )
    made = Forecast(build.work(steps=3_000), pace, Cluster(1, 2, None), PLAIN)
    each = 10 * made.work.decoding_flops() / 2 * pace.seconds_per_flop.value
    assert made.run_parts["evaluation"].value == pytest.approx(3 * each)
    assert made.run_parts["checkpoint"].value == pytest.approx(3 * 1e-6 * made.work.parameters)
    assert made.run_parts["startup"].value == 7.0
