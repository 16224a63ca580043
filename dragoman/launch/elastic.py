"""torchrun's own machinery: starts the ranks of one machine, watches them, ends them together."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.launch import environment


@dataclass(frozen=True)
class Node:
    """This machine's part of a world. Alone, unless an address is given at which the machines meet."""

    workers: int
    rank: int = 0
    nodes: int = 1
    address: str = ""  # of the machine with rank 0
    port: int = 0
    world_id: str = ""  # the same on all machines


def run(arguments: Sequence[str], node: Node) -> int:
    """Starts `dragoman ARGUMENTS` as ranks; their exit code. Their output goes where ours goes."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable()  # the ranks say themselves what is wrong
    os.environ.update(environment.for_ranks(node.workers))
    config = LaunchConfig(
        min_nodes=node.nodes,
        max_nodes=node.nodes,
        nproc_per_node=node.workers,
        run_id=node.world_id or uuid.uuid4().hex,
        rdzv_backend="static" if node.address else "c10d",
        rdzv_endpoint=f"{node.address}:{node.port}" if node.address else "localhost:0",
        rdzv_configs={"rank": node.rank} if node.address else {},
        # Where torch would take the host's own name, which not every host can resolve.
        local_addr=None if node.address else "127.0.0.1",
        max_restarts=0,
        signals_to_handle=",".join(_signals()),
    )
    with environment.ranks_under_way() as under_way:
        try:
            elastic_launch(config, sys.executable)("-m", "dragoman", *arguments)
        except ChildFailedError as error:
            exit_codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
            for rank, code in exit_codes.items():
                if code < 0 and code != -signal.SIGTERM:  # it could say nothing itself; SIGTERM is torchrun's
                    print(f"error: {_killed(rank, -code)}", file=sys.stderr)
            return max(1, *exit_codes.values())
        except SignalException:
            if left := len(list(under_way.glob("*"))):
                print(f"error: {_not_saved(left, node.workers)}", file=sys.stderr)
                return 1
    return 0


def _signals() -> list[str]:
    """Those that are passed on to the ranks. Under nohup SIGHUP stays ignored."""
    wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return [number.name for number in wanted if signal.getsignal(number) != signal.SIG_IGN]


def _not_saved(ranks: int, workers: int) -> str:
    return (
        f"stopped, but {ranks} of {workers} ranks ended before they had saved what there is to save\n"
        "  try: the same command goes on from the last checkpoint"
    )


def _killed(rank: int, number: int) -> str:
    name = signal.Signals(number).name
    return (
        f"rank {rank} was ended by {name}\n"
        "  try: the same command goes on from the last checkpoint; if it happens again, look whether the "
        "machine runs out of memory (dmesg) and compute in smaller parts with --set data.split=2"
    )
