"""sync.mode=sharded: real ranks that each keep a part of the model train as plain ranks do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dragoman.config import Sync, Train, Training
from dragoman.errors import DragomanError
from dragoman.explain.network import explain
from dragoman.measure import database
from dragoman.rundir import RunFolder
from dragoman.sync import shards
from dragoman.sync import world as worlds
from dragoman.sync.topology import Topology
from dragoman.sync.world import World
from tests import ranks
from tests.facts import lacking, raising
from tests.train import hosts, runs
from tests.train.conftest import Made
from tests.train.runs import Task
from tests.train.steps import MOST_ROWS, Bench, out_of_memory_above

SHARDED = "sync.mode=sharded"
# AdamW divides by the gradient's size: with its usual epsilon the last bits of a gradient near 0 would show.
# The rate is small as rounding now and then decides whether a ReLU is on, which moves a gradient by 1e-5.
STEPS = (
    *("train.steps=12", "train.epsilon=0.001", "train.rate=0.00003", "train.clip_norm=1"),
    *("train.optimizer=adamw", "train.weight_decay=0.1", "checkpoint.every=4", "evaluate.every=6"),
)
Whole = Callable[..., Path]


@pytest.fixture
def world(world_of_one: None) -> Iterator[World]:
    with worlds.join(60) as world:
        yield world


@pytest.fixture(scope="session")
def whole(made_once: Made, task: Task) -> Whole:
    """A run of two ranks in one piece, with these settings."""

    def of(*settings: str) -> Path:
        def make(folder: Path) -> None:
            result = runs.train(task, folder, *STEPS, *settings, workers=2)
            assert result.returncode == 0, result.stderr
            assert "Warning" not in result.stderr

        return made_once(f"whole-{'-'.join(settings) or 'plain'}", make)

    return of


def assert_alike(run: Path, other: Path, step: int = 12) -> None:
    """The same weights and moments but for rounding."""
    for file, tolerance in (("model.safetensors", 1e-6), ("optimizer.safetensors", 2e-5)):
        ours, theirs = (load_file(RunFolder(each).checkpoint(step) / file) for each in (run, other))
        assert ours.keys() == theirs.keys()
        for name, tensor in theirs.items():
            torch.testing.assert_close(ours[name], tensor, rtol=0, atol=tolerance, msg=name)


def test_two_ranks_agree_with_plain_ones_in_losses_weights_moments_and_scores(whole: Whole) -> None:
    assert_alike(whole(SHARDED), whole())
    ours, theirs = (database.read(RunFolder(run).records) for run in (whole(SHARDED), whole()))
    for column in ("loss", "gradient_norm"):
        assert ours.steps[column].tolist() == pytest.approx(theirs.steps[column].tolist(), rel=1e-6)
    assert [row.step for row in ours.evaluations] == [6, 12]
    for one, other in zip(ours.evaluations, theirs.evaluations, strict=True):
        assert (one.bleu, one.chrf) == (other.bleu, other.chrf)
        assert one.eval_loss == pytest.approx(other.eval_loss, rel=1e-6)


def test_a_run_goes_from_shards_to_whole_models_and_back(task: Task, whole: Whole, tmp_path: Path) -> None:
    for step, mode in ((4, "sharded"), (8, "allreduce"), (12, "sharded")):
        stop = f"train.stop_at={step if step < 12 else 0}"
        result = runs.train(task, tmp_path, *STEPS, f"sync.mode={mode}", stop, workers=2)
        assert result.returncode == 0, result.stderr
    assert runs.resumed_at(tmp_path) == [4, 8]
    assert_alike(tmp_path, whole())


def test_a_killed_run_goes_on_bit_for_bit(task: Task, whole: Whole, tmp_path: Path) -> None:
    run = runs.copy_stopped_at(whole(SHARDED), tmp_path / "run", 8)
    result = runs.train(task, run, *STEPS, SHARDED, workers=2)
    assert result.returncode == 0, result.stderr
    assert runs.resumed_at(run) == [8]
    assert runs.trained(run, 12) == runs.trained(whole(SHARDED), 12)


def test_recomputing_layers_changes_no_bit(task: Task, whole: Whole, tmp_path: Path) -> None:
    result = runs.train(task, tmp_path, *STEPS, SHARDED, "train.recompute=true", workers=2)
    assert result.returncode == 0, result.stderr
    assert runs.trained(tmp_path, 12) == runs.trained(whole(SHARDED), 12)


@pytest.mark.parametrize("ranks", [1, 3])
def test_rows_and_microbatches_need_not_be_shared_evenly(
    task: Task, whole: Whole, tmp_path: Path, ranks: int
) -> None:
    """Three ranks have two, one and one of a step's four microbatches."""
    result = runs.train(task, tmp_path, *STEPS, SHARDED, workers=ranks)
    assert result.returncode == 0, result.stderr
    assert_alike(tmp_path, whole())


def test_two_hosts_of_two_ranks_agree_with_plain_ranks(task: Task, whole: Whole, tmp_path: Path) -> None:
    """Each host has a whole model, half of it on each rank; four microbatches, and each in two parts."""
    row = [(name, tmp_path / name) for name in ("a", "a", "b", "b")]
    result = hosts.train(task, row, *STEPS, SHARDED)
    assert result.returncode == 0, result.stderr
    run = tmp_path / "a" / "run"
    assert_alike(run, whole())
    facts = database.read(RunFolder(run).records).facts
    assert (facts.mode, facts.way.is_hierarchical, facts.rank_hosts) == ("sharded", True, [0, 0, 1, 1])


def test_the_report_knows_how_long_ranks_waited_for_weights_and_gradients(whole: Whole) -> None:
    records = database.read(RunFolder(whole(SHARDED)).records)
    assert (records.phase("exchange", "least") > 0).all()
    assert not records.probes_of("exchange"), "no step can be computed without"
    finding = explain(records)
    assert finding.verdict == "single_machine"
    assert 0 < finding.numbers["exposed_share"] < 1


def test_another_models_weights_are_divided_too(task: Task, whole: Whole, tmp_path: Path) -> None:
    before = RunFolder(whole()).checkpoint(12)
    settings = (*STEPS, "train.steps=1", "train.rate=1e-12", SHARDED)
    result = runs.train(task, tmp_path, *settings, workers=2, extra=["--from", str(before)])
    assert result.returncode == 0, result.stderr
    taken = load_file(RunFolder(tmp_path).checkpoint(1) / "model.safetensors")
    for name, tensor in load_file(before / "model.safetensors").items():
        torch.testing.assert_close(taken[name], tensor, rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize(
    ("sync", "train", "facts"),
    [
        ({"wire": "bf16"}, {}, ["wire", "fp32"]),
        ({"hierarchical": False}, {}, ["hierarchical"]),
        ({"bucket_mb": 5}, {}, ["bucket_mb"]),
        ({}, {"optimizer": "muon"}, ["train.optimizer", "muon", "sync.mode"]),
    ],
)
def test_settings_that_do_not_go_with_shards_are_refused(
    sync: dict[str, object], train: dict[str, object], facts: Sequence[str]
) -> None:
    with pytest.raises(ValueError) as error:
        Training(sync=Sync.model_validate({"mode": "sharded", **sync}), train=Train.model_validate(train))
    assert not lacking(str(error.value), *facts)


def test_hosts_with_different_numbers_of_ranks_are_refused_before_anything_is_written(
    task: Task, tmp_path: Path
) -> None:
    row = [(name, tmp_path / name) for name in ("a", "a", "b")]
    result = hosts.train(task, row, SHARDED)
    assert result.returncode == 1
    assert not lacking(result.stderr, "sync.mode=sharded", "a 2", "b 1")
    assert not list(tmp_path.iterdir())


def test_a_gradient_that_overflows_in_one_part_skips_the_step_on_every_rank(task: Task) -> None:
    """In fp16, whose loss is scaled: only rank 1 has the row that is not finite."""
    plain, sharded = (
        [rank.answers() for rank in ranks.each("tests.train.scaled_ranks", [task.data, task.config, mode], 2)]
        for mode in ("allreduce", "sharded")
    )
    assert sharded[0] == sharded[1]
    assert [step["is_rescaled"] for step in sharded[0]] == [False, True, False]
    assert not any(step["is_bad"] for step in sharded[0])
    for one, other in zip(sharded[0], plain[0], strict=True):
        assert one["scale"] == other["scale"]
        assert (one["loss"], one["weights"]) == pytest.approx((other["loss"], other["weights"]), rel=1e-4)
    first, second, third = (step["weights"] for step in sharded[0])
    assert first == second != third


@pytest.mark.parametrize(("mode", "times"), [("sharded", 0), ("allreduce", 1)])
def test_freed_memory_is_kept_unless_memory_is_scarce(
    task: Task, world: World, monkeypatch: pytest.MonkeyPatch, mode: str, times: int
) -> None:
    kept: list[bool] = []
    monkeypatch.setattr("dragoman.train.memory.keep_freed", lambda: kept.append(True))
    Bench(task.data, task.config, world, f"sync.mode={mode}")
    assert len(kept) == times


def test_out_of_memory_ends_the_run_with_advice_as_other_ranks_are_in_the_middle_of_the_step(
    task: Task, world: World
) -> None:
    bench = Bench(task.data, task.config, world, SHARDED)
    bench.step()
    bench.replace_forward(out_of_memory_above(MOST_ROWS))
    with raising(DragomanError, "--set data.split=2", "--set train.recompute=true"):
        bench.step()


def test_a_torch_that_cannot_time_its_collectives_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    alike = Topology(["a"], [0, 0], ["lo"])
    shards.check(alike)
    monkeypatch.setattr("torch.distributed.fsdp.FSDPModule", object)
    with raising(DragomanError, torch.__version__):
        shards.check(alike)
