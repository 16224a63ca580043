"""Ranks on this machine, started and watched by torchrun's own machinery."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Sequence

from dragoman.data.parallel import cores

# Freed memory is kept and used again, in huge pages: fresh pages cost a fifth of a small model's step.
_MALLOC = (
    "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"
)


def run(arguments: Sequence[str], workers: int) -> int:
    """Starts `dragoman ARGUMENTS` as so many ranks; their exit code. Their output goes where ours goes."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable()  # the ranks say themselves what is wrong
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores() // workers)))
    os.environ.setdefault("GLIBC_TUNABLES", _MALLOC)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=workers,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "dragoman", *arguments)
    except ChildFailedError as error:
        return max(failure.exitcode for failure in error.failures.values())
    except SignalException:
        return 0  # the ranks saved and said so
    return 0
