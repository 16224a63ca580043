"""Real out-of-memory kills in a cgroup of their own, by the kernel's log and by its counter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.launch import out_of_memory
from dragoman.launch.out_of_memory import Dmesg, Kills, Log
from tests.facts import lacking
from tests.launch import memory_group


@pytest.mark.parametrize("log", [out_of_memory._kernel_log, Dmesg])
def test_the_kernels_log_names_the_process(log: Callable[[], Log]) -> None:
    if os.geteuid():
        pytest.skip("the kernel's log is for root alone")
    with memory_group.created() as folder:
        kills = Kills(log())
        process = memory_group.glutton(folder)
        assert process.wait() == -signal.SIGKILL
        assert not lacking(kills.told_of(process.pid), f"Killed process {process.pid}", "anon-rss")
        assert kills.told_of(process.pid) == ""  # the next process of that number is another
        assert Kills(log()).told_of(process.pid) == ""


def test_without_a_log_each_counted_kill_explains_one_death() -> None:
    with memory_group.created() as folder:
        command = [sys.executable, "-m", "tests.launch.in_memory_group", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code, told_of_glutton, told_of_killed = json.loads(done.stdout)
    assert (code, bool(told_of_glutton), told_of_killed) == (-signal.SIGKILL, True, "")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/ptmx", "/nothing"])
def test_a_container_without_the_log_gets_no_answer_from_it(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(out_of_memory, "_KMSG", Path(device))
    assert Kills().told_of(os.getpid()) == ""


@pytest.mark.parametrize(
    ("own", "file"),
    [
        ("0::/job/rank\n", "job/rank/memory.events"),
        ("0::/job/rank\n", "memory.events"),  # of a container, which sees its own cgroup as the root
        ("4:memory:/job\n0::/\n", "memory/job/memory.oom_control"),
        ("5:cpu:/other\n4:hugetlb,memory:/docker/1234\n", "memory/memory.oom_control"),
        ("4:cpu:/job\n0::/job\n", "unified/job/memory.events"),
        ("4:cpu:/job\n0::/\n", None),
    ],
)
def test_the_counter_is_that_of_the_own_cgroup(tmp_path: Path, own: str, file: str | None) -> None:
    if file:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    found = out_of_memory.counter_file(own, tmp_path)
    assert found == (tmp_path / file if file else None)
    assert out_of_memory._count(found) == (2 if file else 0)
