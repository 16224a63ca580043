"""Small real trainings for benchmarks and their tests, on this machine or on hosts of the test bed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from benchmarks import turns
from benchmarks.causes import Setting, cores, in_the_way, pinned, switch
from benchmarks.turns import Turn
from dragoman import demo_corpus, orphans
from dragoman.explain.finding import Finding
from dragoman.explain.run import explain
from dragoman.launch import environment as ranks
from dragoman.measure import database
from dragoman.measure.records import Records, Table
from dragoman.rundir import RunFolder
from testbed import Cluster

HERE = Path(__file__).parent
MOST_SECONDS = 300  # of one training
REPORTED_STEPS = 28  # at least, before causes are removed in turns: the report covers these
REPORTED_SECONDS = 8.0  # at least: meters record one row per second
LOOK_SECONDS = 0.1
PYTHON = [sys.executable, "-m"]
OURS = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}  # as our launchers set it for one core
PORT = 29500  # where ranks on several hosts find each other
WORDS = ["red", "blue", "green", "tall", "short", "old", "new", "warm", "cold", "dark"]
HERE_ALONE = Setting()


@dataclass(frozen=True)
class Outcome:
    """Records and findings of a run, up to the first turn without a cause if there was one."""

    records: Records
    findings: Mapping[str, Finding] = field(repr=False)
    # By cause, the share by which steps are shorter without it.
    saved: Mapping[str, float] = field(default_factory=dict)
    came: float | None = None  # Unix time at which the causes started

    def number(self, id: str, name: str) -> float:
        return float(self.findings[id].numbers.get(name, float("nan")))


def explained(
    records: Records, saved: Mapping[str, float] | None = None, came: float | None = None
) -> Outcome:
    return Outcome(records, {finding.id: finding for finding in explain(records)}, saved or {}, came)


def between(records: Records, first: int, last: int) -> Records:
    """The records as they would be if the run had only these steps."""
    steps = records.steps["step"]
    chosen = (steps >= first) & (steps <= last)
    ended = records.steps["ended"][chosen]
    from_time = float(ended[0] - records.steps["seconds"][chosen][0]) if first > 1 else -np.inf

    def part(table: Table, column: str, least: float, most: float) -> Table:
        inside = (table[column] >= least) & (table[column] <= most)
        return {name: values[inside] for name, values in table.items()}

    by_time = ("nics", "hosts", "gpus", "lens", "programs")
    return Records(
        records.facts,
        records.attempts,
        part(records.steps, "step", first, last),
        part(part(records.windows, "first_step", first, last), "last_step", first, last),
        [row for row in records.evaluations if first <= row.step <= last],
        [event for event in records.events if (first == 1 or event.step >= first) and event.step <= last],
        [probe for probe in records.probes if probe.step <= last],
        **{name: part(getattr(records, name), "time", from_time, float(ended[-1])) for name in by_time},
    )


def write_corpus(folder: Path, name: str, pairs: int, dev_pairs: int = 60, vocabulary: int = 2000) -> Path:
    """Write and prepare a data set: `demo` has sentences of the built-in grammar, `reversed` reversed words.

    Paths are relative to the corpus's own folder, so that its card is the same on every machine.
    """
    folder.mkdir(parents=True)
    parts: dict[str, Iterable[tuple[str, str]]]
    if name == "demo":
        parts = {"train": demo_corpus.pairs(pairs), "dev": demo_corpus.held_out(dev_pairs)}
    else:
        parts = {"train": _reversed(pairs, 1), "dev": _reversed(dev_pairs, 2)}
    for part, sentences in parts.items():
        sides = zip(*sentences, strict=True)
        for language, lines in zip(("en", "de"), sides, strict=True):
            (folder / f"{part}.{language}").write_text("".join(f"{line}\n" for line in lines))
    words = ["prepare", "en=train.en", "de=train.de", "--dev", "en=dev.en", "--dev", "de=dev.de"]
    size = ["--set", f"vocabulary.size={vocabulary}", "-o", "data"]
    subprocess.run(
        [*PYTHON, "dragoman", *words, *size],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=MOST_SECONDS,
    )
    return folder / "data"


def _reversed(pairs: int, seed: int) -> Iterator[tuple[str, str]]:
    random = Random(seed)
    for _ in range(pairs):
        sentence = random.choices(WORDS, k=random.randint(2, 8))
        yield " ".join(sentence), " ".join(reversed(sentence))


def train(
    config: Path,
    data: Path,
    folder: Path,
    settings: Sequence[str] = (),
    where: Setting = HERE_ALONE,
    program: str = "hindered.py",
) -> Outcome:
    """Train and explain a run; `settings` are key=value, as for --set.

    If causes are removed in turns, the training is ended after the last turn.
    """
    run = RunFolder(folder)
    folder.mkdir(parents=True)
    hindrances = [f"{hindrance}@{switch(run, hindrance)}" for hindrance in where.hindrances]
    words = [str(HERE / program), *hindrances, *train_words(config, data, folder, settings)]
    delay = where.delay_seconds  # a link that can have a delay costs CPU time
    with ExitStack() as stack:
        if where.hosts:
            cluster = stack.enter_context(Cluster(where.hosts, delay_seconds=delay))
            processes = stack.enter_context(started(cluster, words, run, where))
            wait_for_step(0, run, processes)  # starting under the causes would only take longer
        else:
            cluster, processes = None, [stack.enter_context(_started_here(words, run, where))]
        course = _course(run, where, cluster, processes)
    return outcome_of(database.read(run.records), where, *course)


def train_words(config: Path, data: Path, folder: Path, settings: Sequence[str]) -> list[str]:
    words = ["train", str(config), "--data", str(data), "--run", str(folder)]
    return words + [word for setting in settings for word in ("--set", setting)]


def _course(
    run: RunFolder, where: Setting, cluster: Cluster | None, processes: Sequence[subprocess.Popen[str]]
) -> tuple[float, list[Turn]]:
    """Apply the causes and remove them in turns; returns when they started, and the turns."""
    if where.from_step:
        wait_for_step(where.from_step, run, processes)
    came = time.time()
    with in_the_way(where, run, cluster):
        if not where.reliefs:
            wait(processes, run)
            return came, []
        _wait_until(lambda: _has_reported(run, where, came), processes)
    taken = []
    for cause in (None, *(cause for relieved in where.reliefs for cause in (relieved, None))):
        with in_the_way(where.without(cause) if cause else where, run, cluster):
            taken.append(_turn(cause, run, where, processes))
    if not all(process.poll() is None for process in processes):
        _fail(run, "the training ended before all turns were over")
    return came, taken


def _has_reported(run: RunFolder, where: Setting, came: float) -> bool:
    enough = time.time() - came >= REPORTED_SECONDS
    return enough and last_step(run) >= max(where.reported_from, where.from_step) + REPORTED_STEPS


def _turn(
    relieved: str | None, run: RunFolder, where: Setting, processes: Sequence[subprocess.Popen[str]]
) -> Turn:
    began, steps = time.time(), turns.steps_of_turn(where.period)

    def is_over() -> bool:
        done = steps_since(run, began + turns.SETTLING_SECONDS)
        return done >= steps and time.time() - began >= turns.TURN_SECONDS

    _wait_until(is_over, processes)
    return Turn(relieved, began, time.time())


def outcome_of(records: Records, where: Setting, came: float, taken: Sequence[Turn]) -> Outcome:
    first, last = where.reported_from + 1, int(records.steps["step"].max())
    if taken:
        before = records.steps["ended"] <= taken[0].began
        last = int(records.steps["step"][before].max())
        last -= (last - first + 1) % where.period  # part of a period would miss its checkpoint or exchange
    part = between(records, first, last) if taken or first > 1 else records
    return explained(part, turns.saved(records, taken, where.period), came)


@contextmanager
def _started_here(words: Sequence[str], run: RunFolder, where: Setting) -> Iterator[subprocess.Popen[str]]:
    """Start a run on this machine, each rank on its own core."""
    command = [*pinned(*cores(where.workers)), *PYTHON, "dragoman.launch.ranks", str(where.workers), *words]
    with _output(run.path, 0) as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **OURS},
            start_new_session=True,
            preexec_fn=orphans.end_with_parent,  # also when the bench is killed
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def started(
    cluster: Cluster,
    words: Sequence[str],
    run: RunFolder,
    where: Setting,
    python: str = sys.executable,
    environment: Mapping[str, str] = OURS,
) -> Iterator[list[subprocess.Popen[str]]]:
    """Start ranks on every host, each host on its own core: hosts must not take CPU time from each other."""
    size = where.hosts * where.workers
    with ExitStack() as files:
        processes = []
        for host, core in enumerate(cores(where.hosts)):
            output = files.enter_context(_output(run.path, host))
            for local in range(where.workers):
                place = ranks.place(host * where.workers + local, size, local, where.workers, "h0", PORT)
                processes.append(
                    cluster.popen(
                        host,
                        [*pinned(core), python, *words],
                        env={**environment, **place},
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                )
        yield processes


@contextmanager
def _output(folder: Path, host: int) -> Iterator[int]:
    """A file for output, because nobody reads a pipe while a training runs."""
    with open(folder / f"output-{host}.txt", "w") as file:
        yield file.fileno()


def wait_for_step(step: int, run: RunFolder, processes: Sequence[subprocess.Popen[str]]) -> None:
    """Wait until this step is in the records (0: until there are records), or the training ends."""
    _wait_until(lambda: last_step(run) >= step, processes)


def _wait_until(is_so: Callable[[], bool], processes: Sequence[subprocess.Popen[str]]) -> None:
    ends = time.monotonic() + MOST_SECONDS
    while all(process.poll() is None for process in processes) and time.monotonic() < ends:
        if is_so():
            return
        time.sleep(LOOK_SECONDS)


def last_step(run: RunFolder) -> int:
    """The last step in the records; -1 while the records are being created."""
    return _queried(run, "SELECT coalesce(max(step), 0) FROM steps", otherwise=-1)


def steps_since(run: RunFolder, began: float) -> int:
    """The number of recorded steps that began after this time."""
    return _queried(run, f"SELECT count(*) FROM steps WHERE ended - 1e-6 * seconds_us >= {began!r}")


def _queried(run: RunFolder, query: str, otherwise: int = 0) -> int:
    """One number from the records; reading all of them repeatedly would take CPU time from the training."""
    try:
        with closing(sqlite3.connect(f"file:{run.records}?mode=ro", uri=True)) as records:
            return int(records.execute(query).fetchone()[0])
    except sqlite3.OperationalError:
        return otherwise


def wait(
    processes: Sequence[subprocess.Popen[str]], run: RunFolder, most_seconds: float = MOST_SECONDS
) -> None:
    """Wait until all processes have ended; fails if one did, unless the run diverged, which exits with 1."""
    ends = time.monotonic() + most_seconds
    for process in processes:
        process.wait(timeout=max(1.0, ends - time.monotonic()))
    if any(process.returncode for process in processes) and not _diverged(run):
        _fail(run, "the training failed")


def _fail(run: RunFolder, why: str) -> None:
    output = "\n".join(path.read_text() for path in sorted(run.path.glob("output-*.txt")))
    raise RuntimeError(f"{run.path}: {why}\n{output[-4000:]}")


def _diverged(run: RunFolder) -> bool:
    return run.records.exists() and database.read(run.records).attempts[-1].reason == "diverged"
