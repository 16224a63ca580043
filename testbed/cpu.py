"""Limits all processes of a host together to a share of one core.

Where we may create a cgroup, the kernel enforces the quota. Where the cgroup tree is read-only (most
containers), a controller process (`dutycycle.py`) stops and continues the host's processes so that they get
the same share.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from testbed.host import Host, TestbedError

_PERIOD_MICROSECONDS = 20_000
_UNIFIED = Path("/sys/fs/cgroup")
_VERSION_1 = Path("/sys/fs/cgroup/cpu")

# $0: the cgroup, removed when the input closes, also if the owner was killed: its processes end then too.
_KEEP = """
mkdir "$0" && echo ready && cat > /dev/null
for try in $(seq 100); do rmdir "$0" 2> /dev/null && exit; [ -d "$0" ] || exit; sleep 0.1; done
"""


class Quota(Protocol):
    def set(self, share: float | None) -> None:
        """Limit the host to this share of one core from now on; None removes the limit."""

    def end(self) -> None:
        """Clean up; call this after the host has ended."""


def quota(host: Host) -> Quota:
    """The quota of a host, by whichever means this machine allows."""
    parent = _cgroup_parent()
    return CgroupQuota(host, parent) if parent else StopQuota(host)


def _cgroup_parent() -> Path | None:
    """Where a cgroup with a CPU quota can be created without changing existing ones; None if nowhere."""
    controllers = _UNIFIED / "cgroup.subtree_control"
    if controllers.exists() and "cpu" in controllers.read_text().split() and os.access(_UNIFIED, os.W_OK):
        return _UNIFIED
    if (_VERSION_1 / "cgroup.procs").exists() and os.access(_VERSION_1, os.W_OK):
        return _VERSION_1
    return None


class CgroupQuota:
    """The kernel's own quota."""

    def __init__(self, host: Host, parent: Path) -> None:
        self._folder = parent / f"testbed-{os.getpid()}-{host.name}-{uuid.uuid4().hex[:8]}"
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEP, str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._keeper.stdout
        if self._keeper.stdout.readline() != "ready\n":
            raise TestbedError(
                f"cannot create cgroup {self._folder}: {self._keeper.communicate()[1].strip()}"
            )
        host.cgroup = str(self._folder / "cgroup.procs")
        moved: set[int] = set()
        while new := set(host.processes()) - moved:  # repeat: a process may have started another meanwhile
            for pid in new:
                with suppress(ProcessLookupError):
                    Path(host.cgroup).write_text(str(pid))
            moved |= new

    def set(self, share: float | None) -> None:
        quota = None if share is None else max(1000, round(share * _PERIOD_MICROSECONDS))
        if (self._folder / "cpu.max").exists():
            (self._folder / "cpu.max").write_text(f"{quota or 'max'} {_PERIOD_MICROSECONDS}")
        else:
            (self._folder / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS))
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota or -1))

    def end(self) -> None:
        self._keeper.communicate()


class StopQuota:
    """Stops and continues processes; only parents that use WUNTRACED (shells, debuggers) notice."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._controller: subprocess.Popen[bytes] | None = None

    def set(self, share: float | None) -> None:
        self.end()
        if share is not None:
            script = Path(__file__).with_name("dutycycle.py")
            command = [sys.executable, "-I", "-S", str(script), str(self._host.pid), str(share)]
            self._controller = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def end(self) -> None:
        if self._controller:
            self._controller.communicate()
            self._controller = None
