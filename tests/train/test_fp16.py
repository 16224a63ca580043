"""fp16 and the scale of its loss: real steps and runs on a CPU that is made to compute in fp16."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.checkpoint import saved_state
from dragoman.errors import DragomanError
from dragoman.measure import database
from dragoman.model import Transformer
from dragoman.model.number_format import NumberFormat
from dragoman.rundir import RunFolder
from dragoman.sync import world as worlds
from dragoman.sync.world import World
from dragoman.train import optimizer
from dragoman.train.stopping import StopReason
from tests.facts import raising
from tests.train import runs
from tests.train.conftest import Here
from tests.train.runs import Task
from tests.train.steps import COMPARABLE, Bench, Forward

OPTIMIZERS = ("adam", "muon")
USUAL = 2.0**16  # the factor at which the search begins
TOO_LARGE = 2.0**40

Search = Callable[..., None]


@pytest.fixture(autouse=True)
def in_fp16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumberFormat, "of", lambda precision, device: NumberFormat("cpu", torch.float16))


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Search:
    """Sets where the search for a factor begins, and after how many good steps it tries a larger one."""

    def of(begins: float, growth_interval: int = 2_000) -> None:
        made = partial(torch.amp.GradScaler, init_scale=begins, growth_interval=growth_interval)
        monkeypatch.setattr(torch.amp, "GradScaler", made)

    return of


@pytest.fixture
def world(world_of_one: None) -> Iterator[World]:
    with worlds.join(60) as world:
        yield world


def factor(bench: Bench) -> float:
    bench.stepper.note_loss_scale()
    return bench.state.loss_scale["scale"]


def everything(bench: Bench) -> dict[str, Tensor]:
    moments = optimizer.state(bench.state.optimizer, bench.model)
    return {name: tensor.clone() for name, tensor in (bench.model.state_dict() | moments).items()}


def spoilt_backward(forward: Forward) -> Forward:
    """The loss is sound, its gradient is not."""

    def compute(*arguments) -> Tensor:  # noqa: ANN002
        loss = forward(*arguments)
        if loss.requires_grad:
            loss.register_hook(lambda gradient: gradient * torch.nan)
        return loss

    return compute


def infinite(forward: Forward) -> Forward:
    return lambda *arguments: forward(*arguments) * torch.inf


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_overflowing_steps_change_nothing_but_the_scale_and_are_no_bad_steps(
    task: Task, world: World, search: Search, name: str
) -> None:
    search(TOO_LARGE)
    bench = Bench(task.data, task.config, world, f"train.optimizer={name}")
    before, skipped = everything(bench), 0
    while (outcome := bench.step()).is_rescaled:
        skipped += 1
        assert not outcome.is_bad and math.isfinite(outcome.loss)
        assert factor(bench) == TOO_LARGE / 2**skipped
        assert all(torch.equal(tensor, before[key]) for key, tensor in everything(bench).items())
    assert 8 < skipped < 40
    assert not all(torch.equal(tensor, before[key]) for key, tensor in everything(bench).items())
    assert (bench.state.step, bench.state.bad_steps, bench.state.bad_in_a_row) == (skipped + 1, 0, 0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_are_unscaled_before_they_are_clipped(
    task: Task, world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    settings = (*COMPARABLE, f"train.optimizer={name}")
    free = Bench(task.data, task.config, world, *settings)
    clipped = Bench(task.data, task.config, world, *settings, "train.clip_norm=0.1")
    monkeypatch.setattr(NumberFormat, "of", lambda precision, device: NumberFormat("cpu", torch.float32))
    in_fp32 = Bench(task.data, task.config, world, *settings)
    used: list[float] = []
    for bench in (free, clipped):
        bench.state.optimizer.register_step_pre_hook(
            lambda optimizer, *rest: used.append(
                math.hypot(*(float(p.grad.norm()) for g in optimizer.param_groups for p in g["params"]))
            )
        )
    norm = in_fp32.step().gradient_norm
    assert free.step().gradient_norm == pytest.approx(norm, rel=0.02)
    assert clipped.step().gradient_norm == pytest.approx(norm, rel=0.02)
    assert used == pytest.approx([norm, 0.1], rel=0.02)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fp16_learns_as_fp32_does(
    task: Task, world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    settings = (*COMPARABLE, f"train.optimizer={name}", "train.warmup_steps=0")
    losses = []
    for dtype in (torch.float16, torch.float32):
        monkeypatch.setattr(NumberFormat, "of", partial(lambda dtype, *_: NumberFormat("cpu", dtype), dtype))
        bench = Bench(task.data, task.config, world, *settings)
        losses.append([bench.step().loss for _ in range(12)])
    assert losses[1][-1] < losses[1][0] - 0.3
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.01)


def test_a_loss_that_is_not_finite_is_a_bad_step_whatever_the_scale(task: Task, world: World) -> None:
    bench = Bench(task.data, task.config, world)
    bench.replace_forward(infinite)
    outcome = bench.step()
    assert outcome.is_bad and not outcome.is_rescaled
    assert bench.state.bad_in_a_row == 1


def test_gradients_that_no_scale_helps_are_bad_once_the_scale_is_at_1(task: Task, world: World) -> None:
    bench = Bench(task.data, task.config, world)
    good = bench.model.forward
    bench.replace_forward(spoilt_backward)
    halvings = int(math.log2(USUAL))
    found = [bench.step() for _ in range(halvings + 3)]
    assert [outcome.is_rescaled for outcome in found] == [True] * halvings + [False] * 3
    assert [outcome.is_bad for outcome in found] == [False] * halvings + [True] * 3
    assert factor(bench) == 1, "a lower one would only lose small gradients"
    assert bench.state.bad_in_a_row == 3
    bench.model.forward = good  # type: ignore[method-assign]
    outcome = bench.step()
    assert not outcome.is_bad and not outcome.is_rescaled and bench.state.bad_in_a_row == 0


def test_a_search_between_bad_steps_does_not_make_the_count_begin_again(task: Task, world: World) -> None:
    bench = Bench(task.data, task.config, world)
    good = bench.model.forward
    for spoil, count in ((infinite, 1), (spoilt_backward, 1), (infinite, 2)):
        bench.model.forward = good  # type: ignore[method-assign]
        bench.replace_forward(spoil)
        bench.step()
        assert bench.state.bad_in_a_row == count


def test_a_run_survives_its_search_and_records_it(here: Here, search: Search, tmp_path: Path) -> None:
    search(TOO_LARGE)
    few = ("train.steps=40", "train.most_bad_steps=1", "evaluate.every=40")
    assert here.train(tmp_path, *few) == StopReason.FINISHED
    steps = database.read(RunFolder(tmp_path).records).steps
    skipped = int(steps["is_rescaled"].sum())
    assert 8 < skipped < 40 and not steps["is_bad"].any()
    assert np.isnan(steps["gradient_norm"]).sum() == skipped
    assert saved_state.saved_state(RunFolder(tmp_path).checkpoint(40)).bad_steps == 0
    told = [line for line in runs.log(tmp_path).splitlines() if line.startswith("step ") and ": " in line]
    assert len(told) == skipped


def test_a_run_whose_gradients_stay_bad_ends(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = Transformer.forward
    monkeypatch.setattr(
        Transformer, "forward", lambda self, *rest: spoilt_backward(partial(forward, self))(*rest)
    )
    with raising(DragomanError, "3 steps", "train.rate"):
        here.train(tmp_path, "train.most_bad_steps=3", "evaluate.every=100")
    steps = database.read(RunFolder(tmp_path).records).steps
    assert (steps["is_rescaled"].sum(), steps["is_bad"].sum()) == (math.log2(USUAL), 3)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_in_pieces_finds_its_scale_again(here: Here, search: Search, tmp_path: Path, name: str) -> None:
    search(TOO_LARGE, growth_interval=2)  # it overflows again and again
    settings = ("train.steps=36", f"train.optimizer={name}", "checkpoint.every=9", "evaluate.every=36")
    here.train(tmp_path / "whole", *settings)
    for steps in (9, 31, 36):
        here.train(tmp_path / "pieces", *settings, f"train.steps={steps}")
    assert runs.trained(tmp_path / "pieces", 36) == runs.trained(tmp_path / "whole", 36)
    whole = RunFolder(tmp_path / "whole")
    steps = database.read(whole.records).steps
    assert steps["is_rescaled"][-12:].any() and not steps["is_rescaled"][-12:].all()
    assert saved_state.saved_state(whole.checkpoint(36)).loss_scale["scale"] < TOO_LARGE
