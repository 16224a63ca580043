"""Runs all tests, for `make test`: those that fail are tried once more, by themselves, and listed at the end.

Clocks, links and time limits are tested on machines that other programs share. A test that fails twice has
failed; one that passes at the second try is worth a look, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FAILED = Path(".pytest_cache/v/cache/lastfailed")  # where pytest keeps the names of failed tests


class Part(NamedTuple):
    """Some of the tests: how they are chosen, and how they are run the first time."""

    chosen: Sequence[str]
    at_first: Sequence[str] = ()


PARTS = (
    Part(("-m", "not alone"), ("-n", "2", "--dist", "worksteal", "--cache-clear")),
    Part(("-m", "alone")),
)


def pytest(*options: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def failed() -> list[str]:
    return sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []


def main(parts: Sequence[Part] = PARTS) -> int:
    """The exit code of the first part that fails twice, or 0."""
    tried_twice: list[str] = []
    code = 0
    for part in parts:
        if not (code := pytest(*part.chosen, *part.at_first)):
            continue
        tried_twice += failed()
        if code := pytest(*part.chosen, "--last-failed", "--last-failed-no-failures", "none"):
            break
    for name in tried_twice:
        print(f"tried twice, {'failed again' if code and name in failed() else 'then passed'}: {name}")
    return code


if __name__ == "__main__":
    sys.exit(main())
