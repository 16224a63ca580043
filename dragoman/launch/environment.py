"""The environment variables that ranks are started with."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

from dragoman.data.parallel import cores
from dragoman.sync.route import LISTENER

# How long ranks may take after Ctrl-C or SIGTERM to finish a step or an evaluation and to save; then they are
# killed.
SAVE_SECONDS = 300.0
# How long ranks may take to exit after another rank was lost. They have no common state to save: some report
# the loss and exit, others would wait for the lost rank forever.
AFTER_LOSS_SECONDS = 30.0
# torch's variables for the place of a rank in its world.
PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_TYPED = "DRAGOMAN_COMMAND"
_SUPERVISED = "DRAGOMAN_RUN"
# The settings of torch's allocator on GPUs. Every torch from 2.6 on heeds the first name; the newer one that
# takes its place has no effect on expandable segments in torch 2.9 (pytorch issue 183387).
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
# Variables that a user sets once for the whole run. Others are not copied: addresses and interfaces, for
# example, differ by host.
_FOR_EVERY_HOST = ("NCCL_", "TORCH_", "PYTORCH_")


def for_ranks(workers: int) -> dict[str, str]:
    """The variables that this many ranks on this machine need, except those the user has set."""
    defaults = {
        "OMP_NUM_THREADS": str(max(1, cores() // workers)),
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # otherwise torch warns about every address without a host name
    }
    if not any(name in os.environ for name in _ALLOCATOR):
        # Microbatches differ in shape: without this, freed memory is left in pieces too small for the next.
        defaults[_ALLOCATOR[0]] = "expandable_segments:True"
    return {name: value for name, value in defaults.items() if name not in os.environ}


def for_deterministic_kernels() -> dict[str, str]:
    """The variable without which cuBLAS may add in another order each time. It is read when CUDA starts."""
    return {} if (name := "CUBLAS_WORKSPACE_CONFIG") in os.environ else {name: ":4096:8"}


def for_every_host() -> dict[str, str]:
    """The user's variables that the launcher sends to every host."""
    return {name: value for name, value in os.environ.items() if name.startswith(_FOR_EVERY_HOST)}


def place(rank: int, size: int, local_rank: int, local_size: int, address: str, port: int) -> dict[str, str]:
    """The variables that tell a process its rank, its world, and the address at which the ranks meet."""
    values = (rank, size, local_rank, local_size, address, port)
    return dict(zip(PLACE, map(str, values), strict=True))


def with_listener(descriptor: int) -> dict[str, str]:
    """The variable that hands rank 0 the listening socket at which the other ranks find it."""
    return {LISTENER: str(descriptor)}


def with_command(command: str) -> dict[str, str]:
    """The variable that tells ranks on other hosts what the user typed.

    Their own command line differs: it names a copy of the config.
    """
    return {_TYPED: command}


def of_run(key: str) -> dict[str, str]:
    """The variable by which the ranks of one launcher are known, on every host."""
    return {_SUPERVISED: key}


def end_ranks_of(key: str) -> None:
    """Kills the ranks of this launcher that are left on this machine from before it lost the connection.

    They cannot be of use any more: the run continued without them.
    """
    left = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(_SUPERVISED) == key:
                process.kill()
                left.append(process)
    psutil.wait_procs(left, AFTER_LOSS_SECONDS)


def is_supervised() -> bool:
    """Whether our launcher started this rank, and decides which world it belongs to."""
    return _SUPERVISED in os.environ


def command(command_line: str) -> str:
    """The command that the user typed: as the launcher passed it on, else this process's own."""
    return os.environ.get(_TYPED, command_line)


def is_of_a_rank() -> bool:
    """Whether this process is a rank: RANK is set, of mpirun's and srun's ranks by `worker.is_rank`."""
    return "RANK" in os.environ or _SUPERVISED in os.environ


def is_forwarded() -> bool:
    """Whether mpirun forwards this process's output. Its ranks have a terminal, but nobody watches it."""
    return "OMPI_COMM_WORLD_RANK" in os.environ
