"""sync/silence.py: the first ranks of hosts hear each other through a store, and tell who is silent."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist

from dragoman.sync import silence
from tests.facts import lacking


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[[], dist.TCPStore]:
    """A connection to a store, for hosts that count every 20 ms and are silent after half a second."""
    monkeypatch.setattr(silence, "_BEAT_SECONDS", 0.02)
    monkeypatch.setattr(silence, "SILENT_SECONDS", 0.5)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    return lambda: dist.TCPStore("127.0.0.1", store.port, is_master=False, wait_for_workers=False)


def placement(host: int, connect: Callable[[], dist.TCPStore], is_leader: bool = True) -> Any:
    world = SimpleNamespace(connect_to_store=connect, timeout_seconds=600.0)
    topology = SimpleNamespace(hosts=["h0", "h1"])
    return SimpleNamespace(host=host, is_leader=is_leader, world=world, topology=topology)


def next_line(lines: list[str], known: int) -> str:
    until = time.monotonic() + 30
    while len(lines) == known and time.monotonic() < until:
        time.sleep(0.05)
    return lines[known]


def test_a_silent_host_is_reported_once_and_so_is_its_return(connect: Callable[[], dist.TCPStore]) -> None:
    lines: list[str] = []
    with silence.told(placement(0, connect), lines.append):
        with silence.told(placement(1, connect), lines.append):
            time.sleep(2.5)
            assert lines == []
        assert not lacking(next_line(lines, 0), "h1", "10 min")
        time.sleep(1.5)
        assert len(lines) == 1
        with silence.told(placement(1, connect), lines.append):
            assert not lacking(next_line(lines, 1), "h1")
        assert lines[1] == silence.answers_again("h1")


def test_a_rank_that_is_not_its_hosts_first_neither_counts_nor_tells(
    connect: Callable[[], dist.TCPStore],
) -> None:
    lines: list[str] = []
    with silence.told(placement(1, connect, is_leader=False), lines.append):
        time.sleep(1.5)
    assert lines == []
