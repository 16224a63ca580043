"""The environment ranks are started in, whoever starts them."""

from __future__ import annotations

import os

from dragoman.data.parallel import cores

# After Ctrl-C or SIGTERM: time to finish a step or an evaluation and to save, before ranks are killed.
SAVE_SECONDS = 300
_TYPED = "DRAGOMAN_COMMAND"
# What a user sets for the whole run and means for every host. Addresses and interfaces differ by host.
_FOR_EVERY_HOST = ("NCCL_", "TORCH_", "OMP_NUM_THREADS")


def for_ranks(workers: int) -> dict[str, str]:
    """What so many ranks on this machine need beside what the user has set."""
    wanted = {
        "OMP_NUM_THREADS": str(max(1, cores() // workers)),
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(SAVE_SECONDS),
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # else it warns of every address that has no name
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}


def for_every_host() -> dict[str, str]:
    """What is sent along to other machines, as they have their own environment."""
    return {name: value for name, value in os.environ.items() if name.startswith(_FOR_EVERY_HOST)}


def with_command(command: str) -> dict[str, str]:
    """Tells ranks on other hosts what the user typed: their own command line holds a copied config."""
    return {_TYPED: command}


def command(own: str) -> str:
    """What the user typed to start this rank."""
    return os.environ.get(_TYPED, own)
