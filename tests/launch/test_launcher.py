"""RUN/launcher.json: who trains a run, told by a file that may be old, damaged or hostile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import RecordsError, UsageError
from dragoman.launch import detached, launcher
from dragoman.launch.launcher import Launcher
from dragoman.rundir import RunFolder
from tests.facts import raising

# Its command line holds our name, as every launcher's does.
SLEEPER = [sys.executable, "-c", "import time; time.sleep(300)", "dragoman"]


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEPER) as sleeper:
        yield sleeper
        sleeper.kill()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.make()
    return folder


def living(process: subprocess.Popen[bytes], **changes: Any) -> Launcher:
    return Launcher.of_process(process.pid, "dragoman train ...", "digest").model_copy(update=changes)


def put(folder: RunFolder, known: Launcher) -> None:
    folder.launcher.write_text(known.model_dump_json())


def told(folder: RunFolder) -> dict[str, Any] | None:
    return launcher.living_launcher(str(folder.path))


def test_a_launcher_lives_until_it_has_ended_even_if_nobody_waited_for_it(
    process: subprocess.Popen[bytes], folder: RunFolder
) -> None:
    put(folder, living(process))
    assert told(folder) and launcher.read(folder) == living(process)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert told(folder) is None


def test_a_process_of_another_program_or_of_another_start_is_none(
    process: subprocess.Popen[bytes], folder: RunFolder
) -> None:
    known = living(process)
    for other in (
        known.model_copy(update={"since_boot_seconds": known.since_boot_seconds + 1}),
        known.model_copy(update={"host": "elsewhere.invalid"}),
        known.model_copy(update={"agent_pid": process.pid}),
    ):
        put(folder, other)
        assert told(folder) is None
        assert not other.is_here or not launcher.stop_launcher(str(folder.path), other.pid)
    with subprocess.Popen(["sleep", "300"]) as stranger:
        put(folder, Launcher.of_process(stranger.pid, "", ""))
        assert told(folder) is None and not launcher.stop_launcher(str(folder.path), stranger.pid)
        assert stranger.poll() is None
        stranger.kill()
    assert process.poll() is None


def test_a_launcher_that_lives_keeps_its_file(process: subprocess.Popen[bytes], folder: RunFolder) -> None:
    put(folder, living(process))
    before = folder.launcher.read_bytes()
    with raising(UsageError, f"{folder.path}:", process.pid):
        launcher.run_registered(folder, Launcher.of_process(os.getpid(), "", ""), lambda own: 0)
    with raising(UsageError, f"{folder.path}:", process.pid):
        launcher.start(["--version"], folder, "", "")
    launcher.note_on_host(folder, living(process, pid=process.pid + 1, host="elsewhere").model_dump())
    assert folder.launcher.read_bytes() == before
    assert not folder.output.exists()


def test_the_exit_code_is_noted_also_of_an_error(folder: RunFolder) -> None:
    def fail(own: Launcher) -> int:
        raise UsageError("wrong")

    own = Launcher.of_process(os.getpid(), "", "")
    assert launcher.run_registered(folder, own, lambda own: 3) == 3
    assert (known := launcher.read(folder)) and known.exit_code == 3
    with raising(UsageError):
        launcher.run_registered(folder, own, fail)
    assert (known := launcher.read(folder)) and known.exit_code == 2
    assert folder.launcher.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content", ["", "[]", '{"host": "a"}', '{"host": "a", "pid": 0, "since_boot_seconds": 1}', "\xff"]
)
def test_a_damaged_file_is_named(content: str, folder: RunFolder) -> None:
    folder.launcher.write_text(content, encoding="latin-1")
    with raising(RecordsError, f"{folder.launcher}:"):
        launcher.read(folder)


def test_a_host_in_the_file_can_be_no_option_of_ssh(
    process: subprocess.Popen[bytes], folder: RunFolder
) -> None:
    put(folder, living(process, host="-oProxyCommand=touch${IFS}here"))
    with raising(RecordsError, f"{folder.launcher}:"):
        detached.stop(folder.path, "")


def news(folder: RunFolder, pid: int, offset: int) -> tuple[list[str], int, bool]:
    found = launcher.launcher_news(str(folder.path), pid, offset)
    return found["lines"], found["offset"], found["is_alive"]


def test_output_comes_in_whole_lines_while_the_launcher_lives_and_completely_afterwards(
    process: subprocess.Popen[bytes], folder: RunFolder
) -> None:
    folder.output.write_text("earlier run\n")
    put(folder, living(process, is_detached=True, output_start=12))
    assert news(folder, process.pid, -1) == ([], 12, True)
    with folder.output.open("a") as file:
        file.write("one\n\ntwo\nhal")
    assert news(folder, process.pid, -1) == (["one", "", "two"], 21, True)
    assert news(folder, process.pid, 21) == ([], 21, True)
    process.kill()
    process.wait()
    assert news(folder, process.pid, 21) == (["hal"], 24, False)
    assert news(folder, process.pid, 24) == ([], 24, False)
    assert news(folder, process.pid + 1, 12) == ([], 12, False)  # another launcher's


def test_long_output_is_told_piece_by_piece_and_nothing_is_lost(
    process: subprocess.Popen[bytes], folder: RunFolder
) -> None:
    written = [f"{number} " + "ä" * (number % 50) for number in range(5000)]
    folder.output.write_text("\n".join([*written, "x" * 200_000]))
    put(folder, living(process, is_detached=True))
    assert news(folder, process.pid, -1)[1] > 0
    process.kill()
    process.wait()
    lines: list[str] = []
    offset, pieces = 0, 0
    while (found := news(folder, process.pid, offset))[0]:
        lines, offset, pieces = lines + found[0], found[1], pieces + 1
    assert pieces > 2 and offset == folder.output.stat().st_size
    assert lines[:5000] == written and "".join(lines[5000:]) == "x" * 200_000


def test_the_last_lines_are_at_most_twenty(process: subprocess.Popen[bytes], folder: RunFolder) -> None:
    folder.output.write_text("".join(f"{number}\n" for number in range(50)))
    put(folder, living(process, is_detached=True))
    assert news(folder, process.pid, -1)[0] == [str(number) for number in range(30, 50)]
