"""Ranks that lack the newest state take it from those that have it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests import ranks
from tests.ranks import Ended
from tests.train.handover_ranks import STEPS
from tests.train.runs import Task


def handed_over(task: Task, folder: Path, case: str) -> list[Ended]:
    words = [task.data, task.config, folder, case]
    ended = ranks.each("tests.train.handover_ranks", words, 2)
    for rank in ended:
        assert rank.returncode == 0, rank.stderr
    return ended


def kept(folder: Path, when: str, rank: int) -> dict[str, Tensor]:
    return load_file(folder / f"{when}-{rank}.safetensors")


def assert_identical(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


@pytest.mark.parametrize("case", ["one behind", "newcomer"])
def test_what_a_rank_lacks_it_takes_bit_for_bit_and_no_update_is_made_twice(
    task: Task, tmp_path: Path, case: str
) -> None:
    first, second = handed_over(task, tmp_path, case)
    assert first.stdout == second.stdout
    assert first.stdout.startswith(f"{STEPS + 1} ") and first.stdout.endswith("True\n")
    lacking, having = kept(tmp_path, "before", 0), kept(tmp_path, "before", 1)
    if case == "one behind":
        name = next(name for name in having if name.startswith("moments.exp_avg."))
        assert not torch.equal(lacking[name], having[name])
        assert (lacking["step"], having["step"]) == (STEPS, STEPS + 1)
    else:
        assert lacking == {}
    for rank in (0, 1):
        assert_identical(kept(tmp_path, "after", rank), having)


def test_a_newcomer_gets_the_round_of_diloco_too(task: Task, tmp_path: Path) -> None:
    handed_over(task, tmp_path, "diloco")
    having = kept(tmp_path, "before", 1)
    assert "round start" in having
    momentum = [tensor for name, tensor in having.items() if name.startswith("outer.")]
    assert any(tensor.abs().max() > 0 for tensor in momentum)
    for rank in (0, 1):
        assert_identical(kept(tmp_path, "after", rank), having)


def test_if_nobody_has_a_state_there_is_nothing_to_hand_over(task: Task, tmp_path: Path) -> None:
    assert {rank.stdout for rank in handed_over(task, tmp_path, "nobody")} == {"nobody\n"}
