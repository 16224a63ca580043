"""A run over pretended hosts: ranks of this machine with host names and disks of their own.

`python -m tests.train.hosts TASK CONFIG HOSTS SETTINGS...` is one rank. HOSTS says for each
rank, separated by commas, its host and the folder that is its disk: `a=/tmp/x/a,b=/tmp/x/b`.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman import config
from dragoman.config import Training
from dragoman.errors import DragomanError
from dragoman.rundir import RunFolder
from dragoman.train.job import TrainingJob
from dragoman.train.run import run
from tests import ranks
from tests.ranks import Ended
from tests.train.runs import Task


def train(task: Task, hosts: Sequence[tuple[str, Path]], *settings: str) -> Ended:
    """Trains with a rank on each of these hosts; the run's folder is DISK/run."""
    places = ",".join(f"{name}={disk}" for name, disk in hosts)
    return ranks.run("tests.train.hosts", [task.data, task.config, places, *settings], len(hosts))


def sent(result: Ended) -> list[tuple[str, int | None]]:
    """What went from which host to which others, as "a b c", and the step if it was of a checkpoint."""
    found: list[tuple[str, int | None]] = []
    for line in result.stdout.splitlines():
        if re.search(r"\([\d.,]+ MB\)$", line):
            names = re.findall(r"\b[a-c]\b", line.partition(":")[0])
            step = re.search(r"\bstep (\d+)", line)
            found.append((" ".join(names), int(step[1]) if step else None))
    return found


def main(data: str, settings: str, hosts: str, *changes: str) -> None:
    name, _, disk = hosts.split(",")[int(os.environ["RANK"])].partition("=")
    socket.gethostname = lambda: name
    filled = config.load(Training, Path(settings), changes)
    run(TrainingJob(filled, Path(data), RunFolder(Path(disk) / "run")))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except DragomanError as error:
        print(f"error: {error}\n", end="", file=sys.stderr, flush=True)
        os._exit(error.exit_code)
    sys.stdout.flush()
    os._exit(0)  # as the command does: torch's stores may abort a process while Python takes itself down
