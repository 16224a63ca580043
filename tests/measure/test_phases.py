"""The clock of a step."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.measure import phases as module
from dragoman.measure.phases import BETWEEN_STEPS, GpuPhases, Phases
from dragoman.measure.records import PHASES


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


class Event:
    """Stands for torch.cuda.Event: the card's clock is the test's, and done once the test says so."""

    now, done = 0.0, 0.0  # seconds

    def __init__(self, enable_timing: bool):
        assert enable_timing

    def record(self) -> None:
        self.at = Event.now

    def query(self) -> bool:
        return self.at <= Event.done

    def synchronize(self) -> None:
        Event.done = max(Event.done, self.at)

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1000


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
