"""explain/placement.py: a run whose ranks and hosts changed is judged by the steps of one placement."""

from dragoman.explain import placement
from dragoman.explain.finding import Finding
from dragoman.explain.run import explain
from dragoman.measure.records import Records
from tests.explain import build
from tests.explain.build import Run
from tests.facts import lacking


def findings(records: Records) -> dict[str, Finding]:
    return {finding.id: finding for finding in explain(records)}


def test_a_slow_network_is_named_though_the_last_steps_ran_on_one_machine() -> None:
    slow = Run(steps=400, exchange=1.0, link_bits_per_second=1e9)
    records = build.in_turn(slow, Run(steps=100, ranks=1, hosts=1, exchange=0.0))
    found = findings(records)
    network = found["network"]
    assert network.verdict == "bottleneck"
    placed = placement.longest(records)
    assert (placed.records.facts.ranks, len(placed.records.steps["step"])) == (4, 400)
    assert not lacking(placed.others, 400, "4 ranks", "host0", "host1", "fp32", 100, "1 rank")
    assert network.answer.endswith(placed.others)
    assert found["device_utilisation"].verdict == "waiting_network"
    assert found["duration"].numbers["steps"] == 500, "how long it took is of the whole run"


def test_ranks_that_made_more_steps_are_no_stragglers() -> None:
    """Rank 0 was there all the time, ranks 2 and 3 only at first."""
    found = findings(build.in_turn(Run(steps=150), Run(steps=400, ranks=2)))
    assert found["device_utilisation"].verdict == "computing"
    assert "slowest_rank" not in found["network"].numbers
    assert lacking(found["network"].answer, "rank 0")


def test_bytes_are_held_against_the_hosts_that_sent_them() -> None:
    found = findings(build.in_turn(Run(steps=400, ranks=2), Run(steps=150, ranks=3, hosts=3)))
    numbers = found["network"].numbers
    assert abs(numbers["bytes_per_step_per_host"] / numbers["expected_bytes_per_step_per_host"] - 1) < 0.05
    assert "byte_mismatches" not in numbers


def test_attempts_alike_are_judged_together() -> None:
    records = build.in_turn(Run(steps=200), Run(steps=100))
    placed = placement.longest(records)
    assert placed.records is records
    assert not placed.others


def test_another_way_of_meeting_is_another_placement() -> None:
    records = build.in_turn(Run(steps=300), Run(steps=100, changes={"wire": "bf16"}))
    placed = placement.longest(records)
    assert placed.records.facts.wire == "fp32", "that of most steps, not of the last"
    assert not lacking(placed.others, 100, "4 ranks", "host0", "host1", "bf16")


def test_of_old_records_the_last_placement_is_the_only_one_known() -> None:
    records = build.in_turn(Run(steps=300), Run(steps=100, ranks=2))
    records.attempts = [attempt.model_copy(update={"placement": {}}) for attempt in records.attempts]
    placed = placement.longest(records)
    assert len(placed.records.steps["step"]) == 100
    assert placed.records.facts.ranks == 2
    assert not lacking(placed.others, 300, "4 ranks")


def test_an_attempt_that_has_made_no_step_yet_changes_nothing() -> None:
    """Its facts are those of the run already: one rank on one machine."""
    slow = Run(steps=400, exchange=1.0, link_bits_per_second=1e9)
    records = build.in_turn(slow, Run(steps=40, ranks=1, hosts=1, exchange=0.0))
    records.steps = {name: values[:400] for name, values in records.steps.items()}
    network = findings(records)["network"]
    assert network.verdict == "bottleneck"
    assert not placement.longest(records).others
    assert lacking(network.answer, "1 rank")
