"""A rank with pretended GPUs: `python -m tests.cards.rank GPUS MODULE WORDS...` runs that module.

GPUS has an entry for each rank, `host=gpus`, with the UUIDs of the GPUs that this rank sees: `a=0+1,a=0+1`
are two ranks of a host that see both, `a=0,b=` two hosts of which one has no GPU. In a test bed, where a host
has its own name, `=0` keeps it.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys

from tests.cards import pretend


def place(gpus: str) -> None:
    """Makes this process the rank that its environment names, on its pretended host."""
    rank = os.environ.get("RANK") or os.environ["SLURM_PROCID"]
    host, _, uuids = gpus.split(",")[int(rank)].partition("=")
    if host:
        socket.gethostname = lambda: host
    pretend.gpus([f"GPU-{uuid}" for uuid in uuids.split("+") if uuid])


if __name__ == "__main__":
    place(sys.argv[1])
    module, sys.argv = sys.argv[2], sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
