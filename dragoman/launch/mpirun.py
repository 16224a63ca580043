"""Ranks started by Open MPI: `mpirun -n 4 -H a:2,b:2 dragoman train ...`. Gradients do not use MPI.

Ranks meet on the machine where mpirun runs, because every rank is told its address. The first host must
therefore be that machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.errors import UsageError
from dragoman.launch.hosts import own_addresses
from dragoman.launch.meeting import port_of_job


def translate(environ: Mapping[str, str]) -> dict[str, str]:
    """torch's variables made from Open MPI's; empty if Open MPI did not start two or more processes."""
    if int(environ.get("OMPI_COMM_WORLD_SIZE", "1")) == 1:
        return {}
    rank, local_rank = environ["OMPI_COMM_WORLD_RANK"], environ["OMPI_COMM_WORLD_LOCAL_RANK"]
    size, local_size = environ["OMPI_COMM_WORLD_SIZE"], environ["OMPI_COMM_WORLD_LOCAL_SIZE"]
    job = int(environ.get("OMPI_MCA_ess_base_jobid", "0"))
    return {
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": local_size,
        "MASTER_ADDR": environ.get("MASTER_ADDR") or _meeting_point(environ, is_first=rank == "0"),
        # the upper half of the id differs between calls of mpirun
        "MASTER_PORT": environ.get("MASTER_PORT") or port_of_job((job >> 16) + job),
    }


def _meeting_point(environ: Mapping[str, str], is_first: bool) -> str:
    if environ["OMPI_COMM_WORLD_LOCAL_SIZE"] == environ["OMPI_COMM_WORLD_SIZE"]:
        return "127.0.0.1"
    # 372310016.0;tcp://10.0.0.1,172.17.0.1:41399;tcp6://[fd00::2]:45681
    match = re.search(r";tcp://([\d.]+)", environ.get("OMPI_MCA_orte_hnp_uri", ""))
    hint = "give the address of the first host: mpirun -x MASTER_ADDR=10.0.0.1 ..."
    if not match:
        raise UsageError("mpirun does not tell its ranks its address (Open MPI before 5 does)", hint=hint)
    if is_first and match[1] not in map(str, own_addresses()):
        raise UsageError(
            f"rank 0 must run on mpirun's machine ({match[1]}), where the ranks meet, but does not",
            hint=f"name that machine first in -H, or {hint}",
        )
    return match[1]
