"""The task to learn and runs of it, made once and shared by all test processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from dragoman import config
from dragoman.config import Training
from dragoman.data.parallel import cores
from dragoman.rundir import RunFolder
from dragoman.train.job import TrainingJob
from dragoman.train.run import run
from dragoman.train.stopping import StopReason
from tests.train import runs
from tests.train.runs import Task

Made = Callable[[str, Callable[[Path], object]], Path]
Unbroken = Callable[[int], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Made:
    """A folder by name; the first test process that wants it makes it, the others wait."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def get(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                make(folder)
                done.touch()
        return folder

    return get


@pytest.fixture(scope="session")
def task(made_once: Made) -> Task:
    """Sentences to be said backwards."""
    folder = made_once("reverse", runs.make_task)
    return Task(folder / "data", folder / "config.toml")


@pytest.fixture(scope="session")
def unbroken(made_once: Made, task: Task) -> Unbroken:
    """The run of so many ranks that nobody disturbed. Copy it before changing anything in it."""

    def of(ranks: int) -> Path:
        def make(folder: Path) -> None:
            result = runs.train(task, folder, workers=ranks)
            assert result.returncode == 0, result.stderr
            (folder / "stdout").write_text(result.stdout)

        return made_once(f"unbroken-{ranks}", make)

    return of


@pytest.fixture(scope="session")
def learnt(made_once: Made, task: Task) -> Path:
    """A run of two ranks that has learnt its task."""

    def make(folder: Path) -> None:
        result = runs.train(task, folder, *runs.LEARNING, workers=2)
        assert result.returncode == 0, result.stderr

    return made_once("learnt", make)


@pytest.fixture
def world_of_one(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment in which torchrun starts a single rank; signals and threads as before afterwards."""
    for name in ("RANK", "LOCAL_RANK", "MASTER_PORT"):  # port 0: any free one
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(cores()))  # one thread: other tests use the other cores
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    for number, handler in handlers.items():
        signal.signal(number, handler)


class Here:
    """Trains in this process, as a world of one: the same path as a started rank, without the start."""

    def __init__(self, task: Task):
        self.task = task

    def job(
        self, folder: Path, *settings: str, data: Path | None = None, start_from: Path | None = None
    ) -> TrainingJob:
        filled = config.load(Training, self.task.config, settings)
        return TrainingJob(
            filled, data or self.task.data, RunFolder(folder), start_from, "dragoman train ..."
        )

    def train(
        self, folder: Path, *settings: str, data: Path | None = None, start_from: Path | None = None
    ) -> StopReason:
        return run(self.job(folder, *settings, data=data, start_from=start_from))


@pytest.fixture
def here(task: Task, world_of_one: None) -> Here:
    return Here(task)
