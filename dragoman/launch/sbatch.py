"""The batch file that `dragoman launch slurm` writes."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman import atomic
from dragoman.errors import UsageError

_TEXT = """\
#!/bin/bash
#SBATCH --job-name={job_name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={workers}
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@{save_seconds}
{optional}# On a cluster with GPUs, remove one # to get one GPU per rank:
##SBATCH --gpus-per-node={workers}

# SIGUSR1: the time is up in {save_seconds} s. The ranks save, and the job returns to the queue to continue.
# SIGTERM: somebody cancelled the job. Slurm tells the ranks itself, and they save; nothing is requeued.
# After the failure of a node, Slurm requeues the job by itself.
is_late= is_cancelled= is_woken=
# scancel sends SIGTERM to the ranks alone. srun must not get it: it would kill them.
trap 'is_late=yes is_woken=yes; scancel --signal=TERM "$SLURM_JOB_ID"' USR1
trap 'is_cancelled=yes is_woken=yes' TERM

# --cpu-bind=none: the ranks divide the cores of their node evenly among themselves.
srun --kill-on-bad-exit=1 --cpu-bind=none {command} &
while
    is_woken=
    wait "$!"
    code=$?
    [ "$is_woken" ] # by a signal: srun is still running
do
    :
done
if [ "$code" = 0 ] && [ "$is_late" ] && [ ! "$is_cancelled" ]; then
    exec scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
"""
_SAVE_SECONDS = 300
_VALUE = re.compile(r"[\w.:,@%+-]+")  # of --time and --partition: nothing that needs quotes


@dataclass(frozen=True)
class Batch:
    """The resources to request from Slurm."""

    nodes: int
    workers: int  # per node
    time: str | None = None  # in sbatch's format: 12:00:00, 2-00
    partition: str | None = None


def text(arguments: Sequence[str], run: Path, batch: Batch) -> str:
    """The text of a batch file that runs `dragoman ARGUMENTS`."""
    for argument in arguments:
        if not argument.isprintable():
            raise UsageError(
                f"{argument!r} has characters that a batch file cannot hold", hint="use a plain name"
            )
    optional = ""
    for name in ("time", "partition"):
        value = getattr(batch, name)
        if value is None:
            continue
        if not _VALUE.fullmatch(value):
            raise UsageError(f"--{name} {value!r}: sbatch does not accept this value")
        optional += f"#SBATCH --{name}={value}\n"
    return _TEXT.format(
        job_name=re.sub(r"[^\w.-]", "-", run.name) or "dragoman",
        nodes=batch.nodes,
        workers=batch.workers,
        save_seconds=_SAVE_SECONDS,
        optional=optional,
        command=shlex.join([sys.executable, "-m", "dragoman", *arguments]),
    )


def write(arguments: Sequence[str], run: Path, batch: Batch, path: Path) -> None:
    atomic.write(path, text(arguments, run, batch).encode())
