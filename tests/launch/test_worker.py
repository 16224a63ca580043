"""Whether a process is a rank, from variables that may be whole, partial or nonsense."""

from __future__ import annotations

import pytest

from dragoman.errors import UsageError
from dragoman.launch import environment, worker
from tests.launch.test_mpirun import RANK_3 as OF_MPIRUN
from tests.launch.test_slurm import RANK_3 as OF_SRUN

PLACE = environment.place(1, 4, 1, 2, "10.0.0.1", 29_500)


@pytest.fixture(autouse=True)
def no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PLACE, *OF_MPIRUN, *OF_SRUN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(worker.os, "environ", dict(worker.os.environ))  # translated ones stay in the copy


@pytest.mark.parametrize("variables", [PLACE, OF_MPIRUN, OF_SRUN])
def test_every_way_of_starting_makes_a_rank(variables: dict[str, str]) -> None:
    worker.os.environ.update(variables)
    assert worker.is_rank()


def test_a_shell_without_any_of_them_is_no_rank() -> None:
    assert not worker.is_rank()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        *(({k: v for k, v in PLACE.items() if k != name}, name) for name in PLACE if name != "RANK"),
        *(({**PLACE, name: "many"}, name) for name in PLACE if name != "MASTER_ADDR"),
        *(({**PLACE, name: "-1"}, name) for name in PLACE if name != "MASTER_ADDR"),
        ({**PLACE, "RANK": "9" * 5_000}, "RANK"),
        ({**PLACE, "RANK": "4"}, "RANK=4"),
        ({**PLACE, "LOCAL_RANK": "2"}, "LOCAL_RANK=2"),
        ({**PLACE, "MASTER_PORT": "65536"}, "MASTER_PORT=65536"),
        *(
            (
                {k: v for k, v in OF_MPIRUN.items() if k != f"OMPI_COMM_WORLD_{name}"},
                f"OMPI_COMM_WORLD_{name}",
            )
            for name in ("RANK", "LOCAL_RANK", "LOCAL_SIZE")
        ),
        ({**OF_MPIRUN, "OMPI_COMM_WORLD_SIZE": "four"}, "OMPI_"),
        *(
            ({k: v for k, v in OF_SRUN.items() if k != name}, name)
            for name in OF_SRUN
            if name != "SLURM_STEP_ID"
        ),
        ({**OF_SRUN, "SLURM_STEP_ID": "one"}, "SLURM_"),
        ({**OF_SRUN, "SLURM_NODEID": "7"}, "SLURM_"),
    ],
)
def test_partial_or_impossible_variables_are_named(variables: dict[str, str], name: str) -> None:
    worker.os.environ.update(variables)
    with pytest.raises(UsageError, match=name):
        worker.is_rank()
