"""Two ranks of which one pretends to be another host: `python -m tests.doctor.ranks` under torchrun."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

from dragoman.doctor import at_start, host
from dragoman.doctor.judge import judge
from dragoman.sync import world as worlds

SECONDS_AHEAD = 7.0

if __name__ == "__main__":
    with worlds.join(60) as world:
        own = host.facts(None, Path("."))
        is_other = world.rank == 1
        if is_other:
            own.name, own.versions["torch"] = "other", "9.9"
            own.disk_path = "/" + "long/" * 500  # more than a line of text
        found = at_start.gather(world, own, lambda: time.time() + SECONDS_AHEAD * is_other)
        if world.is_main:
            assert found[1].disk_path == "/" + "long/" * 500
            print(json.dumps([asdict(check) for check in judge(found, None)]))
