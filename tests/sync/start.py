"""Starts ranks without a launcher, here or on the hosts of a test bed, and reads what they say."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from testbed import Cluster

WAIT_SECONDS = 120
PORT = 29_400  # on hosts of a test bed, where everything is free


@dataclass(frozen=True)
class Ended:
    """What a rank came to."""

    returncode: int
    output: str
    errors: str

    def said(self) -> str:
        assert self.returncode == 0, self.errors
        return self.output

    def answers(self) -> list[dict[str, Any]]:
        """Its lines of JSON."""
        return [json.loads(line) for line in self.said().splitlines()]


def ranks(module: str, arguments: Sequence[str], count: int) -> list[Ended]:
    """So many on this machine, to their end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", module, *arguments]
    started = []
    for rank in range(count):
        env = os.environ | _place(rank, count, rank, count, "127.0.0.1", port)
        started.append(subprocess.Popen(command, env=env, text=True, **_options(rank)))
    return _ended(started)


def ranks_on(cluster: Cluster, module: str, arguments: Sequence[str], per_host: Sequence[int]) -> list[Ended]:
    """So many on each host of a test bed. They meet at the first one's address."""
    command, count = [sys.executable, "-m", module, *arguments], sum(per_host)
    places = [(host, local) for host, ranks in enumerate(per_host) for local in range(ranks)]
    started = []
    for rank, (host, local) in enumerate(places):
        env = _place(rank, count, local, per_host[host], cluster.addresses[0], PORT)
        started.append(cluster.popen(host, command, env=env, **_options(rank)))
    return _ended(started)


def _options(rank: int) -> dict[str, Any]:
    """Of Popen. One core for each: threads that wait for each other crawl on a busy machine."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[rank % len(cores)]
    pin = partial(os.sched_setaffinity, 0, {core})
    return {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": pin}


def _place(rank: int, size: int, local_rank: int, local_size: int, address: str, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_size),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }


def _ended(started: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    with ExitStack() as stack:
        for process in started:
            stack.enter_context(process)  # closes its pipes
            stack.callback(process.kill)
        said = [process.communicate(timeout=WAIT_SECONDS) for process in started]
    return [Ended(process.returncode, *texts) for process, texts in zip(started, said, strict=True)]
