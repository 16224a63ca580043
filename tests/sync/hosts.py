"""Ranks on the hosts of a test bed: `python -m MODULE ...` on each, as torchrun would start them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from testbed import Cluster, why_not

SECONDS = 120  # for what takes a few: the machine may be busy


@pytest.fixture
def hosts_are_possible() -> None:
    if reason := why_not():
        pytest.skip(reason)


def ranks_on(cluster: Cluster, per_host: Sequence[int], *module: str, **environment: str) -> list[str]:
    """What each rank printed, in order; a rank that fails fails the test, with what it said."""
    places = [(host, local) for host, count in enumerate(per_host) for local in range(count)]
    started = [
        cluster.popen(
            host,
            [sys.executable, "-m", *module],
            env={
                "RANK": str(rank),
                "WORLD_SIZE": str(len(places)),
                "LOCAL_RANK": str(local),
                "LOCAL_WORLD_SIZE": str(per_host[host]),
                "MASTER_ADDR": "h0",
                "MASTER_PORT": "29500",
                "OMP_NUM_THREADS": "1",
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank, (host, local) in enumerate(places)
    ]
    said = [process.communicate(timeout=SECONDS) for process in started]
    for process, (_, errors) in zip(started, said, strict=True):
        assert process.returncode == 0, errors
    return [output for output, _ in said]
