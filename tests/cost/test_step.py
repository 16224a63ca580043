"""cost/step.py: the cost model against arithmetic done by hand and against measured exchanges."""

import pytest

from dragoman.cost.step import (
    BUCKET_BYTES,
    StepCost,
    bucket_bytes_for,
    buckets,
    bytes_per_host,
    calibrated,
    exposed_after,
    ring_bytes,
    ring_latency_seconds,
    tail_share,
)


def test_ring_sends_what_was_measured() -> None:
    # 61 M fp32 gradients over gloo: 244.3 MB seen with 2 ranks, 366.7 MB with 4 (2 hosts of 2).
    assert ring_bytes(2, 244.0e6) == pytest.approx(244.3e6, rel=0.003)
    assert ring_bytes(4, 244.0e6) == pytest.approx(366.7e6, rel=0.003)
    assert ring_bytes(1, 244.0e6) == 0


def test_ranks_side_by_side_share_the_crossing() -> None:
    assert bytes_per_host([0, 0, 1, 1], 100.0) == pytest.approx(150)
    assert bytes_per_host([0, 1, 0, 1], 100.0) == pytest.approx(300), "every rank's neighbour is elsewhere"
    assert bytes_per_host([0, 0, 1, 1], 100.0, is_hierarchical=True) == pytest.approx(100)
    assert bytes_per_host([0, 0, 1, 1, 2, 2], 90.0, is_hierarchical=True) == pytest.approx(120)
    assert bytes_per_host([0, 0], 100.0) == 0


@pytest.mark.parametrize(
    ("rate", "mebibytes"), [(1e7, 1), (275e6, 1), (285e6, 5), (1.375e9, 5), (1.41e9, 25), (1e12, 25)]
)
def test_a_bucket_travels_thirty_times_as_long_as_it_costs_to_send(rate: float, mebibytes: int) -> None:
    """A millisecond in the ranks, so 30 ms on the link: 1 MiB at 280 Mbit/s, 5 MiB at 1.4 Gbit/s."""
    assert bucket_bytes_for(1, rate, 0.0) == mebibytes * 2**20


def test_a_long_way_round_the_ring_asks_for_larger_buckets() -> None:
    assert bucket_bytes_for(2, 120e6, 0.001) == 2**20
    assert bucket_bytes_for(4, 120e6, 0.001) == 5 * 2**20
    assert bucket_bytes_for(4, 120e6, 0.1) == BUCKET_BYTES


def test_a_bucket_is_full_with_the_tensor_that_fills_it() -> None:
    assert buckets([4, 4, 4, 4, 4], 8) == [8, 8, 4]
    assert buckets([4, 100, 4, 3], 8) == [104, 7], "a tensor is never split"
    assert buckets([7, 1, 1], 8) == [8, 1]
    assert buckets([], 8) == [0]


def test_buckets_travel_one_after_the_other_and_none_before_it_is_ready() -> None:
    filled = [10, 10, 20]  # ready after 1, 2 and 4 seconds of the backward pass
    assert exposed_after(filled, 4.0, lambda nbytes: nbytes / 10) == pytest.approx(2.0), "the last one"
    assert exposed_after(filled, 4.0, float) == pytest.approx(1 + 40 - 4), "all but the wait for the first"
    assert exposed_after(filled, 0.0, float) == pytest.approx(40)
    assert exposed_after([40], 4.0, lambda nbytes: 0.5) == pytest.approx(0.5)


def test_an_all_reduce_of_nothing_takes_two_messages_for_every_other_rank() -> None:
    assert ring_latency_seconds(5, 0.01) == pytest.approx(0.04), "half a round trip each"
    assert ring_latency_seconds(1, 0.01) == 0


def test_last_bucket_is_never_hidden() -> None:
    assert tail_share(1e9) == pytest.approx(25 * 2**20 / 1e9)
    assert tail_share(243.5e6, embedding_bytes=67e6) == pytest.approx(67 / 243.5)
    assert tail_share(1e6) == 1
    assert tail_share(0.0) == 1


@pytest.mark.parametrize(
    ("wire_seconds", "cost"), [(2.0, 2.0), (2.0, 0.5), (2.0, 3.0), (2.0, 0.0), (0.001, 0.5)]
)
def test_calibrated_model_gives_back_what_was_measured(wire_seconds: float, cost: float) -> None:
    model = calibrated(1.0 + cost, 1.0, 0.1, 0.05, wire_seconds * 1e9 / 8, 1e9, 0.0002, tail=0.2)
    assert model.seconds == pytest.approx(1.0 + cost)
    assert model.exposed_seconds == pytest.approx(cost)


def test_faster_link_helps_only_where_the_link_was_the_reason() -> None:
    by_link = calibrated(3.0, 1.0, 0.0, 0.0, 2e9 / 8, 1e9)
    by_drag = calibrated(3.0, 1.0, 0.0, 0.0, 0.1e9 / 8, 1e9)
    assert by_link.speedup(by_link.on_link(1e11)) == pytest.approx(3.0, rel=0.02)
    assert by_drag.speedup(by_drag.on_link(1e11)) < 1.05


def test_hidden_exchange_leaves_little_to_gain() -> None:
    hidden = calibrated(1.05, 1.0, 0.0, 0.0, 0.6e9 / 8, 1e9, tail=0.1)
    assert hidden.window_seconds == pytest.approx(0.55)
    assert hidden.speedup(hidden.with_bytes(0.5)) == pytest.approx(1.024, abs=0.01)


def test_half_the_bytes_as_in_the_measured_run() -> None:
    # ENGINE: 37.8 MB of gradients at 100 Mbit/s: step 4.13 s in fp32, 2.90 s in bf16.
    model = calibrated(4.13, 4.13 - 3.13, 0.0, 0.0, 37.7e6, 95.4e6)
    assert model.with_bytes(0.5).seconds == pytest.approx(2.90, rel=0.12)


def test_more_tokens_between_exchanges() -> None:
    model = StepCost(0.9, 0.0, 0.05, 365e6, 1e9)
    four = model.with_tokens(4)
    assert four.seconds == pytest.approx(4 * 0.9 + 0.05 + 2.92)
    assert model.speedup(four, tokens=4) == pytest.approx(4 * model.seconds / four.seconds)


def test_exchange_every_sixteen_steps_costs_a_sixteenth_and_hides_nothing() -> None:
    # 100 Mbit/s where computing is a fiftieth of the exchange: a public run's proportions.
    model = calibrated(51.0, 1.0, 0.0, 0.0, 50e8 / 8, 1e8, tail=0.2)
    assert model.every(16).seconds == pytest.approx(1 + 50 / 16)
    assert model.speedup(model.every(16)) > 12
    hidden = calibrated(1.05, 1.0, 0.0, 0.0, 0.6e9 / 8, 1e9, tail=0.1)
    assert hidden.every(16).exposed_seconds == pytest.approx(0.6 / 16)
    dragging = StepCost(1.0, 0.0, 0.0, 1e9 / 8, 1e9, latency_seconds=0.16, drag_seconds=0.32)
    assert dragging.every(16).exposed_seconds == pytest.approx((1.0 + 0.16 + 0.32) / 16)


def test_smaller_buckets_leave_less_for_the_end() -> None:
    assert tail_share(1e9, bucket_bytes=5 * 2**20) == pytest.approx(5 * 2**20 / 1e9)
    assert tail_share(243.5e6, 67e6, bucket_bytes=2**20) == pytest.approx(67 / 243.5)


def test_latency_of_a_ring_is_paid_by_every_message() -> None:
    assert ring_latency_seconds(4, 0.002) == pytest.approx(6 * 0.001)


def test_unmeasured_link_is_taken_as_the_rate_that_was_reached() -> None:
    model = calibrated(3.0, 1.0, 0.0, 0.0, 1e9, None)
    assert model.link_bits_per_second == pytest.approx(4e9)
    assert calibrated(1.0, 1.0, 0.0, 0.0, 1e9, None).seconds == pytest.approx(1.0)


def test_what_the_link_does_not_explain_goes_to_latency_first() -> None:
    model = calibrated(3.0, 1.0, 0.1, 0.2, 1e9 / 8, 1e9, round_trip_seconds=0.3)
    assert (model.latency_seconds, model.drag_seconds) == (pytest.approx(0.3), pytest.approx(0.7))
    assert model.compute_seconds == pytest.approx(0.7)
    assert model.seconds == pytest.approx(3.0)
    short = calibrated(2.1, 1.0, 0.1, 0.2, 1e9 / 8, 1e9, round_trip_seconds=0.3)
    assert (short.latency_seconds, short.drag_seconds) == (pytest.approx(0.1), 0.0)


def test_without_a_measured_link_the_rate_that_was_reached_is_taken() -> None:
    reached = calibrated(3.0, 1.0, 0.0, 0.0, 1e9 / 8, None)
    assert reached.link_bits_per_second == pytest.approx(0.5e9)
    assert reached.seconds == pytest.approx(3.0)
    hidden = calibrated(4.0, 4.0, 0.0, 0.0, 1e9 / 8, None)
    assert hidden.wire_seconds == pytest.approx(4e-9), (
        "next to nothing of the step, as nothing was seen of it"
    )


def test_seconds_that_were_measured_the_wrong_way_round_cost_nothing() -> None:
    model = calibrated(1.0, 1.1, 0.7, 0.6, 1e9 / 8, 1e9)
    assert model.compute_seconds == 0
    assert model.exposed_seconds == pytest.approx(0)
    assert calibrated(1.0, 1.0, 0.0, 0.0, 0.0, 1e9).tail == 0
