"""Why real processes ended, and why others do not answer."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.launch import death
from dragoman.launch.death import Cause, Watch
from tests import hanging
from tests.facts import lacking
from tests.launch import memory_group


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGTERM]
)
def test_a_signal_is_named(number: signal.Signals) -> None:
    watch = Watch()
    process = subprocess.Popen(["sleep", "600"])
    process.send_signal(number)
    assert watch.cause(process.pid, process.wait()) == Cause("killed", number.name)


def test_a_signal_without_a_name_is_given_by_its_number() -> None:
    process = subprocess.Popen(["sleep", "600"])
    process.send_signal(signal.SIGRTMIN + 1)
    kind, detail = Watch().cause(process.pid, process.wait())
    assert (kind, lacking(detail, signal.SIGRTMIN + 1)) == ("killed", [])


@pytest.mark.parametrize("code", [0, 1, 3])
def test_an_exit_code_is_told(code: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])
    kind, detail = Watch().cause(process.pid, process.wait())
    assert (kind, lacking(detail, code)) == ("exception", [])


def test_a_process_killed_for_want_of_memory_is_told_from_one_that_was_just_killed() -> None:
    if os.geteuid():
        pytest.skip("the kernel's log is for root alone")
    watch = Watch()
    with memory_group.created() as folder:
        processes = [memory_group.glutton(folder), subprocess.Popen(["sleep", "600"])]
        processes[0].wait()
        processes[1].kill()
        causes = [watch.cause(process.pid, process.wait()) for process in reversed(processes)]
    assert causes[0] == Cause("killed", "SIGKILL")
    assert (causes[1].kind, lacking(causes[1].detail, processes[0].pid)) == ("out_of_memory", [])


def test_a_stopped_process_is_called_stopped_until_it_is_continued() -> None:
    with hanging.started(hanging.waits_in_c) as process:
        hanging.stop(process.pid)
        cause = death.why_silent(process.pid)
        assert cause and (cause.kind, lacking(cause.detail, "state T")) == ("stopped", [])
        process.send_signal(signal.SIGCONT)
        cause = death.why_silent(process.pid)
        assert cause and cause.kind == "slow_rank"


@pytest.mark.parametrize(
    ("hang", "least", "most"),
    [
        (hanging.waits_in_c, 0.0, 0.05),
        (hanging.keeps_the_gil_in_c, 0.0, 0.05),
        (hanging.computes, 0.1, 1.1),  # the machine may be busy
    ],
)
def test_a_slow_process_is_told_with_the_cores_it_uses(
    hang: Callable[[], None], least: float, most: float
) -> None:
    with hanging.started(hang) as process:
        cause = death.why_silent(process.pid)
    assert cause and cause.kind == "slow_rank"
    assert least <= float(re.findall(r"\d+\.\d+", cause.detail)[0]) <= most


def test_a_process_that_waits_for_a_device_is_said_to(tmp_path: Path) -> None:
    with hanging.waiting_in_the_kernel(tmp_path) as pid:
        cause = death.why_silent(pid)
    assert cause and cause.kind == "slow_rank"
    assert not lacking(cause.detail, "disk", "device") and not re.findall(r"\d", cause.detail)


def test_a_process_that_is_gone_has_no_reason_to_be_silent() -> None:
    process = subprocess.Popen(["sleep", "600"])
    process.kill()
    hanging.until(lambda: death.why_silent(process.pid) is None)  # a zombie
    process.wait()
    assert death.why_silent(process.pid) is None
