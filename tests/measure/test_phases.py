"""The clock of a step."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.measure import phases as module
from dragoman.measure.phases import BETWEEN_STEPS, GpuPhases, Phases
from dragoman.measure.records import PHASES
from tests.cards.events import Event


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    return now


def test_every_second_of_a_step_is_in_one_phase(clock: list[float]) -> None:
    phases = Phases()
    for name, seconds in (("data", 1), ("forward", 2), ("backward", 4), ("forward", 8), ("optimizer", 16)):
        phases.begin(name)
        clock[0] += seconds
    assert dict(zip(PHASES, phases.end_step(), strict=True)) == {
        "data": 1,
        "forward": 10,
        "backward": 4,
        "exchange": 0,
        "optimizer": 16,
    }


def test_time_between_steps_is_in_no_phase(clock: list[float]) -> None:
    phases = Phases()
    phases.begin("data")
    clock[0] += 1
    phases.pause()
    assert phases.current == BETWEEN_STEPS
    clock[0] += 100
    phases.begin("forward")
    clock[0] += 1
    assert phases.end_step().sum() == 2
    assert phases.step == 1


def test_exposed_time_moves_but_is_never_invented(clock: list[float]) -> None:
    phases = Phases()
    phases.begin("backward")
    clock[0] += 3
    phases.begin("optimizer")
    phases.move(1.0, "backward", "exchange")
    phases.move(50.0, "backward", "exchange")  # a clock that says more than there was
    phases.move(-5.0, "backward", "exchange")
    seconds = dict(zip(PHASES, phases.end_step(), strict=True))
    assert (seconds["backward"], seconds["exchange"]) == (0.0, 3.0)
    assert np.isclose(sum(seconds.values()), 3.0)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> type[Event]:
    monkeypatch.setattr(module.torch.cuda, "Event", Event)
    Event.now = Event.done = 0.0
    return Event


def test_a_gpus_step_waits_for_nothing_and_its_rest_counts_to_the_next(card: type[Event]) -> None:
    phases = GpuPhases()
    steps = []
    for _ in range(2):
        for name, seconds in (("forward", 2), ("optimizer", 1)):
            phases.begin(name)
            card.now += seconds
        card.done = card.now - 0.5  # the optimizer's last kernels
        steps.append(dict(zip(PHASES, phases.end_step(), strict=True)))
    assert [(step["forward"], step["optimizer"]) for step in steps] == [(2, 0), (2, 1)]
    assert card.done < card.now


def test_what_was_no_step_is_waited_for_on_a_gpu(card: type[Event]) -> None:
    phases = GpuPhases()
    phases.begin("forward")
    card.now += 2
    assert phases.discard().sum() == 2
    assert card.done == card.now


def test_what_a_gpu_had_left_of_a_step_still_counts_after_something_that_was_no_step(
    card: type[Event],
) -> None:
    phases = GpuPhases()
    phases.begin("optimizer")
    card.now += 3  # queued, and not begun when the step ends
    assert phases.end_step().sum() == 0
    phases.begin("forward")
    card.now += 2
    discarded = dict(zip(PHASES, phases.discard(), strict=True))
    assert (discarded["forward"], discarded["optimizer"]) == (2, 0)
    phases.begin("data")
    step = dict(zip(PHASES, phases.end_step(), strict=True))
    assert (step["optimizer"], step["forward"]) == (3, 0)


def test_the_position_is_the_cards_and_not_that_of_the_host_which_runs_ahead(card: type[Event]) -> None:
    phases = GpuPhases()
    for _ in range(2):
        for name, seconds in (("forward", 2), ("backward", 4), ("optimizer", 1)):
            phases.begin(name)
            card.now += seconds
        phases.end_step()
        card.now += 1  # an evaluation, between the steps
    assert (phases.step, phases.current) == (2, BETWEEN_STEPS)
    seen = []
    for card.done in (1, 3, 6.5, 7.5, 9, 14.5, 15.5):
        step, phase = phases.position()
        seen.append((step, "between" if phase == BETWEEN_STEPS else PHASES[phase]))
    assert seen == [
        (0, "forward"),
        (0, "backward"),
        (0, "optimizer"),
        (1, "between"),
        (1, "forward"),
        (1, "optimizer"),
        (2, "between"),
    ]


def test_asking_where_the_card_is_waits_for_nothing_and_takes_nothing_away(card: type[Event]) -> None:
    phases = GpuPhases()
    phases.begin("forward")
    card.now += 2
    phases.position()
    assert card.done == 0
    card.done = 2
    phases.position()
    assert phases.end_step().sum() == 2


def test_the_position_on_a_cpu_is_where_the_rank_is(clock: list[float]) -> None:
    phases = Phases()
    phases.begin("forward")
    assert phases.position() == (0, PHASES.index("forward"))
    phases.end_step()
    assert phases.position() == (1, BETWEEN_STEPS)
