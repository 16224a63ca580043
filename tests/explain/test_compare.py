"""explain/compare.py: what differs between two runs, which was slower, and why."""

import numpy as np
import pytest

from dragoman import format_units
from dragoman.explain.compare import RunComparison, compare
from dragoman.explain.compare_speed import FOR_SLOWER_RANK, OVER_LINK
from dragoman.measure.records import Records
from tests.explain import build as explain_build
from tests.explain.build import Run
from tests.facts import lacking, only
from tests.report import build


def with_link(records: Records, bits_per_second: float) -> Records:
    for probe in records.probes_of("link"):
        probe.numbers["bits_per_second"] = bits_per_second
    return records


def share_of(comparison: RunComparison, phase: str) -> float:
    return next(row.difference_share for row in comparison.speed.phases if row.phase == phase)


def test_a_slow_link_is_named_with_its_share() -> None:
    fast = with_link(build.rich(300, name="fast", exchange=0.1), 1e10)
    slow = with_link(build.rich(300, name="slow", exchange=0.9), 1e9)
    for found in (compare(fast, slow), compare(slow, fast)):
        assert share_of(found, OVER_LINK) > 0.85
        whole, phase, behind, *_ = found.why
        assert not lacking(whole, "slow", "1.57 s", "fast")
        assert not lacking(phase, format_units.share(share_of(found, OVER_LINK)))
        assert behind.index("1 Gbit/s") < behind.index("10 Gbit/s"), "the slower run's first"
    assert compare(fast, slow).speed.slower == "b"
    assert compare(slow, fast).speed.slower == "a"


def test_slow_data_is_named() -> None:
    usual, starved = build.rich(300, name="usual"), build.rich(300, name="starved")
    for statistic in ("mean", "least", "most"):
        starved.steps[f"data_{statistic}"] = starved.steps[f"data_{statistic}"] + 0.5
    starved.steps["seconds"] = starved.steps["seconds"] + 0.5
    found = compare(usual, starved)
    assert share_of(found, "data") == pytest.approx(1, abs=0.01)
    assert not lacking(found.why[1], "100%")


def test_a_slower_run_that_shared_its_cores_says_so_once_and_with_whom() -> None:
    changes = {"hosts": 1, "ranks": 2}
    alone = explain_build.records(**changes, counted_cores=[0.98, 0.98], changes={"name": "alone"})
    shared = explain_build.records(
        **changes, forward=0.6, backward=1.2, counted_cores=[0.5, 0.5], changes={"name": "shared"}
    )
    shared.programs = {
        "host": np.zeros(1),
        "time": np.array([explain_build.BEGAN + 60]),
        "span": np.ones(1),
        "name": np.array(["burn"]),
        "cores": np.array([0.9]),
    }
    only(compare(alone, shared).why, "shared", "50%", "98%", "burn", "0.9")
    assert len(compare(alone, alone).why) == 1


@pytest.mark.parametrize(
    ("share", "other", "is_said"), [(0.92, 1.0, False), (0.85, 0.9, False), (0.75, 0.9, True)]
)
def test_a_tenth_less_of_the_cpu_time_that_was_wanted_is_reported(
    share: float, other: float, is_said: bool
) -> None:
    """And a tenth less than the other run got."""
    changes = {"hosts": 1, "ranks": 2}
    slow = explain_build.records(**changes, forward=0.6, counted_cores=[share] * 2, changes={"name": "slow"})
    fast = explain_build.records(**changes, counted_cores=[other] * 2, changes={"name": "fast"})
    is_told = any(not lacking(sentence, "slow", f"{share:.0%}") for sentence in compare(slow, fast).why)
    assert is_told == is_said


def test_a_slow_rank_is_named() -> None:
    usual, limping = build.rich(300, name="usual"), build.rich(300, name="limping")
    late = 0.3
    limping.steps["exchange_mean"] = limping.steps["exchange_mean"] + late
    limping.steps["seconds"] = limping.steps["seconds"] + late
    found = compare(usual, limping)
    assert share_of(found, FOR_SLOWER_RANK) == pytest.approx(1, abs=0.01)
    only(found.why, "limping", "rank 3", "smyrna")


def test_like_runs_are_called_alike() -> None:
    found = compare(build.rich(300), build.rich(300))
    assert found.speed.slower is None
    (sentence,) = found.why
    assert sentence.count("1.57 s") == 2
    assert found.a != found.b
    assert found.a.startswith("wmt16-base") and found.b.startswith("wmt16-base")
    assert found.settings == [] and found.machines == []


def test_steps_of_unlike_size_are_compared_by_token() -> None:
    small, large = build.rich(300, name="small"), build.rich(300, name="large")
    large.steps["target_tokens"] = large.steps["target_tokens"] * 4
    found = compare(small, large)
    assert found.speed.per == "1,000 target tokens"
    assert found.speed.slower == "a"
    assert found.speed.times_slower == pytest.approx(4)


@pytest.mark.parametrize(
    ("factor", "per"), [(1.015, "step"), (1.025, "1,000 target tokens"), (0.975, "1,000 target tokens")]
)
def test_steps_are_alike_in_size_up_to_2_percent(factor: float, per: str) -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other")
    other.steps["target_tokens"] = other.steps["target_tokens"] * factor
    assert compare(one, other).speed.per == per


@pytest.mark.parametrize(("factor", "slower"), [(1.015, None), (1.025, "b"), (0.975, "a")])
def test_runs_are_about_as_fast_up_to_2_percent(factor: float, slower: str | None) -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other")
    other.steps["seconds"] = other.steps["seconds"] * factor
    assert compare(one, other).speed.slower == slower


def test_settings_ranks_and_hosts_that_differ_are_listed() -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other")
    other.facts.settings = {**build.SETTINGS, "sync.wire": "bf16"}
    other.facts.ranks, other.facts.hosts = 8, [*build.HOSTS, "tyre", "sidon"]
    found = compare(one, other)
    assert [(row.name, row.a, row.b) for row in found.settings] == [("sync.wire", "fp32", "bf16")]
    assert {"ranks", "hosts"} <= {row.name for row in found.machines}


def test_scores_made_alike_are_compared() -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other")
    for records in (one, other):
        records.facts.settings = {**build.SETTINGS, "train.label_smoothing": 0.1}
        records.facts.data_card = {**build.CARD, "vocabulary_sha256": "5e1f"}
    other.evaluations[-1].bleu = 30.0
    other.evaluations[-1].eval_loss = 1.5
    better = {row.metric: row.better for row in compare(one, other).quality}
    assert better == {"bleu": "b", "eval_loss": "b"}


@pytest.mark.parametrize("missing", ["vocabulary", "smoothing"])
def test_a_loss_that_was_made_in_an_unknown_way_is_not_compared(missing: str) -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other")
    for records in (one, other):
        known = {"train.label_smoothing": 0.1} if missing != "smoothing" else {}
        records.facts.settings = build.SETTINGS | known
        records.facts.data_card = build.CARD | (
            {"vocabulary_sha256": "5e1f"} if missing != "vocabulary" else {}
        )
    loss = next(row for row in compare(one, other).quality if row.metric == "eval_loss")
    assert not loss.is_comparable and loss.better is None
    assert loss.note


def test_phases_recorded_by_cause_in_one_run_only_are_joined() -> None:
    one, other = build.rich(200, name="one"), build.rich(200, name="other", exchange=0.2)
    other.steps["exchange_least"] = np.full(200, np.nan)
    phases = {row.phase for row in compare(one, other).speed.phases}
    assert "exchange" in phases and OVER_LINK not in phases


def test_a_run_in_two_placements_is_compared_by_the_longer_and_that_is_reported() -> None:
    moved = explain_build.in_turn(Run(steps=300), Run(steps=100, ranks=2))
    made = compare(moved, explain_build.records(steps=400))
    differing = {row.name: (row.a, row.b) for row in made.machines}
    assert differing == {"ranks of attempts": ([4, 2], None)}, "400 steps each, on 4 ranks"
    only(made.why, 100, "2 ranks")


def test_an_exchange_way_is_reported_once() -> None:
    """As setting and as fact: the setting where it says what was done, as `auto` does not."""
    one, other = build.rich(200, name="one"), build.rich(200, name="other")
    for records, mode, every in ((one, "allreduce", 1), (other, "diloco", 16)):
        records.facts.mode, records.facts.exchange_every = mode, every
        records.facts.settings = {**build.SETTINGS, "sync.mode": mode, "sync.inner_steps": 8 * every}
    found = compare(one, other)
    assert [row.name for row in found.machines] == []
    assert [row.name for row in found.settings] == ["sync.mode", "sync.inner_steps"]
    one.facts.settings["sync.mode"] = "auto"
    found = compare(one, other)
    assert ("mode", "allreduce", "diloco") in [(row.name, row.a, row.b) for row in found.machines]
    assert "sync.mode" not in [row.name for row in found.settings]


def test_a_faster_device_is_no_cause_of_a_slower_run() -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other")
    other.steps["forward_mean"] = other.steps["forward_mean"] + 1.0
    other.steps["seconds"] = other.steps["seconds"] + 1.0
    for probe in other.probes_of("peak"):
        probe.numbers["flops_per_second"] *= 2
    assert not any("FLOP/s" in sentence for sentence in compare(one, other).why)
