"""Whether this process is a rank, and who made it one: the one entry of all ways of starting."""

from __future__ import annotations

import os

from dragoman.launch import environment, mpirun, slurm


def is_rank() -> bool:
    """Was this process started as a rank: by us or torchrun (RANK is set), by mpirun, or by Slurm's srun?

    The last two have variables of their own, which are translated here.
    """
    if "RANK" in os.environ:
        return True
    found = mpirun.translate(os.environ) or slurm.translate(os.environ)
    if not found:
        return False
    os.environ.update(found)
    os.environ.update(environment.for_ranks(int(found["LOCAL_WORLD_SIZE"])))
    return True
