"""Real runs for tests: started as a user starts them, watched through their log, killed without mercy."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
import pytest

from dragoman import config
from dragoman.measure import database
from dragoman.rundir import RunFolder
from tests import ranks
from tests.ranks import WAIT_SECONDS, Ended

CONFIG = """
[model]
width = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
feedforward = 64
[data]
step = 512
microbatch = 128
[train]
steps = 48
schedule = "constant"
rate = 0.003
warmup_steps = 4
[evaluate]
every = 16
beam = 1
samples = 1
[checkpoint]
every = 8
keep_last = 100
[measure]
every = 1
"""
# Enough to learn the task, in seconds.
LEARNING = (
    "model.width=64",
    "model.heads=4",
    "model.feedforward=128",
    "model.dropout=0",
    "model.attention_dropout=0",
    "model.feedforward_dropout=0",
    "data.step=1024",
    "data.microbatch=512",
    "train.steps=400",
    "train.schedule=linear",
    "train.rate=0.005",
    "train.warmup_steps=40",
    "evaluate.every=200",
    "checkpoint.every=200",
    "measure.every=50",
)
LAST = 48  # the last step of a run with that config
WORDS = ["red", "blue", "green", "tall", "short", "old", "new", "warm", "cold", "dark"]
DRAGOMAN = [sys.executable, "-m", "dragoman"]


@dataclass(frozen=True)
class Task:
    """A data set to learn from, and settings to do it with."""

    data: Path
    config: Path


def reversed_sentences(pairs: int, seed: int) -> tuple[str, str]:
    """Source text and target text: the words of each sentence the other way round."""
    random = Random(seed)
    rows = [random.choices(WORDS, k=random.randint(2, 8)) for _ in range(pairs)]
    source, target = ([" ".join(row[::way]) + "\n" for row in rows] for way in (1, -1))
    return "".join(source), "".join(target)


def make_task(folder: Path, seed: int = 1, vocabulary_size: int = 64) -> Task:
    folder.mkdir(parents=True)
    for part, pairs in (("train", 3_000), ("dev", 60)):
        for language, text in zip(("en", "de"), reversed_sentences(pairs, seed + pairs), strict=True):
            (folder / f"{part}.{language}").write_text(text)
    (folder / "config.toml").write_text(CONFIG)
    words = [f"en={folder / 'train.en'}", f"de={folder / 'train.de'}", "-o", str(folder / "data")]
    held_out = ["--dev", f"en={folder / 'dev.en'}", "--dev", f"de={folder / 'dev.de'}"]
    size = ["--set", f"vocabulary.size={vocabulary_size}"]
    subprocess.run([*DRAGOMAN, "prepare", *words, *held_out, *size], check=True, capture_output=True)
    return Task(folder / "data", folder / "config.toml")


def arguments(task: Task, run: Path, *settings: str, workers: int | None = None) -> list[str]:
    """The words of `dragoman train ...`."""
    words = ["train", str(task.config), "--data", str(task.data), "--run", str(run)]
    if workers:
        words += ["--workers", str(workers)]
    return words + [word for setting in settings for word in ("--set", setting)]


def train(task: Task, run: Path, *settings: str, workers: int = 1, extra: Sequence[str] = ()) -> Ended:
    """A run from its start to its end, by so many ranks without a launcher."""
    return ranks.run("dragoman", [*arguments(task, run, *settings), *extra], workers)


def killed_after(task: Task, run: Path, step: int, *settings: str, workers: int) -> None:
    """A run whose ranks are all killed, without a word, once a step is in the log."""
    with ranks.started("dragoman", arguments(task, run, *settings), workers) as forks:
        wait_until(f"step {step}", lambda: reached(run, step) or not forks[0].process.is_alive())
        assert reached(run, step), forks[0].err.read_text()
    assert max(steps_in_log(run)) < config.load(config.Training, RunFolder(run).config).train.steps


@contextmanager
def started(words: Sequence[str], **options: object) -> Iterator[subprocess.Popen[str]]:
    """A process under way; whatever is left of it and its children is killed at the end."""
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )  # type: ignore[call-overload]
    try:
        yield process
    finally:
        kill_tree(process.pid)
        process.communicate()


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """The folder as a disk of its own, of so many bytes in mount's words ("8m")."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs needs root and the right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def core_for(workers: int) -> Callable[[], None] | None:
    """A core of its own for a rank alone: two threads that wait for each other crawl on a busy machine."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % len(cores)]
    return (lambda: os.sched_setaffinity(0, {core})) if workers == 1 else None


def started_training(task: Task, run: Path, *settings: str, workers: int = 1, **options: object):  # noqa: ANN201
    words = [*DRAGOMAN, *arguments(task, run, *settings, workers=workers)]
    return started(words, preexec_fn=core_for(workers), **options)


def ranks_of(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def kill_tree(pid: int) -> None:
    """kill -9 of a process and all below it: ranks are in sessions of their own, a group is not enough."""
    try:
        everything = [psutil.Process(pid), *ranks_of(pid)]
    except psutil.NoSuchProcess:
        return
    for process in everything:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(everything, WAIT_SECONDS)


def wait_until(what: str, is_so: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        assert process is None or process.poll() is None, f"ended before: {what}"
        time.sleep(0.01)


def wait_for_step(process: subprocess.Popen[str], run: Path, step: int) -> None:
    wait_until(f"step {step}", lambda: reached(run, step), process)


def reached(run: Path, step: int) -> bool:
    return max(steps_in_log(run), default=0) >= step


def log(run: Path) -> str:
    path = RunFolder(run).log
    return path.read_text() if path.exists() else ""


def steps_in_log(run: Path) -> list[int]:
    return [int(step) for step in re.findall(r"^step (\d+)/", log(run), re.MULTILINE)]


def resumed_at(run: Path) -> list[int]:
    """The step that each attempt after the first went on from."""
    return [attempt.first_step - 1 for attempt in database.read(RunFolder(run).records).attempts[1:]]


def losses(run: Path) -> dict[int, float]:
    """Of each step; of a step made twice, the later one."""
    found = re.findall(r"^step (\d+)/\d+ +loss ([\d.]+)", log(run), re.MULTILINE)
    return {int(step): float(loss) for step, loss in found}


def trained(run: Path, step: int = LAST) -> dict[str, bytes]:
    """What training came to, byte for byte."""
    folder = RunFolder(run).checkpoint(step)
    return {name: (folder / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")}


def copy_stopped_at(run: Path, to: Path, step: int) -> Path:
    """A run as if it had been killed just after this step's checkpoint."""
    shutil.copytree(run, to, symlinks=True)
    folder = RunFolder(to)
    for later in folder.checkpoint_steps():
        if later > step:
            shutil.rmtree(folder.checkpoint(later))
    folder.best.unlink(missing_ok=True)
    return to


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time: to see that nothing was touched."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, **variables}
