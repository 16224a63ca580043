"""A rank that torchrun starts twice: the first attempt fails; in the second, rank 0 is the last to come."""

from __future__ import annotations

import os
import time

from dragoman.leave import leave
from dragoman.sync import world as worlds

if __name__ == "__main__":
    attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), os.environ["RANK"]
    if attempt and rank == "0":
        time.sleep(2)
    with worlds.join(20) as world:
        total = world.sum([1 + world.rank])
        if attempt == 0:
            leave(1)
        print(f"attempt {attempt}: {total}\n", end="", flush=True)
    leave(0)
