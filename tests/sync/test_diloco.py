"""Replicas that meet, against the arithmetic of it."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.optim import SGD

from dragoman.config import Sync
from dragoman.sync import diloco
from tests import ranks
from tests.sync import diloco_ranks
from tests.sync.diloco_ranks import ROUNDS, SETTINGS, TOPOLOGY, model, moves


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diloco")
    result = ranks.run(diloco_ranks.__name__, [folder], 3)
    assert result.returncode == 0, result.stderr
    return folder


def weights(folder: Path, name: str, rank: int) -> torch.Tensor:
    tensors = load_file(folder / f"{name}-{rank}.safetensors")
    return torch.cat([tensors[key].flatten() for key in sorted(tensors)])


def expected(replicas: int, rate: float, momentum: float) -> torch.Tensor:
    """By torch's own optimizer, with the mean way of the replicas as gradient."""
    made = model()
    outer = SGD(made.parameters(), lr=rate, momentum=momentum, nesterov=momentum > 0)
    for number in range(ROUNDS):
        ways = zip(*(moves(replica, number, made) for replica in range(replicas)), strict=True)
        for parameter, each in zip(made.parameters(), ways, strict=True):
            parameter.grad = -torch.stack(each).mean(0)
        outer.step()
    tensors = dict(made.named_parameters())
    return torch.cat([tensors[key].detach().flatten() for key in sorted(tensors)])


@pytest.mark.parametrize("name", SETTINGS)
def test_replicas_end_a_round_with_identical_weights(met: Path, name: str) -> None:
    for rank in (1, 2):
        assert torch.equal(weights(met, name, rank), weights(met, name, 0))


def test_rate_1_without_momentum_is_plain_averaging(met: Path) -> None:
    assert torch.allclose(weights(met, "averaging", 0), expected(3, 1.0, 0.0), atol=1e-5)


def test_the_outer_step_is_nesterov_momentum_on_the_mean_way(met: Path) -> None:
    assert torch.allclose(weights(met, "nesterov", 0), expected(3, 0.7, 0.9), atol=1e-5)


def test_bf16_on_the_wire_stays_within_its_rounding(met: Path) -> None:
    difference = (weights(met, "bf16", 0) - expected(3, 0.7, 0.9)).abs()
    assert 0 < difference.max() < 0.1  # of ways as large as 4 in each of 3 rounds, of 8 bits
    assert difference.mean() < 0.01


def test_hosts_as_replicas_count_alike_whatever_their_number_of_ranks(met: Path) -> None:
    assert torch.allclose(weights(met, "hosts", 0), expected(2, 0.7, 0.9), atol=1e-5)


def test_a_replica_is_a_rank_or_a_host() -> None:
    assert diloco.replicas(Sync(mode="diloco"), TOPOLOGY) == [0, 1, 2]
    assert diloco.replicas(Sync(mode="diloco", hierarchical=True), TOPOLOGY) == [0, 0, 1]
    assert diloco.replicas(Sync(), TOPOLOGY) == []
