"""Whether this process is a rank, and who made it one: the one entry of all ways of starting."""

from __future__ import annotations

import os
from collections.abc import Mapping

from dragoman.errors import UsageError
from dragoman.launch import environment, mpirun, slurm
from dragoman.launch.environment import PLACE

_HINT = (
    "start ranks with --workers, --hosts, torchrun, mpirun or srun, which set all of them; to train alone "
    "in this shell, unset {variables}"
)


def is_rank() -> bool:
    """Was this process started as a rank: by us or torchrun (RANK is set), by mpirun, or by Slurm's srun?

    The last two have variables of their own, which are translated here.
    """
    if "RANK" not in os.environ:
        found = _translated(os.environ)
        if not found:
            return False
        os.environ.update(found)
        os.environ.update(environment.for_ranks(int(found["LOCAL_WORLD_SIZE"])))
    _check_place(os.environ)
    return True


def _translated(environ: Mapping[str, str]) -> dict[str, str]:
    for starter, variables, translate in (
        ("mpirun", "OMPI_*", mpirun.translate),
        ("srun", "SLURM_*", slurm.translate),
    ):
        try:
            if found := translate(environ):
                return found
        except KeyError as error:
            what = f"{error.args[0]} is not set, but others of {starter}'s variables are"
            raise UsageError(what, hint=_HINT.format(variables=variables)) from None
        except (ValueError, IndexError) as error:
            what = f"{starter}'s variables ({variables}) do not make sense: {error}"
            raise UsageError(what, hint=_HINT.format(variables=variables)) from None
    return {}


def _check_place(environ: Mapping[str, str]) -> None:
    hint = _HINT.format(variables="RANK")
    if missing := [name for name in PLACE if not environ.get(name)]:
        raise UsageError(f"RANK is set, but {', '.join(missing)} not", hint=hint)
    numbers = {name: environ[name] for name in PLACE if name != "MASTER_ADDR"}
    for name, text in numbers.items():
        if not (text.isascii() and text.isdecimal()) or len(text) > 9:
            raise UsageError(f"{name}={text} is not a number of ranks or ports", hint=hint)
    rank, size, local_rank, local_size, port = map(int, numbers.values())
    if not (rank < size and local_rank < local_size <= size and port < 1 << 16):
        what = ", ".join(f"{name}={text}" for name, text in numbers.items())
        raise UsageError(f"these cannot all be true: {what}", hint=hint)
