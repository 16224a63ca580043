"""Small real trainings for benchmarks and their tests, on this machine or on hosts of the test bed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from dragoman.data import demo
from dragoman.errors import DataError
from dragoman.explain.finding import Finding
from dragoman.explain.run import explain
from dragoman.measure import database
from dragoman.measure.records import Records, Table
from dragoman.rundir import RunFolder
from testbed import Cluster

HERE = Path(__file__).parent
MOST_SECONDS = 300  # of one training
NEVER = 10**9  # a step that is not reached
TURN_STEPS = 10
SETTLING_STEPS = 4  # of a turn: until the change is made, queues are empty and connections up to speed
PYTHON = [sys.executable, "-m"]
OURS = {"OMP_NUM_THREADS": "1"}  # as our launchers set it for one core
WORDS = ["red", "blue", "green", "tall", "short", "old", "new", "warm", "cold", "dark"]


@dataclass(frozen=True)
class Setting:
    """Where a training runs, and what is in its way."""

    workers: int = 1  # on each host; on this machine, if `hosts` is 0
    hosts: int = 0  # of the test bed, with one core each
    rate: str | None = None  # of their links
    slow_host: float | None = None  # the last host gets this share of a core
    busy_neighbour: bool = False  # another program computes on the last host's core
    traffic: str | None = None  # another program sends from the first host to the second
    relief_step: int = 0  # from which on what is in the hosts' way is there only by turns; 0 is never
    turns: int = 6  # free, hindered, free, ...
    hindrances: tuple[str, ...] = ()  # of hindered.py

    @property
    def steps(self) -> int:
        """That such a training needs for its turns, and a few more."""
        return self.relief_step + self.turns * TURN_STEPS + 5


HERE_ALONE = Setting()


@dataclass(frozen=True)
class Outcome:
    """What was recorded and found, up to the first relief if there was one."""

    records: Records
    findings: Mapping[str, Finding] = field(repr=False)
    saved: float | None = None  # the share by which steps were shorter while the cause was away

    def number(self, id: str, name: str) -> float:
        return float(self.findings[id].numbers.get(name, float("nan")))


def explained(records: Records, saved: float | None = None) -> Outcome:
    return Outcome(records, {finding.id: finding for finding in explain(records)}, saved)


def until(records: Records, step: int) -> Records:
    """As they would be if the run had ended after that step."""
    ended = float(records.steps["ended"][records.steps["step"] == step][0])

    def early(table: Table, column: str, last: float) -> Table:
        chosen = table[column] <= last
        return {name: values[chosen] for name, values in table.items()}

    return Records(
        records.facts,
        records.attempts,
        early(records.steps, "step", step),
        early(records.windows, "last_step", step),
        [row for row in records.evaluations if row.step <= step],
        [event for event in records.events if event.step <= step],
        [probe for probe in records.probes if probe.step <= step],
        **{
            name: early(getattr(records, name), "time", ended)
            for name in ("nics", "hosts", "gpus", "lens", "programs")
        },
    )


def write_corpus(folder: Path, name: str, pairs: int, dev_pairs: int = 60, vocabulary: int = 2000) -> Path:
    """A prepared data set: `demo` has sentences of the built-in grammar, `reversed` words said backwards.

    Paths are given as the corpus's own folder sees them, so that its card is the same on every machine.
    """
    folder.mkdir(parents=True)
    parts: dict[str, Iterable[tuple[str, str]]]
    if name == "demo":
        parts = {"train": demo.pairs(pairs), "dev": demo.held_out(dev_pairs)}
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
    """Trains to the end and explains. `settings` are key=value, as for --set."""
    run = RunFolder(folder)
    folder.mkdir(parents=True)
    words = [str(HERE / program), *where.hindrances, *train_words(config, data, folder, settings)]
    (_on_hosts if where.hosts else _here)(words, run, where)
    return outcome_of(database.read(run.records), where)


def train_words(config: Path, data: Path, folder: Path, settings: Sequence[str]) -> list[str]:
    words = ["train", str(config), "--data", str(data), "--run", str(folder)]
    return words + [word for setting in settings for word in ("--set", setting)]


def outcome_of(records: Records, where: Setting) -> Outcome:
    if not where.relief_step:
        return explained(records)
    return explained(until(records, where.relief_step), _saved(records, where))


def _saved(records: Records, where: Setting) -> float:
    """Free turns against the hindered ones that follow them, the middle one of these pairs.

    By turns, as the speed of the machine itself changes from minute to minute.
    """
    medians = []
    for turn in range(where.turns):
        last = where.relief_step + (turn + 1) * TURN_STEPS
        chosen = np.isin(records.steps["step"], range(last - TURN_STEPS + SETTLING_STEPS + 1, last + 1))
        medians.append(float(np.median(records.steps["seconds"][chosen])))
    pairs = zip(medians[::2], medians[1::2], strict=True)
    return float(np.median([1 - free / hindered for free, hindered in pairs]))


def _here(words: Sequence[str], run: RunFolder, where: Setting) -> None:
    cores = sorted(os.sched_getaffinity(0))[: where.workers]
    command = ["taskset", "-c", ",".join(map(str, cores)), *PYTHON, "dragoman.launch.ranks"]
    command += [str(where.workers), *words]
    environment = {**os.environ, **OURS}
    with _output(run.path, 0) as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )
        try:
            wait([process], run)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _on_hosts(words: Sequence[str], run: RunFolder, where: Setting) -> None:
    with (
        Cluster(where.hosts, where.rate) as cluster,
        started(cluster, ["--", *words], run, where) as processes,
    ):
        wait_for_step(0, run, processes)  # being slow from the start would only take longer
        with _hindered(cluster, where):
            wait_for_step(where.relief_step or NEVER, run, processes)
        for turn in range(where.turns):
            with nullcontext() if turn % 2 == 0 else _hindered(cluster, where):
                wait_for_step(where.relief_step + (turn + 1) * TURN_STEPS, run, processes)
        wait(processes, run)


@contextmanager
def started(
    cluster: Cluster,
    words: Sequence[str],
    run: RunFolder,
    where: Setting,
    python: str = sys.executable,
    environment: Mapping[str, str] = OURS,
) -> Iterator[list[subprocess.Popen[str]]]:
    """torchrun on every host, each on a core of its own: hosts must not take computing from each other."""
    meeting = ["--nnodes", str(where.hosts), f"--nproc-per-node={where.workers}"]
    meeting += ["--master-addr=h0", "--master-port=29500"]
    with ExitStack() as files:
        processes = []
        for host in range(where.hosts):
            torchrun = [python, "-m", "torch.distributed.run", *meeting, f"--node-rank={host}"]
            output = files.enter_context(_output(run.path, host))
            processes.append(
                cluster.popen(
                    host,
                    [*_pin(host), *torchrun, *words],
                    env=environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
        yield processes


def _pin(host: int) -> list[str]:
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[host % len(cores)])]


@contextmanager
def _hindered(cluster: Cluster, where: Setting) -> Iterator[None]:
    last = where.hosts - 1
    with ExitStack() as causes:
        if where.rate:
            cluster.rate(where.rate)
            causes.callback(cluster.rate, None)
        if where.slow_host:
            cluster.slow(last, where.slow_host)
            causes.callback(cluster.slow, last, None)
        if where.busy_neighbour:
            neighbour = cluster.popen(last, [*_pin(last), sys.executable, "-c", "while True: pass"])
            causes.callback(neighbour.kill)
        if where.traffic:
            causes.enter_context(cluster.traffic(0, 1, where.traffic))
        yield


@contextmanager
def _output(folder: Path, host: int) -> Iterator[int]:
    """A file, as nobody reads a pipe while a training runs."""
    with open(folder / f"said-{host}.txt", "w") as file:
        yield file.fileno()


def wait_for_step(step: int, run: RunFolder, processes: Sequence[subprocess.Popen[str]]) -> None:
    """Until that step stands in the records (0: until there are records), or the training ends."""
    ends = time.monotonic() + MOST_SECONDS
    while all(process.poll() is None for process in processes) and time.monotonic() < ends:
        if last_step(run) >= step:
            return
        time.sleep(0.1)


def last_step(run: RunFolder) -> int:
    """-1 while the records are being created."""
    try:
        steps = database.read(run.records).steps["step"]
    except DataError:
        return -1
    return int(steps.max()) if len(steps) else 0


def wait(
    processes: Sequence[subprocess.Popen[str]], run: RunFolder, most_seconds: float = MOST_SECONDS
) -> None:
    """Until all have ended well; a run that diverged ends with 1, which is what it should do."""
    ends = time.monotonic() + most_seconds
    for process in processes:
        process.wait(timeout=max(1.0, ends - time.monotonic()))
    if any(process.returncode for process in processes) and not _diverged(run):
        said = "\n".join(path.read_text() for path in sorted(run.path.glob("said-*.txt")))
        raise RuntimeError(f"{run.path}: the training failed\n{said[-4000:]}")


def _diverged(run: RunFolder) -> bool:
    return run.records.exists() and database.read(run.records).attempts[-1].reason == "diverged"
