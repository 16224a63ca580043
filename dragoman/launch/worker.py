"""Decides whether this process is a rank, whichever way it was started."""

from __future__ import annotations

import os
from collections.abc import Mapping

from dragoman.errors import UsageError
from dragoman.launch import environment, mpirun, slurm
from dragoman.launch.environment import PLACE

_HINT = (
    "start ranks with --workers, --hosts, torchrun, mpirun or srun, which set all these variables; to train "
    "with one process in this shell, unset {variables}"
)


def is_rank() -> bool:
    """Whether this process was started as a rank: by us, by torchrun (RANK is set), by mpirun or by srun.

    mpirun and srun set variables of their own; this function adds torch's to the environment.
    """
    if environment.is_supervised():
        return True
    if "RANK" not in os.environ:
        variables = _translated(os.environ)
        if not variables:
            return False
        os.environ.update(variables)
        os.environ.update(environment.for_ranks(int(variables["LOCAL_WORLD_SIZE"])))
    _check_place(os.environ)
    return True


def _translated(environ: Mapping[str, str]) -> dict[str, str]:
    for starter, names, translate in (
        ("mpirun", "OMPI_*", mpirun.translate),
        ("srun", "SLURM_*", slurm.translate),
    ):
        try:
            if variables := translate(environ):
                return variables
        except KeyError as error:
            what = f"{error.args[0]} is not set, but other variables of {starter} are"
            raise UsageError(what, hint=_HINT.format(variables=names)) from None
        except (ValueError, IndexError) as error:
            what = f"{starter}'s variables ({names}) do not make sense: {error}"
            raise UsageError(what, hint=_HINT.format(variables=names)) from None
    return {}


def _check_place(environ: Mapping[str, str]) -> None:
    hint = _HINT.format(variables="RANK")
    if missing := [name for name in PLACE if not environ.get(name)]:
        raise UsageError(f"RANK is set, but not {', '.join(missing)}", hint=hint)
    numbers = {name: environ[name] for name in PLACE if name != "MASTER_ADDR"}
    for name, text in numbers.items():
        if not (text.isascii() and text.isdecimal()) or len(text) > 9:
            raise UsageError(f"{name}={text}: not a whole number from 0 to 999999999", hint=hint)
    rank, size, local_rank, local_size, port = map(int, numbers.values())
    if not (rank < size and local_rank < local_size <= size and port < 1 << 16):
        values = ", ".join(f"{name}={text}" for name, text in numbers.items())
        raise UsageError(f"these variables contradict each other: {values}", hint=hint)
