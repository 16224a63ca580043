"""Joins a cgroup, as a launcher in a container, without its kernel's log. Prints what it tells of two deaths.

python -m tests.launch.in_memory_group CGROUP
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from dragoman.launch.out_of_memory import Kills
from tests.launch.memory_group import glutton


class Silent:
    def kills(self) -> dict[int, str]:
        return {}


def main(folder: Path) -> None:
    (folder / "cgroup.procs").write_text("0")
    kills = Kills(Silent())
    short = glutton(folder)
    short.wait()
    killed = subprocess.Popen(["sleep", "600"])
    killed.kill()
    killed.wait()
    print(json.dumps([short.returncode, kills.told_of(short.pid), kills.told_of(killed.pid)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
