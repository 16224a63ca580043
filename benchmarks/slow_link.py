"""Compares ways of exchanging gradients over a slow network between two hosts.

    python benchmarks/slow_link.py speed [--repeat 3]     step time and bytes of every way, 2 x 1 and 2 x 2
    python benchmarks/slow_link.py far                    exchange 50 x computing: the report and its advice
    python benchmarks/slow_link.py learning --config C --data D --rate R    loss and BLEU over time

The link is set so that an all-reduce of all gradients in fp32 over a flat ring takes 3.7 times as long as the
computing of a step, as in the public runs of Transformer-base over two machines. Hosts are network namespaces
with one core each; see testbed/. The ways alternate, so that a change in the machine's speed affects them
all. Needs root. Results are appended to slow_link.jsonl.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.causes import Setting
from benchmarks.trainings import HERE, Outcome, explained, started, train_words, wait, write_corpus
from dragoman.cost.step import bytes_per_host
from dragoman.exchange_way import ROUND_SHARE
from dragoman.measure import database
from dragoman.rundir import RunFolder
from testbed import Cluster, why_not

RATIO = 3.7  # all-reduce alone over computing, as in the public runs
FAR_RATIO = 50.0  # as in the public run on a 100 Mbit/s port
SETTLED = 4  # steps until connections reach full speed
INNER_STEPS = 16
DILOCO_STEPS = (ROUND_SHARE + 2) * INNER_STEPS  # two rounds of full length
MOST_SECONDS = 3 * 3600  # of one training
TOKENS = 1024  # of a step
FAR_TOKENS = 256  # less computing, so that fifty times as long is still short
# 6 million parameters (25 MB of gradients), one microbatch on each of 2 or 4 ranks.
MODEL = """
[model]
width = 256
heads = 4
encoder_layers = 3
decoder_layers = 3
feedforward = 1024
[data]
step = {tokens}
microbatch = {microbatch}
[train]
schedule = "constant"
rate = 0.0005
warmup_steps = 20
[evaluate]
every = 100000
[checkpoint]
every = 100000
[measure]
every = 4
"""
PLAIN = ("sync.mode=allreduce", "sync.wire=fp32", "sync.hierarchical=false", "sync.bucket_mb=25")
DILOCO = ("sync.mode=diloco", "sync.wire=bf16", f"sync.inner_steps={INNER_STEPS}")


@dataclass(frozen=True)
class Way:
    """A way of exchanging gradients: its settings, and how long to train with them."""

    settings: tuple[str, ...]
    steps: int = SETTLED + 12
    is_free: bool = False  # no limit on the link


FREE = Way(PLAIN, SETTLED + 20, is_free=True)
BEST_INSIDE = ("sync.mode=allreduce", "sync.wire=bf16", "sync.hierarchical=true")
WAYS = {
    1: {
        "plain": Way(PLAIN),
        "bf16": Way(("sync.mode=allreduce", "sync.wire=bf16")),
        "auto": Way(("sync.mode=auto",)),
        "diloco": Way(DILOCO, DILOCO_STEPS),
        "free": FREE,
    },
    2: {
        "plain": Way(PLAIN),
        "hierarchical": Way(("sync.mode=allreduce", "sync.wire=fp32", "sync.hierarchical=true")),
        "hierarchical bf16": Way(BEST_INSIDE),
        "auto": Way(("sync.mode=auto",)),
        "diloco": Way((*DILOCO, "sync.hierarchical=true"), DILOCO_STEPS),
        "free": FREE,
    },
}


@dataclass
class SocketBytes:
    """Bytes that host 0 sent to other hosts over TCP, without headers and retransmissions, over time."""

    times: list[float] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    def between(self, began: float, ended: float) -> float:
        """Bytes sent between the ends of two steps; exact, as nothing is sent right after a step's end."""
        first, last = np.searchsorted(self.times, [began, ended])
        return float(self.sent[last] - self.sent[first])


@contextmanager
def counted(cluster: Cluster) -> Iterator[SocketBytes]:
    """Count the bytes host 0 sends during the block."""
    counts, is_over = SocketBytes(), threading.Event()

    def count() -> None:
        while not is_over.wait(0.03):
            output = cluster.run(0, ["ss", "-tinH"]).stdout
            now = time.time()
            counts.sent.append(_sent(output))
            counts.times.append(now)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield counts
    finally:
        is_over.set()
        thread.join()


def _sent(output: str) -> int:
    """Bytes sent according to ss, which prints two lines per connection: addresses, then counters."""
    total = 0
    lines = output.splitlines()
    for addresses, counters in zip(lines[::2], lines[1::2], strict=True):
        own, peer = (word.rpartition(":")[0] for word in addresses.split()[3:5])
        if own != peer:  # ranks of one host also talk to each other through its address
            for name, sign in (("bytes_sent", 1), ("bytes_retrans", -1)):
                match = re.search(rf"\b{name}:(\d+)", counters)
                total += sign * int(match[1]) if match else 0
    return total


@dataclass(frozen=True)
class Timed:
    outcome: Outcome
    step_seconds: float  # mean over settled steps, in whole rounds
    socket_bytes: float  # per step, sent by host 0
    formula_bytes: float


class Bench:
    def __init__(self, folder: Path, tokens: int = TOKENS):
        self._folder = folder
        self._tokens = tokens
        self.data = write_corpus(folder / "corpus", "demo", 20_000)

    def timed(self, way: Way, per_host: int, rate: str | None) -> Timed:
        """Run one training with this way of exchanging."""
        config = self._folder / f"{per_host}.toml"
        config.write_text(MODEL.format(tokens=self._tokens, microbatch=self._tokens // 2 // per_host))
        run = RunFolder(self._folder / "runs" / str(time.time_ns()))
        where = Setting(per_host, 2, None if way.is_free else rate)
        words = train_words(config, self.data, run.path, [*way.settings, f"train.steps={way.steps}"])
        sockets = _trained(run, where, words)
        outcome = explained(database.read(run.records))
        facts, exchange = outcome.records.facts, outcome.records.facts.way
        first = exchange.growing_steps or SETTLED
        steps = outcome.records.steps
        chosen = steps["step"] > first
        ended = steps["ended"]
        sent = sockets.between(float(ended[first - 1]), float(ended[-1]))
        formula = exchange.bytes_per_host(facts.rank_hosts, facts.gradient_bytes or 0.0) or 0.0
        count = int(chosen.sum())
        step_seconds = float(steps["seconds"][chosen].mean())
        return Timed(outcome, step_seconds, sent / count, formula / exchange.steps_per_round)


def _trained(run: RunFolder, where: Setting, words: Sequence[str]) -> SocketBytes:
    run.path.mkdir(parents=True)
    with (
        Cluster(where.hosts, where.rate) as cluster,
        started(cluster, [str(HERE / "hindered.py"), *words], run, where) as processes,
        counted(cluster) as sockets,
    ):
        wait(processes, run, MOST_SECONDS)
        time.sleep(0.1)  # one more count
    return sockets


def slow_rate(bench: Bench, per_host: int) -> str:
    """The link rate at which plain's all-reduce takes RATIO times the computing.

    Arithmetic gives a first rate, without headers and waiting; a measurement corrects it.
    """
    calculated = rate_for(RATIO, bench.timed(FREE, per_host, None).outcome)
    measured = ratio_of(bench.timed(Way(PLAIN, SETTLED + 4), per_host, _kbit(calculated)).outcome)
    return _kbit(calculated * measured / RATIO)


def _kbit(bits_per_second: float) -> str:
    return f"{bits_per_second / 1e3:.0f}kbit"


def rate_for(ratio: float, free: Outcome) -> float:
    """The link rate in bit/s at which an fp32 all-reduce over a flat ring takes `ratio` x the computing."""
    facts = free.records.facts
    seconds = ratio * free.number("network", "step_seconds_without_exchange")
    nbytes = bytes_per_host(facts.rank_hosts, 4.0 * (facts.parameters or 0))
    return 8 * nbytes / seconds


def ratio_of(plain: Outcome) -> float:
    """The measured ratio: the all-reduce probed at the start, scaled to all gradients, over computing."""
    alone = plain.records.probes_of("all_reduce")[0]
    seconds = alone.seconds * 4.0 * (plain.records.facts.parameters or 0) / alone.numbers["bytes"]
    return seconds / plain.number("network", "step_seconds_without_exchange")


def speed(bench: Bench, repeat: int, out: Path) -> None:
    for per_host, ways in WAYS.items():
        rate = slow_rate(bench, per_host)
        print(f"\n2 hosts x {per_host}: links of {rate}", flush=True)
        rows = []
        for repetition in range(repeat):
            for name, way in ways.items():
                rows.append(_row(name, repetition, bench.timed(way, per_host, rate), per_host, rate))
                keep_row(out, rows[-1])
        print(table(rows), flush=True)


def _row(name: str, repetition: int, timed: Timed, per_host: int, rate: str) -> dict[str, Any]:
    facts = timed.outcome.records.facts
    row = {
        "bench": "speed",
        "way": name,
        "repetition": repetition,
        "workers_per_host": per_host,
        "rate": rate,
        "step_seconds": timed.step_seconds,
        "step_seconds_without_exchange": timed.outcome.number("network", "step_seconds_without_exchange"),
        "bytes_per_step": timed.socket_bytes,
        "formula_bytes_per_step": timed.formula_bytes,
        "exchange": f"{facts.mode} {facts.exchange} {facts.wire} {(facts.bucket_bytes or 0) / 2**20:.3g} MiB",
        "why": facts.exchange_why,
        "network": timed.outcome.findings["network"].verdict,
    }
    if name == "plain":
        row["all_reduce_over_computing"] = ratio_of(timed.outcome)
    print(f"  {name:20} {timed.step_seconds:.3f} s  {row['exchange']}", flush=True)
    return row


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The table of ratios within each repetition, as median and range."""
    seconds = {(row["way"], row["repetition"]): row["step_seconds"] for row in rows}
    repetitions = sorted({row["repetition"] for row in rows})
    lines = [f"{'way':20} {'step':>8} {'of plain time':>18} {'of free speed':>18} {'bytes/formula':>14}"]
    for name in dict.fromkeys(row["way"] for row in rows):
        of_way = [row for row in rows if row["way"] == name]
        of_plain = [seconds[name, each] / seconds["plain", each] for each in repetitions]
        of_free = [seconds["free", each] / seconds[name, each] for each in repetitions]
        sent = np.median([row["bytes_per_step"] / row["formula_bytes_per_step"] for row in of_way])
        step = np.median([row["step_seconds"] for row in of_way])
        lines.append(f"{name:20} {step:6.3f} s {spread(of_plain):>18} {spread(of_free):>18} {sent:14.3f}")
    ratios = [row["all_reduce_over_computing"] for row in rows if row["way"] == "plain"]
    return "\n".join([*lines, f"all-reduce alone over computing: {spread(ratios)}"])


def spread(values: Sequence[float]) -> str:
    return f"{np.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def far(bench: Bench, out: Path) -> None:
    """Print the report of a run at FAR_RATIO, and the gain from following its advice."""
    rate = _kbit(rate_for(FAR_RATIO, bench.timed(FREE, 1, None).outcome))
    plain = bench.timed(Way(PLAIN, SETTLED + 4), 1, rate)
    network, device = (plain.outcome.findings[id] for id in ("network", "device_utilisation"))
    print(f"links of {rate}; plain: {plain.step_seconds:.2f} s per step")
    for finding in (network, device):
        print(f"{finding.id}: {finding.verdict}. {finding.answer}", *finding.advice, sep="\n  ")
    advice = next(text for text in network.advice if "sync.mode=diloco" in text)
    taken = bench.timed(Way(("sync.mode=diloco",), DILOCO_STEPS), 1, rate)
    gain = plain.step_seconds / taken.step_seconds
    print(f"with {advice.split(':')[0]}: {taken.step_seconds:.2f} s per step, {gain:.1f} x", flush=True)
    numbers = {"rate": rate, "plain_step_seconds": plain.step_seconds, "gain": gain, "advice": advice}
    keep_row(out, {"bench": "far", **numbers, "network": network.answer, "device": device.answer})


@dataclass(frozen=True)
class Learnt:
    """How a run learnt: step, held-out loss, BLEU and the seconds of steps until then."""

    points: list[tuple[int, float, float, float]]

    def seconds_to(self, bleu: float) -> float:
        return next((seconds for _, _, score, seconds in self.points if score >= bleu), float("nan"))


def learning(arguments: argparse.Namespace) -> None:
    """Train each way on the same number of pairs over the same link."""
    learnt = {}
    for name, way in WAYS[1].items():
        if name in arguments.ways:
            run = RunFolder(arguments.folder / f"{name}-{time.time_ns()}")
            settings = [*way.settings, *arguments.set]
            words = train_words(arguments.config, arguments.data, run.path, settings)
            _trained(run, Setting(1, 2, None if way.is_free else arguments.rate), words)
            learnt[name] = _learnt(run)
            step, loss, bleu, seconds = learnt[name].points[-1]
            print(f"{name:12} step {step}: loss {loss:.4f}, BLEU {bleu:.2f}, {seconds:.0f} s", flush=True)
            row = {"bench": "learning", "way": name, "rate": arguments.rate, "points": learnt[name].points}
            if name == "plain":
                row["all_reduce_over_computing"] = ratio_of(explained(database.read(run.records)))
                print(f"all-reduce alone over computing: {row['all_reduce_over_computing']:.1f}", flush=True)
            keep_row(arguments.out, row | {"config": str(arguments.config), "set": arguments.set})
    reached = min(max(bleu for _, _, bleu, _ in each.points) for each in learnt.values())
    for share in (0.9, 0.95, 1.0):
        times = [f"{name} {each.seconds_to(share * reached):.0f} s" for name, each in learnt.items()]
        print(f"to BLEU {share * reached:.2f}: {', '.join(times)}")


def _learnt(run: RunFolder) -> Learnt:
    records = database.read(run.records)
    elapsed = np.cumsum(records.steps["seconds"])
    steps = records.steps["step"]
    return Learnt(
        [
            (row.step, row.eval_loss or 0.0, row.bleu or 0.0, float(elapsed[steps <= row.step][-1]))
            for row in records.evaluations
        ]
    )


def keep_row(out: Path, row: dict[str, Any]) -> None:
    with open(out, "a") as file:
        file.write(json.dumps(row) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("speed", "far", "learning"), help="what to measure")
    parser.add_argument("--repeat", type=int, default=3, help="number of repetitions (3)")
    parser.add_argument("--out", type=Path, default=Path("slow_link.jsonl"), help="results, as JSON lines")
    parser.add_argument("--config", type=Path, help="learning: config to train")
    parser.add_argument("--data", type=Path, help="learning: prepared data set")
    parser.add_argument("--rate", help="learning: rate of the links, such as 100mbit")
    parser.add_argument("--ways", nargs="+", default=["plain", "auto", "diloco"], choices=WAYS[1])
    parser.add_argument("--set", action="append", default=[], help="learning: settings, key=value")
    arguments = parser.parse_args()
    if reason := why_not():
        print(f"cannot create hosts here: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="dragoman-slow-link-") as folder:
        arguments.folder = Path(folder)
        if arguments.what == "learning":
            learning(arguments)
        elif arguments.what == "speed":
            speed(Bench(arguments.folder), arguments.repeat, arguments.out)
        else:
            far(Bench(arguments.folder, FAR_TOKENS), arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
