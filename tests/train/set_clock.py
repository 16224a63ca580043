"""A rank whose wall clock is set under way: `python -m tests.train.set_clock SECONDS PATH train ...`.

time.time() is ahead by so many seconds (behind, if negative) as soon as the path exists.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path

true_time = time.time


def main(seconds: float, path: Path) -> None:
    time.time = lambda: true_time() + (seconds if path.exists() else 0.0)
    runpy.run_module("dragoman", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _, by, when, *rest = sys.argv
    sys.argv = ["dragoman", *rest]
    main(float(by), Path(when))
