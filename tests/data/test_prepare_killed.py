"""A real `dragoman prepare` that is killed, stopped, or started twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from dragoman.data.card import Card
from dragoman.data.store import DataSet

PATIENCE_SECONDS = 60.0


class Preparation:
    """A command that makes `data` in a folder, under way."""

    def __init__(self, words: list[str], folder: Path):
        self._errors = open(folder / "errors.txt", "w+")  # noqa: SIM115
        settings = ["--set", "vocabulary.size=1000"]
        command = [sys.executable, "-m", "dragoman", "prepare", *words, "-o", str(folder / "data"), *settings]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=self._errors, start_new_session=True
        )

    def wait_until(self, is_so: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert self._process.poll() is None, "it ended before"
            assert time.monotonic() < end
            time.sleep(0.01)

    def workers(self) -> list[psutil.Process]:
        children = psutil.Process(self._process.pid).children(recursive=True)
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def interrupt(self) -> None:
        """As a terminal does at Ctrl-C: the whole group hears it."""
        os.killpg(self._process.pid, signal.SIGINT)

    def wait(self) -> tuple[int, str]:
        """Exit code, and what was said on standard error."""
        code = self._process.wait(PATIENCE_SECONDS)
        self._errors.seek(0)
        with self._errors as file:
            return code, file.read()


def is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory, sentences, write) -> list[str]:
    return write(tmp_path_factory.mktemp("corpus"), "train", sentences(25_000))


def test_a_killed_prepare_leaves_nothing_that_looks_finished_and_the_next_continues(
    words: list[str], tmp_path: Path
) -> None:
    began = time.monotonic()
    (tmp_path / "unbroken").mkdir()
    assert Preparation(words, tmp_path / "unbroken").wait()[0] == 0
    whole_seconds = time.monotonic() - began
    unbroken = Card.load(tmp_path / "unbroken" / "data" / "card.json")

    for seconds in (random.uniform(0, whole_seconds) for _ in range(2)):
        killed = Preparation(words, tmp_path)
        time.sleep(seconds)
        killed.kill()
        if (tmp_path / "data").exists():  # killed after the last rename: then it must be whole
            assert DataSet(tmp_path / "data").card.fingerprint == unbroken.fingerprint, seconds
            break
    else:
        cleaned = Preparation(words, tmp_path)
        cleaned.wait_until(lambda: list(tmp_path.glob("data.stages/clean-" + "?" * 16)))
        cleaned.kill()
        assert not (tmp_path / "data").exists()

        code, said = Preparation(words, tmp_path).wait()
        assert (code, "Cleaning" in said) == (0, False), said
    assert DataSet(tmp_path / "data").card.fingerprint == unbroken.fingerprint
    assert {path.name for path in tmp_path.iterdir()} - {"data.stages"} == {"data", "errors.txt", "unbroken"}


def test_the_workers_of_a_killed_prepare_end_and_a_second_prepare_meanwhile_is_refused(
    words: list[str], tmp_path: Path
) -> None:
    first = Preparation(words, tmp_path)
    first.wait_until(lambda: (tmp_path / "data.stages" / "lock").exists() and first.workers())
    (tmp_path / "errors.txt").unlink()
    code, said = Preparation(words, tmp_path).wait()
    assert (code, f"error: {tmp_path / 'data'}: " in said) == (2, True), said
    workers = first.workers()
    first.kill()
    end = time.monotonic() + 10
    while any(map(is_running, workers)):
        assert time.monotonic() < end, "workers without a parent go on"
        time.sleep(0.05)


@pytest.mark.parametrize("moment", ["workers start", "workers clean"])
def test_ctrl_c_ends_it_with_a_word_and_no_traceback(moment: str, words: list[str], tmp_path: Path) -> None:
    stopped = Preparation(words, tmp_path)
    stopped.wait_until(stopped.workers)
    if moment == "workers clean":
        stopped.wait_until(
            lambda: any(path.stat().st_size for path in tmp_path.glob("data.stages/*.unfinished/source.txt"))
        )
    workers = stopped.workers()
    stopped.interrupt()
    code, said = stopped.wait()
    assert code == 1
    assert "Traceback" not in said and "error" not in said
    assert not any(map(is_running, workers))
    assert {path.name for path in tmp_path.iterdir()} == {"errors.txt"}
