"""A cgroup that holds little memory, and a program that wants more."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.hanging import until

_UNIFIED, _VERSION_1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
_BYTES = 150_000_000
# Joins the cgroup and fills its memory; of the processes there, the kernel should choose this one.
GLUTTON = """
import sys
from pathlib import Path
Path(sys.argv[1], "cgroup.procs").write_text("0")
Path("/proc/self/oom_score_adj").write_text("1000")
filled = []
while True:
    filled.append(bytearray(b"1" * 10_000_000))
"""


@contextmanager
def created() -> Iterator[Path]:
    """A cgroup of its own; skips where there can be none."""
    if os.geteuid() or not (parent := _parent()):
        pytest.skip("no cgroup with a limit of memory can be made here: that needs root and a writable tree")
    folder = parent / f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        is_version_1 = (folder / "memory.limit_in_bytes").exists()
        (folder / ("memory.limit_in_bytes" if is_version_1 else "memory.max")).write_text(str(_BYTES))
        with suppress(OSError):  # a kernel without swap
            swap = "memory.memsw.limit_in_bytes" if is_version_1 else "memory.swap.max"
            (folder / swap).write_text(str(_BYTES) if is_version_1 else "0")
        yield folder
    finally:
        until(lambda: not (folder / "cgroup.procs").read_text())
        folder.rmdir()


def glutton(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", GLUTTON, str(folder)])


def _parent() -> Path | None:
    controllers = _UNIFIED / "cgroup.subtree_control"
    if controllers.exists() and "memory" in controllers.read_text().split() and os.access(_UNIFIED, os.W_OK):
        return _UNIFIED
    return _VERSION_1 if os.access(_VERSION_1, os.W_OK) else None
