"""train/calibrate.py: real steps on this machine, and what is made of their seconds."""

from types import SimpleNamespace

import pytest

from dragoman.errors import DragomanError
from dragoman.measure import phases as phases_module
from dragoman.measure.phases import GpuPhases
from dragoman.plan.work import Work
from dragoman.train.calibrate import Measured, measure, pace_of
from dragoman.train.calibration_rank import Bench
from tests.cards.events import Event
from tests.facts import lacking, raising
from tests.plan import build


def measured(ranks: int = 2) -> Measured:
    return Measured(
        device="cpu",
        ranks=ranks,
        flops=[2e9] * 5,
        without_exchange=[0.20, 0.21, 0.20, 0.19, 0.20],
        with_exchange=[0.30, 0.31, 0.30, 0.29, 0.30],
        serial=[0.01] * 5,
        data=[0.002] * 5,
        memory_bytes=5e8,
    )


def test_pace_is_seconds_over_work() -> None:
    work = build.work()
    pace = pace_of(measured(), work)
    assert pace.seconds_per_flop.value == pytest.approx(1e-10)
    assert pace.drag_seconds_per_byte.value == pytest.approx(0.1 / (4 * work.parameters))
    assert pace.data_share.value == pytest.approx(0.01)
    assert not lacking(pace.seconds_per_flop.source, "5 steps", 2)


def test_one_rank_tells_nothing_of_the_exchange() -> None:
    assert "gloo" in pace_of(measured(ranks=1), build.work()).drag_seconds_per_byte.source


def test_unsteady_steps_make_a_wide_interval() -> None:
    shaky = measured().model_copy(update={"without_exchange": [0.1, 0.3, 0.1, 0.3, 0.2]})
    assert pace_of(shaky, build.work()).seconds_per_flop.high > 1.4e-10


def test_a_few_steps_make_a_wide_interval() -> None:
    few = measured(ranks=1).model_copy(update={"flops": [2e9] * 3, "without_exchange": [0.2] * 3})
    assert pace_of(few, build.work()).seconds_per_flop.high == pytest.approx(1.25e-10)


def test_ranks_make_real_steps_for_as_long_as_they_are_asked() -> None:
    work, ranks = build.work(step=2_000, microbatch=500), 2
    found = measure(work, ranks, None, seconds=1.0)
    assert found.ranks == ranks
    assert len(found.flops) >= 4
    # From one microbatch, on a machine that is slow today, to the rank's share of a whole step.
    microbatch = work.flops_per_step() / work.microbatches
    assert 0.8 * microbatch < min(found.flops) <= max(found.flops) < 1.25 * work.flops_per_step() / ranks
    assert all(seconds > 0 for seconds in found.without_exchange + found.with_exchange + found.serial)
    assert 1e8 < found.memory_bytes < 2e9


def test_what_keeps_steps_from_being_made_is_reported() -> None:
    work = build.work()
    broken = Work(work.settings, work.corpus.__class__(4, *[work.corpus.source_tokens] * 2, None, 1))
    with raising(DragomanError, "ValueError: low >= high"):
        measure(broken, 1, None, seconds=1.0)


class QueueingStepper:
    """Stands for a Stepper on a GPU: the host waits for the gradient norm, not for what it queues later."""

    can_compute_alone = True

    def __init__(self, phases: GpuPhases):
        self._phases = phases

    def seconds_without_exchange(self, batch: object) -> float:
        self._compute()
        return float(self._phases.discard().sum())

    def close_round(self) -> None: ...

    def update(self, batch: object, stop_wanted: bool) -> None:
        self._compute()
        Event.done = Event.now  # the wait for the norm
        self._phases.begin("optimizer")
        Event.now += 0.25
        self._phases.begin("exchange")

    def _compute(self) -> None:
        for name in ("forward", "backward"):
            self._phases.begin(name)
            Event.now += 1.0


def test_the_optimizers_time_on_a_gpu_is_in_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases_module.torch.cuda, "Event", Event)
    Event.now = Event.done = 0.0
    bench = object.__new__(Bench)
    bench._phases = GpuPhases()
    bench._stepper, bench._steps = QueueingStepper(bench._phases), iter(range(10))
    bench._world, bench._state = SimpleNamespace(most=list), SimpleNamespace(step=0)
    bench._flops = lambda batch: 1e9
    _, *rows = [bench.step() for _ in range(4)]
    assert [row["serial"] for row in rows] == [0.25] * 3
    assert [row["without_exchange"] for row in rows] == [2.0] * 3, "without the optimizer"
    assert [row["with_exchange"] for row in rows] == [2.0] * 3
