"""Two ranks add up a number each, and rank 1 is late: it comes when it reads a line.

python -m tests.late_rank RANK FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from dragoman import stacks


def waits_for_the_other(number: torch.Tensor) -> None:
    dist.all_reduce(number)


def main(rank: int, folder: Path) -> None:
    stacks.arm(folder / f"stacks-{rank}")
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    number = torch.tensor(rank + 1)
    print("up", flush=True)
    if rank == 1:
        input()
    waits_for_the_other(number)
    print(number.item(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
