"""The environment ranks are started in, whoever starts them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.data.parallel import cores

# After Ctrl-C or SIGTERM: time to finish a step or an evaluation and to save, before ranks are killed.
SAVE_SECONDS = 300
_TYPED = "DRAGOMAN_COMMAND"
_GOOD_ENDS = "DRAGOMAN_GOOD_ENDS"  # a folder in which each rank that ends well leaves a file
# What a user sets for the whole run and means for every host. Addresses and interfaces differ by host.
_FOR_EVERY_HOST = ("NCCL_", "TORCH_")


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


@contextmanager
def good_ends() -> Iterator[Path]:
    """A folder in which the ranks started meanwhile leave a file each, if they end well.

    torchrun keeps the exit codes of ranks to itself when it is told to stop.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        os.environ[_GOOD_ENDS] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ[_GOOD_ENDS]


def note_good_end() -> None:
    """This rank has done what it was to do."""
    if folder := os.environ.get(_GOOD_ENDS):
        Path(folder, os.environ["RANK"]).touch()


def with_command(command: str) -> dict[str, str]:
    """Tells ranks on other hosts what the user typed: their own command line holds a copied config."""
    return {_TYPED: command}


def command(own: str) -> str:
    """What the user typed to start this rank."""
    return os.environ.get(_TYPED, own)
