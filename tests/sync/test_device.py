"""The device of each rank: what they can agree on, and what is refused, and why."""

from __future__ import annotations

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.sync import device
from dragoman.sync.device import Offer, refusal
from tests.cards import pretend
from tests.facts import lacking


def has(host: str, uuid: str, gpus: int = 2, number: int = 0) -> Offer:
    return Offer(host=host, local_rank=number, gpus=gpus, gpu=number, uuid=uuid)


def has_none(host: str, why: str = "torch finds none", gpus: int = 0, local_rank: int = 0) -> Offer:
    return Offer(host=host, local_rank=local_rank, gpus=gpus, lacking=why)


def error(*offers: Offer) -> DragomanError:
    refused = refusal(offers)
    assert refused
    return refused


def test_gpus_everywhere_or_nowhere_are_fine() -> None:
    assert not refusal([has("a", "1"), has("a", "2", number=1), has("b", "3"), has("b", "4", number=1)])
    assert not refusal([has_none("a"), has_none("b")])


def test_hosts_without_a_gpu_are_named_with_the_reason_and_those_with_one_are_not_blamed() -> None:
    refused = error(has("a", "1"), has_none("b", "no CUDA"), has("c", "3"), has_none("d", "no driver"))
    assert not lacking(refused.what, "b (no CUDA)", "d (no driver)", "a")
    assert lacking(refused.what, "c") == ["c"]
    assert "dragoman doctor" in refused.hint


def test_the_names_of_many_hosts_make_no_wall_of_text() -> None:
    refused = error(has("a", "1"), *(has_none(f"host{number}") for number in range(60)))
    assert len(refused.what) < 300


def test_ranks_of_one_host_that_have_the_same_gpu_are_refused() -> None:
    refused = error(has("a", "GPU-7", gpus=1), has("a", "GPU-7", gpus=1))
    assert not lacking(refused.what, "rank 0", "rank 1", "GPU-7")
    assert not lacking(refused.hint, "--gpus-per-task=1")


def test_a_rank_whose_gpu_fails_is_named_with_what_the_driver_said() -> None:
    refused = error(has("a", "1"), has_none("b", "CUDA error: device busy", gpus=2, local_rank=1))
    assert not lacking(refused.what, "rank 1", "b", "CUDA error: device busy")


@pytest.fixture
def see(monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201
    """Lets this process see these GPUs."""

    def gpus(*uuids: str, **others: object) -> None:
        for name, answer in (pretend.answers(uuids) | others).items():
            monkeypatch.setattr(torch.cuda, name, answer)

    return gpus


@pytest.mark.parametrize(
    ("uuids", "local_rank", "number", "uuid"),
    [(["x", "y"], 0, 0, "x"), (["x", "y"], 1, 1, "y"), (["x"], 0, 0, "x"), (["x"], 3, 0, "x")],
    ids=["first of two", "second of two", "alone", "srun shows each task its own"],
)
def test_a_rank_takes_the_gpu_of_its_number_or_the_only_one_it_sees(
    uuids: list[str],
    local_rank: int,
    number: int,
    uuid: str,
    see,  # noqa: ANN001
) -> None:
    see(*uuids)
    offer = device._offer(local_rank)
    assert (offer.gpu, offer.uuid, offer.lacking) == (number, uuid, "")


def test_the_refusal_of_a_rank_beyond_the_last_gpu_says_how_many_there_are(see) -> None:  # noqa: ANN001
    see("x", "y")
    assert not lacking(error(has("h", "x"), has("h", "y", number=1), device._offer(2)).what, "rank 2", 2)


def test_a_gpu_that_fails_when_it_is_used_is_no_gpu(see) -> None:  # noqa: ANN001
    def busy(number: object) -> None:
        raise RuntimeError("CUDA error: all CUDA-capable devices are busy\nCompile with ...")

    see("x", set_device=busy)
    offer = device._offer(0)
    assert (offer.gpu, offer.lacking) == (None, "CUDA error: all CUDA-capable devices are busy")


def test_a_cpu_build_of_torch_is_told_apart_from_a_missing_driver(
    see,  # noqa: ANN001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    see()
    without_cuda = device._offer(0)
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    without_driver = device._offer(0)
    assert not without_cuda.gpus and not without_driver.gpus
    assert "CUDA" in without_cuda.lacking and "CUDA" not in without_driver.lacking
