"""exchange_way.py: the ways there are, their bytes against the ring formula, rounds, words, old state."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import ValidationError

from dragoman.checkpoint.saved_state import SavedState
from dragoman.config import Sync
from dragoman.cost.step import ring_bytes
from dragoman.exchange_way import (
    LOCAL_STEPS,
    ROUND_SHARE,
    ExchangeWay,
    Mode,
    can_be_hierarchical,
    open_ways,
)
from dragoman.measure.records import RunFacts
from dragoman.sync.choice import BUILDERS

ONE_HOST, TWO_HOSTS, APART = [0, 0], [0, 0, 1, 1], [0, 1]
PARAMETERS = 1_000_000
STATE = {
    **{"schema_version": 1, "step": 8, "position": [0, 512, 1], "history": [], "bad_steps": 0},
    **{"bad_in_a_row": 0, "seconds": 2.5, "target_tokens": 4096, "pairs": 512},
    **{"world_size": 4, "data_fingerprint": "f" * 64},
}
ROUNDS = ExchangeWay(mode="diloco", steps_per_round=16)
SHARDED = ExchangeWay(mode="sharded", shape="hierarchical")


# --- legal combinations ---


def test_plain_settings_leave_one_way_open() -> None:
    assert open_ways(Sync(), TWO_HOSTS) == [ExchangeWay()]
    assert open_ways(Sync(wire="bf16", hierarchical=True, bucket_mb=2), TWO_HOSTS) == [
        ExchangeWay(shape="hierarchical", wire="bf16", bucket_bytes=2 * 2**20)
    ]
    assert open_ways(Sync(mode="diloco", inner_steps=8, wire="bf16"), TWO_HOSTS) == [
        ExchangeWay(mode="diloco", wire="bf16", steps_per_round=8)
    ]
    assert open_ways(Sync(mode="diloco"), TWO_HOSTS)[0].steps_per_round == LOCAL_STEPS


def test_auto_leaves_open_what_no_setting_decides() -> None:
    open_kinds = [f"{way.shape} {way.wire}" for way in open_ways(Sync(mode="auto"), TWO_HOSTS)]
    assert open_kinds == ["flat fp32", "flat bf16", "hierarchical fp32", "hierarchical bf16"]
    inside = open_ways(Sync(mode="auto", hierarchical=True), TWO_HOSTS)
    assert [way.shape for way in inside] == ["hierarchical"] * 2
    assert open_ways(Sync(mode="auto", hierarchical=False, wire="fp32"), TWO_HOSTS) == [ExchangeWay()]


def test_auto_never_picks_rounds_and_on_one_host_has_nothing_to_pick() -> None:
    assert all(way.mode == "allreduce" for way in open_ways(Sync(mode="auto"), TWO_HOSTS))
    assert open_ways(Sync(mode="auto"), ONE_HOST) == [ExchangeWay()]
    assert open_ways(Sync(mode="auto", wire="bf16"), ONE_HOST) == [ExchangeWay(wire="bf16")]


@pytest.mark.parametrize("rank_hosts", [[0], ONE_HOST, APART])
def test_a_hierarchy_needs_several_hosts_and_several_ranks_on_one(rank_hosts: list[int]) -> None:
    assert not can_be_hierarchical(rank_hosts)
    for mode in ("allreduce", "auto", "diloco"):
        settings = Sync.model_validate({"mode": mode, "hierarchical": True})
        assert all(way.shape == "flat" for way in open_ways(settings, rank_hosts))


@pytest.mark.parametrize(
    "values",
    [
        {"steps_per_round": 4},
        {"flows": 2},
        {"mode": "other"},
        {"wire": "int8"},
        {"mode": "sharded"},
        {"mode": "sharded", "shape": "hierarchical", "wire": "bf16"},
        {"mode": "sharded", "shape": "hierarchical", "steps_per_round": 4},
    ],
)
def test_what_does_not_go_together_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExchangeWay.model_validate(values)


def test_shards_leave_one_way_open_on_any_hosts() -> None:
    for rank_hosts in ([0], ONE_HOST, TWO_HOSTS, APART):
        assert open_ways(Sync(mode="sharded"), rank_hosts) == [SHARDED]


def test_every_mode_has_a_builder() -> None:
    assert set(BUILDERS) == set(get_args(Mode))


def test_the_smallest_bucket_that_can_be_asked_for_holds_something() -> None:
    assert open_ways(Sync(bucket_mb=1e-9), TWO_HOSTS)[0].bucket_bytes == 1


# --- bytes ---


def test_gradients_take_four_bytes_or_two() -> None:
    assert ExchangeWay().gradient_bytes(PARAMETERS) == 4 * PARAMETERS
    assert ExchangeWay(wire="bf16").gradient_bytes(PARAMETERS) == 2 * PARAMETERS


def test_a_flat_ring_leaves_each_host_as_often_as_ranks_change_hosts() -> None:
    flat, gradients = ExchangeWay(), 4.0 * PARAMETERS
    assert flat.ring_members(TWO_HOSTS) == 4
    assert flat.bytes_per_host(TWO_HOSTS, gradients) == ring_bytes(4, gradients)
    assert flat.bytes_per_host([0, 1, 0, 1], gradients) == 2 * ring_bytes(4, gradients)
    assert flat.bytes_per_host(ONE_HOST, gradients) == 0


def test_a_hierarchy_sends_as_one_rank_per_host() -> None:
    hierarchical, gradients = ExchangeWay(shape="hierarchical"), 4.0 * PARAMETERS
    assert hierarchical.ring_members(TWO_HOSTS) == 2
    assert hierarchical.bytes_per_host(TWO_HOSTS, gradients) == ring_bytes(2, gradients)


def test_shards_cross_between_hosts_once_and_inside_them_for_every_microbatch() -> None:
    gradients = 4 * PARAMETERS
    assert SHARDED.bytes_per_host(TWO_HOSTS, gradients) == ring_bytes(2, gradients)
    assert SHARDED.bytes_per_host(ONE_HOST, gradients) == 0
    # Two ranks: each sends half the weights for the forward pass, for backward, and half of the gradients.
    assert SHARDED.bytes_inside(2, PARAMETERS, microbatches=5) == 5 * 3 * gradients / 2
    assert SHARDED.bytes_inside(1, PARAMETERS, microbatches=5) == 0
    assert ExchangeWay(shape="hierarchical").bytes_inside(2, PARAMETERS, 5) == ring_bytes(2, gradients)
    assert ExchangeWay().bytes_inside(2, PARAMETERS, 5) == 0


def test_only_rounds_keep_and_save_something_of_their_own() -> None:
    assert (ROUNDS.memory_bytes(PARAMETERS), ROUNDS.saved_bytes(PARAMETERS)) == (12_000_000, 4_000_000)
    assert ROUNDS.has_replicas
    plain = ExchangeWay()
    assert (plain.memory_bytes(PARAMETERS), plain.saved_bytes(PARAMETERS)) == (0, 0)
    assert not plain.has_replicas


def test_only_unrounded_gradients_of_every_step_are_exact() -> None:
    assert ExchangeWay(shape="hierarchical").is_exact
    assert not ExchangeWay(wire="bf16").is_exact
    assert not ROUNDS.is_exact
    assert SHARDED.is_exact


# --- rounds ---


def test_rounds_grow_to_their_length_and_never_miss_a_whole_one() -> None:
    ends = [step for step in range(1, 400) if ROUNDS.ends_round(step)]
    assert ends[:18] == [*range(1, 17), 18, 20]
    lengths = np.diff([0, *ends])
    assert sorted(set(lengths.tolist())) == [1, 2, 4, 8, 16]
    assert (lengths <= np.maximum(1, np.array(ends) / 8)).all()
    for longest in (1, 5, 6, 32):
        way = ExchangeWay(mode="diloco", steps_per_round=longest)
        assert all(way.ends_round(step) for step in range(longest, 1000, longest))


@pytest.mark.parametrize("longest", [1, 6, 16])
def test_rounds_have_their_full_length_after_the_growing_steps(longest: int) -> None:
    way = ExchangeWay(mode="diloco", steps_per_round=longest)
    after = range(way.growing_steps + 1, way.growing_steps + 10 * longest + 1)
    assert [step for step in after if way.ends_round(step)] == [s for s in after if s % longest == 0]
    assert way.growing_steps == (ROUND_SHARE * longest if longest > 1 else 0)


def test_an_all_reduce_ends_a_round_with_every_step() -> None:
    assert all(ExchangeWay().ends_round(step) for step in range(1, 50))
    assert ExchangeWay().whole_rounds(7) == 7
    assert [ROUNDS.whole_rounds(steps) for steps in (1, 16, 17)] == [16, 16, 32]


# --- words ---


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (ExchangeWay(), "flat all-reduce in fp32"),
        (ExchangeWay(shape="hierarchical", wire="bf16", flows=2), "hierarchical all-reduce in bf16"),
        (ROUNDS, "DiLoCo, flat all-reduce in fp32 every 16 steps"),
        (ExchangeWay(mode="diloco"), "DiLoCo, flat all-reduce in fp32 every step"),
        (SHARDED, "weights sharded inside each host, hierarchical all-reduce in fp32"),
    ],
)
def test_a_way_is_named_in_the_same_words_everywhere(way: ExchangeWay, words: str) -> None:
    assert str(way) == words
    assert str(way.kind) == words
    assert str(RunFacts.model_validate(way.facts(PARAMETERS)).way) == words


def test_the_log_says_how_gradients_are_divided() -> None:
    assert ExchangeWay().bucket_words == "buckets of 25 MiB"
    divided = ExchangeWay(shape="hierarchical", bucket_bytes=5 * 2**20, flows=4)
    assert divided.bucket_words == "buckets of 5 MiB, 4 flows"
    assert divided.kind == ExchangeWay(shape="hierarchical")


# --- as it was stored ---


@pytest.mark.parametrize(
    "way", [ROUNDS, SHARDED, ExchangeWay(shape="hierarchical", wire="bf16", bucket_bytes=5 * 2**20)]
)
def test_records_give_back_the_way_they_were_given(way: ExchangeWay) -> None:
    facts = way.facts(PARAMETERS)
    assert facts["exchange"] == ("hierarchical" if way.is_hierarchical else "allreduce")
    assert facts["gradient_bytes"] == way.gradient_bytes(PARAMETERS)
    assert RunFacts.model_validate(facts).way == way


def test_records_with_values_that_nobody_knows_are_read_and_not_guessed_at() -> None:
    way = RunFacts(mode="striped", exchange="tree", wire="int8", bucket_bytes=0, exchange_every=3).way
    assert str(way) == "tree all-reduce in int8"
    assert way.bytes_per_host(TWO_HOSTS, 100.0) is None
    assert way.ring_members(TWO_HOSTS) == 4
    assert (way.is_exact, way.has_replicas, way.saved_bytes(1), way.whole_rounds(4)) == (False, False, 0, 6)
    assert way.gradient_bytes(1) == 4


@pytest.mark.parametrize(("algorithm", "shape"), [("allreduce", "flat"), ("hierarchical", "hierarchical")])
def test_a_checkpoint_from_before_ways_had_modes_is_read(algorithm: str, shape: str) -> None:
    stored = {"algorithm": algorithm, "wire": "bf16", "bucket_bytes": 5 * 2**20, "flows": 1}
    way = ExchangeWay.model_validate(stored)
    assert way == ExchangeWay.model_validate({"shape": shape, "wire": "bf16", "bucket_bytes": 5 * 2**20})
    assert ExchangeWay.model_validate_json(way.model_dump_json()) == way


def test_a_state_json_from_before_ways_had_modes_is_read() -> None:
    way = {"algorithm": "hierarchical", "wire": "bf16", "bucket_bytes": 5242880, "flows": 2}
    choice = {"way": way, "why": "measured", "asked": {"mode": "auto"}, "rank_hosts": TWO_HOSTS}
    state = SavedState.model_validate_json(json.dumps(STATE | {"choice": choice}))
    assert state.choice
    assert state.choice.way == ExchangeWay(shape="hierarchical", wire="bf16", bucket_bytes=5242880, flows=2)


@pytest.mark.parametrize("algorithm", ["tree", None, [], {}])
def test_a_stored_algorithm_that_never_was_is_refused(algorithm: object) -> None:
    with pytest.raises(ValidationError):
        ExchangeWay.model_validate({"algorithm": algorithm, "wire": "fp32"})
