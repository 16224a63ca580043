"""A program of somebody else that uses all of a core."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture
def glutton(tmp_path: Path) -> str:
    """A program of that name which uses all of a core. Its parent is not of this test's making."""
    shutil.copy("/bin/sh", tmp_path / "glutton")
    return str(tmp_path / "glutton")


@contextmanager
def detached(program: str) -> Iterator[int]:
    """As somebody else would have started it, and its process number: no child of ours."""
    start = f"setsid {program} -c 'while :; do :; done' > /dev/null 2>&1 & echo $!"
    number = subprocess.run(["sh", "-c", start], capture_output=True, text=True, check=True).stdout.strip()
    try:
        yield int(number)
    finally:
        os.kill(int(number), signal.SIGKILL)
