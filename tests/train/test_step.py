"""One step: how it is cut does not change what is computed, and trouble on one rank hangs no other."""

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from dragoman.data.batches import Microbatch
from dragoman.errors import DragomanError
from dragoman.sync import world as worlds
from dragoman.sync.world import World
from tests import ranks
from tests.facts import lacking, raising
from tests.ranks import Ended
from tests.train.runs import Task
from tests.train.steps import (
    COMPARABLE,
    MOST_ROWS,
    Bench,
    Forward,
    out_of_memory_above,
    out_of_memory_in_backward,
)


@pytest.fixture
def world(world_of_one: None) -> Iterator[World]:
    with worlds.join(60) as world:
        yield world


def bench(task: Task, world: World, *changes: str) -> Bench:
    return Bench(task.data, task.config, world, *COMPARABLE, *changes)


def assert_same_weights(one: Bench, other: Bench) -> None:
    for name, tensor in one.model.state_dict().items():
        torch.testing.assert_close(other.model.state_dict()[name], tensor, msg=name)


@pytest.mark.parametrize("rows", [MOST_ROWS, 1])
def test_out_of_memory_splits_and_makes_the_same_step(task: Task, world: World, rows: int) -> None:
    plain, short = bench(task, world), bench(task, world)
    short.replace_forward(out_of_memory_above(rows))
    for _ in range(2):
        expected, found = plain.step(), short.step()
        assert found.loss == pytest.approx(expected.loss, rel=1e-5)
        assert found.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-4)
    assert_same_weights(plain, short)


def test_out_of_memory_in_an_early_backward_splits_too(task: Task, world: World) -> None:
    plain, short = bench(task, world), bench(task, world)

    def once(forward: Forward) -> Forward:
        failing, calls = out_of_memory_in_backward(1)(forward), 0

        def compute(*arguments) -> Tensor:  # noqa: ANN002
            nonlocal calls
            calls += 1
            return failing(*arguments) if calls == 2 else forward(*arguments)

        return compute

    short.replace_forward(once)
    plain.step(), short.step()
    assert_same_weights(plain, short)


def test_out_of_memory_in_the_last_backward_is_an_error_with_advice(task: Task, world: World) -> None:
    short = bench(task, world)
    short.replace_forward(out_of_memory_in_backward(4))
    with raising(DragomanError, "--set data.split=2", "--set train.recompute=true"):
        short.step()


def test_a_single_pair_that_does_not_fit_is_an_error(task: Task, world: World) -> None:
    short = bench(task, world)
    short.replace_forward(out_of_memory_above(0))
    with raising(DragomanError, "clean.max_words", "train.recompute=true") as error:
        short.step()
    assert lacking(str(error.value), "--set data.split=2"), "smaller parts would not help"


def test_settling_takes_less_memory_than_a_step(
    task: Task, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = bench(task, world)
    short.replace_forward(out_of_memory_above(1))
    monkeypatch.setattr(short.exchange, "_ranks", 3)  # fewer have nothing to settle
    before = {name: tensor.clone() for name, tensor in short.model.state_dict().items()}
    short.settle()
    assert short.model.embedding.weight.grad is not None  # it did compute
    assert all(torch.equal(before[name], tensor) for name, tensor in short.model.state_dict().items())


@pytest.mark.parametrize("ranks", [1, 2])
def test_one_rank_and_two_begin_without_settling(
    task: Task, world: World, monkeypatch: pytest.MonkeyPatch, ranks: int
) -> None:
    short = bench(task, world)
    monkeypatch.setattr(short.exchange, "_ranks", ranks)
    short.replace_forward(out_of_memory_above(0))
    short.settle()


@pytest.mark.parametrize("parts", [2, 7])
def test_computing_in_parts_changes_nothing(task: Task, world: World, parts: int) -> None:
    whole, split = bench(task, world), bench(task, world, f"data.split={parts}")
    whole.step(), split.step()
    assert_same_weights(whole, split)


def test_the_next_steps_first_microbatch_is_loaded_while_this_one_is_computed(
    task: Task, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, ahead = bench(task, world), bench(task, world)
    loaded: list[list[int]] = []
    load = ahead.batches.load

    def noting(rows: np.ndarray) -> Microbatch:
        loaded.append(rows.tolist())
        return load(rows)

    monkeypatch.setattr(ahead.batches, "load", noting)
    steps = list(islice(plain.batches.after(plain.state.position), 3))
    ahead.steps_looking_ahead(2)
    in_order = [rows.tolist() for step in steps for rows in step.microbatches]
    assert loaded == in_order[: 1 - len(steps[2].microbatches)]  # each once, and the third step's first
    for _ in range(2):
        plain.step()
    assert_same_weights(plain, ahead)


def test_dropout_is_a_matter_of_seed_and_step(task: Task, world: World) -> None:
    losses = []
    for seed in (1, 1, 2):
        made = Bench(task.data, task.config, world, f"train.seed={seed}")
        losses.append([made.step().loss, made.step().loss])
    assert losses[0] == losses[1] != losses[2]


def test_the_clip_limits_the_update_but_not_the_norm_that_is_reported(task: Task, world: World) -> None:
    free, clipped = bench(task, world), bench(task, world, "train.clip_norm=0.1")
    gradients = []
    for made in (free, clipped):
        made.state.optimizer.register_step_pre_hook(
            lambda optimizer, *rest: gradients.append(
                math.hypot(*(float(p.grad.norm()) for g in optimizer.param_groups for p in g["params"]))
            )
        )
    assert clipped.step().gradient_norm == free.step().gradient_norm
    assert gradients[0] == pytest.approx(0.1, rel=1e-3)
    assert gradients[1] > 1


def two_ranks(task: Task, folder: Path, trouble: str) -> Ended:
    return ranks.run("tests.train.steps", [task.data, task.config, folder, trouble], 2)


def test_out_of_memory_on_one_of_two_ranks_makes_the_same_step_on_both(task: Task, tmp_path: Path) -> None:
    found = {}
    for trouble in ("none", "forward"):
        folder = tmp_path / trouble
        folder.mkdir()
        result = two_ranks(task, folder, trouble)
        assert result.returncode == 0, result.stderr
        assert (not lacking(result.stdout, "rank 1:", 2)) == (trouble == "forward")
        found[trouble] = [load_file(folder / f"rank-{rank}.safetensors") for rank in (0, 1)]
    for name, expected in found["none"][0].items():
        assert torch.equal(found["forward"][0][name], found["forward"][1][name])
        torch.testing.assert_close(found["forward"][0][name], expected)


def test_out_of_memory_in_the_last_backward_of_one_rank_ends_both(task: Task, tmp_path: Path) -> None:
    result = two_ranks(task, tmp_path, "last backward")  # its time limit is the test that nothing hangs
    assert result.returncode == 1
    assert "error: " in result.stderr and not lacking(result.stderr, "--set data.split=2")
    assert not list(tmp_path.iterdir())
