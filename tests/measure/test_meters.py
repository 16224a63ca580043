"""What a host's meter says, against bytes that were really sent and the kernel's own clocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from dragoman.measure import meters
from dragoman.measure import phases as phases_module
from dragoman.measure.meters import HostMeter, interface_bytes
from dragoman.measure.phases import BETWEEN_STEPS, GpuPhases, Phases
from dragoman.measure.records import PHASES
from testbed import Cluster
from tests.cards.events import Event
from tests.train.runs import wait_until

pytestmark = pytest.mark.alone  # clocks and cores are looked at
SENT, LOOPED = 20_000_000, 5_000_000
HEADERS = 1.25  # frames are not always full, and loopback counts the acknowledgements as sent, too


@contextmanager
def metered(phases: Phases, interface: str = "lo") -> Iterator[HostMeter]:
    meter = HostMeter(interface, phases)
    try:
        yield meter
    finally:
        meter.close()


@pytest.mark.usefixtures("hosts_are_possible")
def test_bytes_of_each_interface_are_those_that_were_sent() -> None:
    program = [sys.executable, "-m", "tests.measure.metered"]
    with Cluster(hosts=2) as cluster, cluster.popen(1, program, stdout=subprocess.PIPE) as sink:
        assert sink.stdout and sink.stdout.readline() == "ready\n"
        said = cluster.run(0, [*program, cluster.addresses[1], str(SENT), str(LOOPED)]).stdout
        totals = json.loads(said.splitlines()[-1])
        by_kernel = cluster.transferred_bytes(0)
    assert set(totals) == {"eth0", "lo"}
    sent, received = totals["eth0"]
    assert SENT < sent < HEADERS * SENT
    assert received < 0.05 * SENT
    assert (received, sent) == pytest.approx(by_kernel, rel=0.02, abs=5000)
    looped_sent, looped_received = totals["lo"]
    assert LOOPED < looped_sent < HEADERS * LOOPED
    assert looped_received == looped_sent


def busy_and_all(core: int) -> tuple[float, float]:
    """The kernel's own clock of one core: seconds at work, seconds in all."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"cpu{core} "):
            user, nice, system, idle, iowait, *rest = (float(ticks) for ticks in line.split()[1:9])
            return user + nice + system + sum(rest), user + nice + system + idle + iowait + sum(rest)
    raise AssertionError(f"no core {core}")


def test_cpu_is_that_of_every_core() -> None:
    cores, busy_core = os.cpu_count() or 1, max(os.sched_getaffinity(0))
    spin = ["taskset", "-c", str(busy_core), sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(spin) as spinner:
        try:
            before = [busy_and_all(core) for core in range(cores)]
            with metered(Phases()) as meter:
                time.sleep(2.3)
                after = [busy_and_all(core) for core in range(cores)]
                rows = meter.take()["hosts"]
        finally:
            spinner.kill()
    used = np.subtract(after, before)
    shares = used[:, 0] / used[:, 1]
    _, spans, of_all, of_busiest, memory, _, _, _, _, *by_core = rows.T
    assert len(rows) == 2
    assert spans == pytest.approx(1.0, abs=0.3)
    assert of_all.mean() == pytest.approx(shares.mean(), abs=0.15)
    assert by_core[busy_core].mean() > 0.85, "somebody computes on that core all the time"
    assert [core.mean() for core in by_core] == pytest.approx(shares, abs=0.2)
    assert (of_busiest <= 1.0).all() and (of_all <= of_busiest).all()
    assert (memory > 50e6).all() and (memory < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")).all()


def test_a_burst_sample_marks_step_and_phase_at_20_hertz_or_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "_BURST_AFTER", 0.0)
    monkeypatch.setattr(meters, "_BURST_SECONDS", 1.5)
    phases = Phases()
    phases.step = 1  # training has begun
    lens: list[np.ndarray] = []
    with metered(phases) as meter:
        end = time.time() + 15
        while sum(map(len, lens)) < 30 and time.time() < end:
            for name in ("forward", "backward"):  # a step of 0.2 s
                phases.begin(name)
                time.sleep(0.1)
            phases.end_step()
            if len(taken := meter.take()["lens"]):
                lens.append(taken)
    times, sent, received, steps, marks = np.concatenate(lens).T
    assert len(times) / (times[-1] - times[0]) >= 20
    assert (np.diff(times) > 0).all()
    assert (np.diff(sent) >= 0).all() and (np.diff(received) >= 0).all()
    assert sent[-1] <= interface_bytes()["lo"][1], "a counter, not a rate"
    assert (np.diff(steps) >= 0).all() and len(np.unique(steps)) >= 3
    seen = set(marks.astype(int))
    assert {PHASES.index("forward"), PHASES.index("backward")} <= seen
    assert seen <= {PHASES.index("forward"), PHASES.index("backward"), BETWEEN_STEPS}


def test_a_burst_sample_marks_the_phase_that_the_gpu_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "_BURST_SECONDS", 0.1)
    monkeypatch.setattr(phases_module.torch.cuda, "Event", Event)
    Event.now = Event.done = 0.0
    phases = GpuPhases()
    phases.begin("forward")
    Event.now += 1.0
    phases.begin("optimizer")
    Event.done = 0.5  # the card computes the forward pass of a step that the host has left
    phases.end_step()
    with metered(phases) as meter:
        meter._sample_burst()
        places = meter.take()["lens"][:, 3:]
    assert len(places) and (places == [0, PHASES.index("forward")]).all()


def test_rows_are_given_once_and_without_a_step_there_are_no_burst_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meters, "_BURST_AFTER", 0.0)
    with metered(Phases()) as meter:
        wait_until("a row", lambda: len(meter._hosts) >= 1)
        first, second = meter.take(), meter.take()
        assert (len(first["hosts"]), len(second["hosts"])) == (1, 0)
        assert len(first["lens"]) == 0


def test_a_closed_meter_leaves_no_thread_even_of_the_burst_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "_BURST_AFTER", 0.0)
    phases = Phases()
    phases.step = 1
    before = threading.active_count()
    meter = HostMeter("lo", phases)
    wait_until("the lens", lambda: len(meter._burst_samples) > 0)
    began = time.monotonic()
    meter.close()
    assert time.monotonic() - began < 1.0
    assert threading.active_count() == before
    assert meter.cost_seconds < 1.0
    rows = {name: len(values) for name, values in meter.take().items()}
    time.sleep(0.1)
    assert rows["lens"] > 0 and not any(map(len, meter.take().values()))
