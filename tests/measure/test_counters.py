"""What is counted in steps, and only there: this process's own threads and traffic to itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from dragoman.measure.counters import KernelCounters
from dragoman.measure.phases import Phases
from dragoman.measure.records import COUNTED

SENT = 4_000_000


def looped(nbytes: int) -> None:
    """Sends so much over the loopback interface."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as outgoing,
        server.accept()[0] as incoming,
    ):
        for _ in range(nbytes // 100_000):
            outgoing.sendall(bytes(100_000))
            left = 100_000
            while left:
                left -= len(incoming.recv(left))


def spin(seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


def counted(phases: Phases) -> dict[str, float]:
    return dict(zip(COUNTED, phases.counted.tolist(), strict=True))


def test_bytes_between_steps_and_of_probes_are_not_counted() -> None:
    phases = Phases(KernelCounters("lo"))
    looped(SENT)
    phases.begin("data")
    looped(SENT)  # a probe
    phases.discard()
    looped(SENT)
    phases.begin("data")
    phases.begin("exchange")
    looped(SENT)
    phases.end_step()
    seen = counted(phases)
    assert seen["sent_bytes"] == pytest.approx(SENT, rel=0.2)
    assert seen["received_bytes"] == pytest.approx(SENT, rel=0.2)


def test_an_interface_that_is_not_there_is_unknown() -> None:
    phases = Phases(KernelCounters("none0"))
    phases.begin("data")
    phases.end_step()
    assert np.isnan(phases.counted[:2]).all()
    assert np.isnan(Phases().counted).all()


@contextmanager
def on_one_core() -> Iterator[int]:
    before = os.sched_getaffinity(0)
    core = min(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)


def test_a_program_on_the_same_core_is_seen_in_what_a_step_gets_of_it() -> None:
    phases = Phases(KernelCounters())
    with on_one_core(), subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        phases.begin("forward")
        spin(0.6)
        phases.end_step()
        other.kill()
    seen = counted(phases)
    assert seen["sampled"] == pytest.approx(0.6, abs=0.2)
    assert seen["cpu"] + seen["queued"] == pytest.approx(seen["sampled"], rel=0.15)
    assert seen["cpu"] / (seen["cpu"] + seen["queued"]) < 0.75
    phases.begin("exchange")
    time.sleep(0.2)
    phases.end_step()
    assert counted(phases)["cpu"] + counted(phases)["queued"] < 0.1, "a rank that waits wants no core"


def test_short_steps_are_sampled_now_and_then() -> None:
    phases, seconds = Phases(KernelCounters()), []
    for _ in range(60):
        phases.begin("forward")
        spin(0.005)
        phases.end_step()
        seconds.append(counted(phases)["sampled"])
    assert 2 <= np.count_nonzero(seconds) <= 10
