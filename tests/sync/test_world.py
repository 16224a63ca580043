"""Joining a world, and leaving it without a trace."""

import gc
import os
import weakref

import pytest
import torch
import torch.distributed as dist

from dragoman.errors import DragomanError
from dragoman.sync import world as worlds
from tests import ranks
from tests.facts import raising


@pytest.mark.usefixtures("world_of_one")
def test_a_world_leaves_no_interface_behind_for_processes_that_start_later() -> None:
    before = dict(os.environ)
    with worlds.join(60):
        assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"
    assert dict(os.environ) == before


@pytest.mark.usefixtures("world_of_one")
def test_an_interface_that_the_user_names_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with worlds.join(60):
        pass
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"


@pytest.mark.usefixtures("world_of_one")
def test_the_group_of_a_world_outlives_it() -> None:
    """Else whoever drops it last, holding Python's lock, may wait for ever for a thread that needs it."""
    with worlds.join(60):
        group = weakref.ref(dist.group.WORLD)
    gc.collect()
    assert group()


def test_texts_of_any_length_reach_every_rank() -> None:
    """The names of 40 interfaces, as a host of containers has them, are longer than a host's name."""
    ended = ranks.run("tests.sync.gather_texts", [], 3)
    assert ended.answers() == [["", "é" * 1_000, "ab"]] * 3


def test_more_ranks_than_gpus_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert worlds._own_gpu(1) == torch.device("cuda", 1)
    with raising(DragomanError, "2 GPUs", "rank 2", "CUDA_VISIBLE_DEVICES"):
        worlds._own_gpu(2)
