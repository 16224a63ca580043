"""Ranks that add up numbers until they are cut: `python -m tests.sync.cut_ranks FOLDER` as a rank.

Each writes how many sums it has made to FOLDER/sums-RANK. Once there is FOLDER/cut, it cuts its connections,
and prints how many seconds later its sum has failed.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from dragoman.sync import connections
from dragoman.sync import world as worlds
from dragoman.sync.failures import LostRank, explained

moment = 0.0


def cut_when_told(folder: Path) -> None:
    global moment
    while not (folder / "cut").exists():
        time.sleep(0.01)
    moment = time.monotonic()
    assert connections.cut() > 0


def main(folder: Path) -> None:
    threading.Thread(target=cut_when_told, args=(folder,), daemon=True).start()
    try:
        with explained(), worlds.join(600) as world:
            for number in range(1_000_000):
                world.sum([1.0])
                (folder / f"sums-{world.rank}").write_text(str(number))
    except LostRank:
        print(time.monotonic() - moment, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
