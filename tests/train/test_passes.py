"""Microbatches computed together: the same pairs, each once, in the same step."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman import config
from dragoman.sync import world as worlds
from dragoman.sync.world import World
from dragoman.train import passes
from dragoman.train.step import Stepper
from tests.train.conftest import Here
from tests.train.runs import Task
from tests.train.steps import COMPARABLE, Bench, Forward, out_of_memory_above

MOST = 600  # tokens of both sides: two microbatches of the task
GIB = 2**30


@pytest.fixture
def world(world_of_one: None) -> Iterator[World]:
    with worlds.join(60) as world:
        yield world


@pytest.fixture
def filling(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The CPU pretends to mix lengths and to have room for MOST tokens; notes what was tried."""
    tried: list[int] = []

    def fit(device: torch.device, later_bytes: float, compute) -> int:  # noqa: ANN001
        tried.append(compute())
        return MOST

    monkeypatch.setattr(Stepper, "_mixes_lengths", lambda self: True)
    monkeypatch.setattr(passes, "tokens_that_fit", fit)
    monkeypatch.setattr(config, "microbatch_size", lambda asked, unit: 128 if asked == "auto" else asked)
    return tried


def bench(task: Task, world: World, *changes: str) -> Bench:
    return Bench(task.data, task.config, world, *COMPARABLE, *changes)


def counted(bench: Bench) -> list[int]:
    """The pairs of each forward pass from now on."""
    pairs: list[int] = []

    def count(forward: Forward) -> Forward:
        def compute(source, lengths, *rest):  # noqa: ANN001, ANN002, ANN202
            pairs.append(len(lengths))
            return forward(source, lengths, *rest)

        return compute

    bench.replace_forward(count)
    return pairs


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=30).flatmap(
        lambda tokens: st.tuples(st.just(tokens), st.sets(st.integers(0, len(tokens) - 1), min_size=1))
    ),
    st.integers(0, 3_000),
)
def test_every_microbatch_is_in_one_pass_and_no_pass_is_too_large(
    step: tuple[list[int], set[int]], most: int
) -> None:
    tokens, mine = step[0], sorted(step[1])
    found = passes.together(mine, tokens, most)
    assert [microbatch for members in found for microbatch in members] == mine
    for members in found:
        assert len(members) == 1 or sum(tokens[member] for member in members) <= most
    for members, following in zip(found, found[1:], strict=False):
        assert sum(tokens[member] for member in [*members, following[0]]) > most, "it would have fitted"


def test_without_a_limit_each_microbatch_is_a_pass() -> None:
    assert passes.together([0, 2, 3], [5, 5, 5, 5], 0) == [[0], [2], [3]]


def test_a_step_in_fewer_passes_is_the_same_step(task: Task, world: World) -> None:
    apart, together = bench(task, world), bench(task, world)
    together.state.pass_tokens = MOST
    batch = next(together.batches.after(together.state.position))
    pairs = counted(together)
    for _ in range(2):
        expected, found = apart.step(), together.step()
        assert found.loss == pytest.approx(expected.loss, rel=1e-5)
        assert found.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-4)
    first = passes.together(range(len(batch.tokens)), batch.tokens, MOST)
    assert 1 < len(first) < len(batch.microbatches)
    assert pairs[: len(first)] == [sum(len(batch.microbatches[m]) for m in members) for members in first]
    for name, tensor in apart.model.state_dict().items():
        torch.testing.assert_close(together.model.state_dict()[name], tensor, msg=name)


def test_a_pass_that_does_not_fit_is_halved_before_microbatches_are_split(task: Task, world: World) -> None:
    apart, short = bench(task, world), bench(task, world)
    short.state.pass_tokens = 4 * MOST
    most_pairs = max(map(len, next(short.batches.after(short.state.position)).microbatches))
    short.replace_forward(out_of_memory_above(most_pairs))
    pairs = counted(short)
    apart.step(), short.step()
    assert short.state.pass_tokens < 4 * MOST
    assert sum(pairs[-4:]) == next(apart.batches.after(type(apart.state.position)())).pairs, "none was split"
    for name, tensor in apart.model.state_dict().items():
        torch.testing.assert_close(short.model.state_dict()[name], tensor, msg=name)


def test_memory_decides_how_much_is_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, peak = 2 * GIB, 3 * GIB  # a microbatch needs one GiB
    for name, value in (
        ("memory_allocated", now),
        ("max_memory_allocated", peak),
        ("memory_reserved", now + 2 * GIB),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (8 * GIB, 16 * GIB))
    # 8 GiB are free, and torch keeps 2 unused; one of the 85 % of them is needed later.
    fitting = passes.tokens_that_fit(torch.device("cuda", 0), 1 * GIB, lambda: 1_000)
    assert fitting == pytest.approx(1_000 * (0.85 * 10 - 1), abs=1)
    full = passes.tokens_that_fit(torch.device("cuda", 0), 20 * GIB, lambda: 1_000)
    assert full == 0


def test_filling_memory_tries_the_largest_microbatch_and_changes_nothing(
    task: Task, world: World, filling: list[int]
) -> None:
    filled, plain = bench(task, world, "data.microbatch=auto"), bench(task, world)
    batch = next(filled.batches.after(filled.state.position))
    filled.stepper.fill_memory(batch)
    assert filling == [max(batch.tokens)]
    assert filled.state.pass_tokens == MOST
    for name, tensor in plain.model.state_dict().items():
        assert torch.equal(filled.model.state_dict()[name], tensor)
    assert all(not parameter.grad.any() for parameter in filled.model.parameters())


def test_a_number_of_the_users_is_kept(task: Task, world: World, filling: list[int]) -> None:
    given = bench(task, world)
    given.stepper.fill_memory(next(given.batches.after(given.state.position)))
    assert not filling
    assert given.state.pass_tokens == 0


def test_a_cpu_computes_each_microbatch_by_itself(task: Task, world: World) -> None:
    plain = bench(task, world, "data.microbatch=auto")
    assert plain.stepper.fill_memory(next(plain.batches.after(plain.state.position))) == []
    assert plain.state.pass_tokens == 0


def test_a_run_that_continues_keeps_its_passes_and_every_bit(
    here: Here, tmp_path: Path, filling: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ("data.microbatch=auto", "train.steps=16")
    here.train(tmp_path / "unbroken", *settings)
    here.train(tmp_path / "run", *settings, "train.stop_at=8")
    tried = len(filling)
    monkeypatch.setattr(passes, "tokens_that_fit", lambda *_: 1)  # another card
    here.train(tmp_path / "run", *settings)
    assert len(filling) == tried == 2
    final = "checkpoints/step-00000016"
    state = json.loads((tmp_path / "run" / final / "state.json").read_text())
    assert state["pass_tokens"] == MOST
    unbroken, run = ((tmp_path / name / final / "model.safetensors") for name in ("unbroken", "run"))
    assert unbroken.read_bytes() == run.read_bytes()
