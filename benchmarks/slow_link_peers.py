"""Compares other trainers with our ways of exchanging gradients over a slow network between two hosts.

    python -m venv HF && HF/bin/pip install torch==2.13.0 transformers==5.22.2 accelerate==1.15.0
    python -m venv SOCKEYE && SOCKEYE/bin/pip install torch==2.13.0 numpy pyyaml sacrebleu
    SOCKEYE/bin/pip install --no-deps sockeye==3.1.34    # it requires an older torch
    python benchmarks/slow_link_peers.py --accelerate-python HF/bin/python \\
        --sockeye-python SOCKEYE/bin/python [--repeat 3]

A peer without an interpreter is left out. Model, vocabulary, sentences, target tokens per step, cores and
link are those of slow_link.py with one worker per host. Peers keep their default memory and exchange
settings; "accelerate fp16" is accelerate's own hook that halves the bytes, "accelerate local" its LocalSGD.
Every way trains on the slow link and right afterwards without a limit, and the ways alternate. Seconds per
step are the median of settled steps; for diloco and LocalSGD the mean over whole rounds. Needs root. Results
are appended to slow_link_peers.jsonl.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.causes import Setting
from benchmarks.peers.task import Task
from benchmarks.slow_link import (
    INNER_STEPS,
    MODEL,
    MOST_SECONDS,
    SETTLED,
    WAYS,
    Bench,
    Way,
    keep_row,
    slow_rate,
    spread,
)
from benchmarks.trainings import HERE, started, wait
from dragoman.config import Model
from dragoman.data.store import SIDES, DataSet
from dragoman.rundir import RunFolder
from testbed import Cluster, why_not

OUR_WAYS = ("plain", "bf16", "diloco")
TOKENS = 512  # target tokens per rank and step
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}


@dataclass(frozen=True)
class Measured:
    step_seconds: float
    parameters: int
    target_tokens: float  # per step: on rank 0 of a peer, the mean over our ranks


@dataclass(frozen=True)
class Row:
    way: str
    repetition: int
    rate: str
    slow: Measured
    free: Measured  # without the limit


@dataclass(frozen=True)
class Peer:
    """A program in peers/, with the words added to its command line."""

    python: str
    program: str
    words: tuple[str, ...] = ()
    exchange_every: int = 1

    @property
    def steps(self) -> int:
        return SETTLED + 12 if self.exchange_every == 1 else 3 * self.exchange_every

    def command(self, task: Path, *words: str) -> list[str]:
        return [str(HERE / "peers" / self.program), str(task), *words, *self.words]

    def measured(self, task: Path, folder: Path, rate: str | None) -> Measured:
        """Run one training on two hosts."""
        run = RunFolder(folder / str(time.time_ns()))
        run.path.mkdir(parents=True)
        clock, where = run.path / "clock.json", Setting(1, 2, rate)
        words = self.command(task, str(clock), str(self.steps))
        with (
            Cluster(where.hosts, where.rate) as cluster,
            started(cluster, words, run, where, self.python, ENVIRONMENT) as processes,
        ):
            wait(processes, run, MOST_SECONDS)
        times = json.loads(clock.read_text())
        settled = SETTLED if self.exchange_every == 1 else self.exchange_every
        seconds = np.diff(times["ended"])[settled - 1 :]
        typical = np.median(seconds) if self.exchange_every == 1 else np.mean(seconds)
        return Measured(float(typical), times["parameters"], float(np.mean(times["target_tokens"][settled:])))


def measured_ours(bench: Bench, way: Way, rate: str) -> Measured:
    timed = bench.timed(way, 1, rate)
    records = timed.outcome.records
    chosen = records.steps["step"] > SETTLED
    if records.facts.exchange_every == 1:
        seconds = float(np.median(records.steps["seconds"][chosen]))
    else:
        seconds = timed.step_seconds  # one step of each round is long, so only whole rounds count
    tokens = float(records.steps["target_tokens"][chosen].mean()) / len(records.facts.rank_hosts)
    return Measured(seconds, records.facts.parameters or 0, tokens)


def write_task(data: Path, folder: Path) -> Path:
    """Write our sentences as token ids, so that every trainer has the same tokens."""
    folder.mkdir()
    data_set = DataSet(data)
    for part in ("train", "dev"):
        for side in SIDES:
            tokens, lengths = getattr(data_set.parts[part], side).take(np.arange(len(data_set.parts[part])))
            rows = [row[:-1] for row in np.split(tokens, np.cumsum(lengths)[:-1])]  # peers add their own EOS
            text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
            (folder / f"{part}.{side}").write_text(text)
    sections = tomllib.loads(MODEL.format(tokens=2 * TOKENS, microbatch=TOKENS))
    file = folder / "task.json"
    vocabulary, rate = len(data_set.tokenizer), sections["train"]["rate"]
    Task(folder, vocabulary, TOKENS, sections["model"], rate, Model().dropout).save(file)
    return file


def peers_of(arguments: argparse.Namespace) -> dict[str, Peer]:
    peers = {}
    if python := arguments.accelerate_python:
        peers["accelerate"] = Peer(python, "accelerated.py")
        peers["accelerate fp16"] = Peer(python, "accelerated.py", ("fp16",))
        peers["accelerate local"] = Peer(python, "accelerated.py", ("local",), exchange_every=INNER_STEPS)
    if python := arguments.sockeye_python:
        peers["sockeye"] = Peer(python, "sockeyed.py")
    for name in ("accelerate", "sockeye"):
        if name not in peers:
            print(f"{name} is left out; to include it: --{name}-python")
    return peers


def compare(bench: Bench, peers: dict[str, Peer], folder: Path, repeat: int, out: Path) -> None:
    task = write_task(bench.data, folder / "task")
    if peer := peers.get("sockeye"):
        prepare = [peer.python, *peer.command(task, "prepare")]
        subprocess.run(prepare, check=True, capture_output=True, timeout=MOST_SECONDS)
    rate = slow_rate(bench, 1)
    print(f"2 hosts x 1: links of {rate}", flush=True)
    ways: dict[str, Callable[[bool], Measured]] = {}
    for name in OUR_WAYS:
        ways[f"dragoman {name}"] = _our_way(bench, WAYS[1][name], rate)
    for name, peer in peers.items():
        ways[name] = _peer_way(peer, task, folder / "runs", rate)
    rows = []
    for repetition in range(repeat):
        for name, measured in ways.items():
            slow, free = (measured(is_free) for is_free in (False, True))
            rows.append(Row(name, repetition, rate, slow, free))
            keep_row(out, {"bench": "peers", **asdict(rows[-1])})
            print(f"  {name:18} {slow.step_seconds:.3f} s, free {free.step_seconds:.3f} s", flush=True)
    print(table(rows), flush=True)


def _our_way(bench: Bench, way: Way, rate: str) -> Callable[[bool], Measured]:
    return lambda is_free: measured_ours(bench, replace(way, is_free=is_free), rate)


def _peer_way(peer: Peer, task: Path, folder: Path, rate: str) -> Callable[[bool], Measured]:
    return lambda is_free: peer.measured(task, folder, None if is_free else rate)


def table(rows: Sequence[Row]) -> str:
    """The table of medians over repetitions; slowdowns are taken within each, with their range."""
    head = f"{'way':18} {'slow link':>10} {'no limit':>10} {'slowdown':>20} {'parameters':>11} {'tokens':>7}"
    lines = [head]
    for name in dict.fromkeys(row.way for row in rows):
        of_way = [row for row in rows if row.way == name]
        slow = np.median([row.slow.step_seconds for row in of_way])
        free = np.median([row.free.step_seconds for row in of_way])
        slowdown = spread([row.slow.step_seconds / row.free.step_seconds for row in of_way])
        tokens = np.median([row.slow.target_tokens for row in of_way])
        size = f"{of_way[0].slow.parameters / 1e6:9.2f} M {tokens:7.0f}"
        lines.append(f"{name:18} {slow:8.3f} s {free:8.3f} s {slowdown:>20} {size}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accelerate-python", help="interpreter with transformers and accelerate")
    parser.add_argument("--sockeye-python", help="interpreter with sockeye")
    parser.add_argument("--repeat", type=int, default=3, help="number of repetitions (3)")
    parser.add_argument(
        "--out", type=Path, default=Path("slow_link_peers.jsonl"), help="results, as JSON lines"
    )
    arguments = parser.parse_args()
    if reason := why_not():
        print(f"cannot create hosts here: {reason}", file=sys.stderr)
        return 1
    peers = peers_of(arguments)
    with tempfile.TemporaryDirectory(prefix="dragoman-slow-link-peers-") as name:
        folder = Path(name)
        compare(Bench(folder), peers, folder, arguments.repeat, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
