"""Ranks on this machine, started and watched by torchrun's own machinery."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence

from dragoman.data.parallel import cores

# Freed memory is kept and used again, in huge pages: fresh pages cost a fifth of a small model's step.
MALLOC = (
    "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"
)
# After Ctrl-C or SIGTERM: time to finish a step or an evaluation and to save, before ranks are killed.
_SAVE_SECONDS = "300"


def run(arguments: Sequence[str], workers: int) -> int:
    """Starts `dragoman ARGUMENTS` as so many ranks; their exit code. Their output goes where ours goes."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable()  # the ranks say themselves what is wrong
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores() // workers)))
    os.environ.setdefault("GLIBC_TUNABLES", MALLOC)
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", _SAVE_SECONDS)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=workers,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        signals_to_handle=",".join(_signals()),
    )
    try:
        elastic_launch(config, sys.executable)("-m", "dragoman", *arguments)
    except ChildFailedError as error:
        exit_codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        for rank, code in exit_codes.items():
            if code < 0 and code != -signal.SIGTERM:  # it could say nothing itself; SIGTERM is torchrun's own
                print(f"error: {_killed(rank, -code)}", file=sys.stderr)
        return max(1, *exit_codes.values())
    except SignalException:
        return 0  # the ranks saved and said so
    return 0


def _signals() -> list[str]:
    """Those that are passed on to the ranks. Under nohup SIGHUP stays ignored."""
    wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return [number.name for number in wanted if signal.getsignal(number) != signal.SIG_IGN]


def _killed(rank: int, number: int) -> str:
    name = signal.Signals(number).name
    return (
        f"rank {rank} was ended by {name}\n"
        "  try: the same command goes on from the last checkpoint; if it happens again, look whether the "
        "machine runs out of memory (dmesg) and compute in smaller parts with --set data.split=2"
    )
