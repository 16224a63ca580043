"""Measures what HTTP costs (`dragoman serve` against direct calls of CTranslate2), and behaviour in overload.

    DRAGOMAN_DATA=FOLDER python benchmarks/serve.py [--overload-seconds 120]

Model, search and sentences are those of benchmarks/decode.py: Transformer-base with random weights, int8,
beam 4, every translation cut after 15 tokens. Server and clients share the same cores.

- Throughput: 1, 8 and 64 clients, each of which requests one sentence after another over one kept connection.
  The comparison is CTranslate2 without a server: the same sentences in the same order, as many at a time as
  there are clients. Both alternate in one run; ratios are taken within a round.
- Overload: for two minutes, requests arrive at twice the rate that 64 clients reached, whether or not earlier
  ones were answered. Only 200 and 429 may come back, and memory must stay flat; it grows during most of the
  first minute, until CTranslate2's threads have seen batches of every length.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import psutil
from decode import TOKENS, directly, text, training_text

CLIENTS = (1, 8, 64)
ROUNDS = 3
SECONDS_PER_ROUND = 15
PRECISION = "int8"
GOAL_RATIO = 0.85
GOAL_GROWTH = 1.05  # of memory, from the second quarter of the overload to the last


def make_model(folder: Path) -> None:
    """Write a base-size model with random weights."""
    import torch

    from dragoman.config import Model, VocabularySettings
    from dragoman.data.tokens import learn
    from dragoman.export import ctranslate2 as export
    from dragoman.model import Transformer

    tokenizer = learn(training_text(), VocabularySettings(size=32_768))
    torch.manual_seed(1)
    export.write(folder, Transformer(Model(), len(tokenizer)), tokenizer)


@dataclass
class Answers:
    """Counts of answers by status, and the seconds taken by those with a translation."""

    statuses: Counter[int | str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def latency(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Connection:
    """HTTP by hand, kept open: a client library would cost more than the server."""

    def __init__(self, port: int):
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, sentence: str, answers: Answers) -> None:
        body = json.dumps({"text": sentence, "options": {"max_length": TOKENS}}).encode()
        head = "POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        began = time.perf_counter()
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", answer)
            await reader.readexactly(int(length[1]) if length else 0)
        except (OSError, asyncio.IncompleteReadError) as error:
            answers.statuses[type(error).__name__] += 1
            self._streams = None
            return
        status = int(answer.split(b" ", 2)[1])
        answers.statuses[status] += 1
        if status == 200:
            answers.seconds.append(time.perf_counter() - began)

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()


async def clients_for(
    port: int, clients: int, sentences: Sequence[str], seconds: float
) -> tuple[float, Answers]:
    """Sentences per second with this many clients, each with one request under way."""
    answers, source = Answers(), cycle(sentences)
    began = time.perf_counter()

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() - began < seconds:
            await connection.ask(next(source), answers)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return len(answers.seconds) / (time.perf_counter() - began), answers


def calls_for(translate, clients: int, sentences: Sequence[str], seconds: float) -> float:  # noqa: ANN001
    """Sentences per second without a server, `clients` sentences at a time."""
    source, done, began = cycle(sentences), 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        done += len(translate(list(islice(source, clients))))
    return done / (time.perf_counter() - began)


async def overload(port: int, rate: float, sentences: Sequence[str], seconds: float) -> Answers:
    """Send requests at this rate, each on a free connection or a new one."""
    answers, source, free, under_way = Answers(), cycle(sentences), deque(), set()
    began = time.perf_counter()

    async def one() -> None:
        # The one idle longest: the server closes connections that are idle for half a minute.
        connection = free.popleft() if free else Connection(port)
        await connection.ask(next(source), answers)
        free.append(connection)

    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0, began + number / rate - time.perf_counter()))
        task = asyncio.create_task(one())
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    for connection in free:
        connection.close()
    return answers


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    """Run the server; yields its port and its process."""
    command = [sys.executable, "-m", "dragoman", "serve", f"en-de={folder}", "--port", "0"]
    process = subprocess.Popen([*command, "--precision", PRECISION], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        address = re.search(r":(\d+)/$", process.stdout.readline().strip())
        assert address, "the server did not start"
        yield int(address[1]), psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, "the server did not end well"


def throughput(port: int, folder: Path, sentences: Sequence[str]) -> tuple[bool, float]:
    """Print the table; returns whether the goal was reached, and the rate with the most clients."""
    translate = directly(folder, PRECISION, len(os.sched_getaffinity(0)))
    reached, rate = True, 0.0
    print("clients  requests/s  p50 ms  p99 ms  directly/s  served over directly")
    for clients in CLIENTS:
        rates, direct, answers = [], [], Answers()
        translate(sentences[:clients])
        asyncio.run(clients_for(port, clients, sentences, 2))
        for _ in range(ROUNDS):
            served, one = asyncio.run(clients_for(port, clients, sentences, SECONDS_PER_ROUND))
            rates.append(served)
            answers.seconds += one.seconds
            answers.statuses += one.statuses
            direct.append(calls_for(translate, clients, sentences, SECONDS_PER_ROUND))
        ratio = statistics.median(a / b for a, b in zip(rates, direct, strict=True))
        rate = statistics.median(rates)
        print(
            f"{clients:7}  {rate:10.2f}  {1e3 * answers.latency(0.5):6.0f}"
            f"  {1e3 * answers.latency(0.99):6.0f}  {statistics.median(direct):10.2f}  {ratio:20.3f}",
            flush=True,
        )
        reached &= ratio >= GOAL_RATIO and set(answers.statuses) == {200}
    return reached, rate


def handles_overload(
    port: int, server: psutil.Process, rate: float, sentences: Sequence[str], seconds: float
) -> bool:
    async def watched() -> tuple[Answers, list[int]]:
        flood = asyncio.create_task(overload(port, rate, sentences, seconds))
        sizes = []
        while not flood.done():
            sizes.append(server.memory_info().rss)
            await asyncio.sleep(0.5)
        return await flood, sizes

    answers, sizes = asyncio.run(watched())
    quarter = len(sizes) // 4
    early, late = statistics.mean(sizes[quarter : 2 * quarter]), statistics.mean(sizes[-quarter:])
    counts = ", ".join(f"{status}: {count:,}" for status, count in sorted(answers.statuses.items(), key=str))
    print(
        f"{seconds:.0f} s at {rate:.1f} requests/s: {counts}; "
        f"p99 of translations {answers.latency(0.99):.2f} s"
    )
    print(f"memory in the second and the last quarter: {early / 1e6:.1f} and {late / 1e6:.1f} MB")
    return set(answers.statuses) <= {200, 429} and late / early <= GOAL_GROWTH


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--overload-seconds", type=float, default=120, help="length of the overload (120)")
    arguments = parser.parse_args()
    sentences = text("test_2016_flickr.en")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder)
        with serving(folder) as (port, server):
            is_fast, rate = throughput(port, folder, sentences)
            is_robust = handles_overload(port, server, 2 * rate, sentences, arguments.overload_seconds)
    return 0 if is_fast and is_robust else 1


if __name__ == "__main__":
    sys.exit(main())
