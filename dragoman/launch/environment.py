"""The environment ranks are started in, whoever starts them."""

from __future__ import annotations

import os

from dragoman.data.parallel import cores
from dragoman.sync.route import LISTENER

# After Ctrl-C or SIGTERM: time to finish a step or an evaluation and to save, before ranks are killed.
SAVE_SECONDS = 300.0
# Ranks that lost another cannot agree on a state to save: they say so and leave, or wait for it in vain.
AFTER_LOSS_SECONDS = 30.0
# What a launcher tells a rank, in torch's words.
PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_TYPED = "DRAGOMAN_COMMAND"
# What a user sets for the whole run and means for every host. Addresses and interfaces differ by host.
_FOR_EVERY_HOST = ("NCCL_", "TORCH_")


def for_ranks(workers: int) -> dict[str, str]:
    """What so many ranks on this machine need beside what the user has set."""
    wanted = {
        "OMP_NUM_THREADS": str(max(1, cores() // workers)),
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # else it warns of every address that has no name
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}


def for_every_host() -> dict[str, str]:
    """What is sent along to other machines, as they have their own environment."""
    return {name: value for name, value in os.environ.items() if name.startswith(_FOR_EVERY_HOST)}


def place(rank: int, size: int, local_rank: int, local_size: int, address: str, port: int) -> dict[str, str]:
    """Which rank of which world a process is, and where its ranks meet."""
    values = (rank, size, local_rank, local_size, address, port)
    return dict(zip(PLACE, map(str, values), strict=True))


def with_listener(descriptor: int) -> dict[str, str]:
    """For rank 0: the socket at which the others find it, open already."""
    return {LISTENER: str(descriptor)}


def with_command(command: str) -> dict[str, str]:
    """Tells ranks on other hosts what the user typed: their own command line holds a copied config."""
    return {_TYPED: command}


def command(own: str) -> str:
    """What the user typed to start this rank."""
    return os.environ.get(_TYPED, own)


def is_forwarded() -> bool:
    """Does mpirun pass on what this process says? It gives ranks a terminal of its own, which nobody sees."""
    return "OMPI_COMM_WORLD_RANK" in os.environ
