"""Joining a world, and leaving it without a trace."""

import gc
import os
import weakref

import pytest
import torch.distributed as dist

from dragoman.sync import world as worlds
from tests import ranks


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


@pytest.mark.parametrize(
    ("named", "of_gloo", "of_nccl"),
    [
        ({}, "lo", "=lo"),
        ({"GLOO_SOCKET_IFNAME": "eth7"}, "eth7", "=eth7"),
        ({"NCCL_SOCKET_IFNAME": "eth"}, "lo", "eth"),
        ({"GLOO_SOCKET_IFNAME": "eth7", "NCCL_SOCKET_IFNAME": "^docker"}, "eth7", "^docker"),
    ],
)
def test_gloo_and_nccl_get_one_interface_unless_the_user_named_others(
    named: dict[str, str], of_gloo: str, of_nccl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    with worlds._one_interface("lo"):
        assert (os.environ["GLOO_SOCKET_IFNAME"], os.environ["NCCL_SOCKET_IFNAME"]) == (of_gloo, of_nccl)
    assert {name: os.environ[name] for name in os.environ if name.endswith("SOCKET_IFNAME")} == named


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
