"""A backend that behaves as NCCL does where it differs from gloo, which carries its bytes.

- A communicator is made at the group's first collective, not with the group, and that takes a while.
- Its connections use the interface that NCCL_SOCKET_IFNAME names at that moment, or the first that comes.
- Destroying a group waits for its other ranks, and so does the end of a Python process that left groups
  behind. After the group's timeout the watchdog ends the process.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import psutil
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

startup_seconds = 0.0  # that a communicator's first collective takes longer
interfaces: list[str] = []  # of each communicator made by this process
WATCHDOG = 134  # the exit code of a process that the watchdog ended, as of an abort


class LazyGroup(dist.ProcessGroup):
    """Stands for ProcessGroupNCCL."""

    class Options(SimpleNamespace):
        pass

    def __init__(self, store: dist.Store, rank: int, size: int, options: Options):
        super().__init__(rank, size)
        self._store, self._rank, self._size = store, rank, size
        self._timeout: timedelta = options._timeout
        self._communicator: dist.ProcessGroupGloo | None = None
        self._making = threading.Lock()
        atexit.register(self._wait_for_all)

    def getBackendName(self) -> str:
        return "nccl"

    def _set_sequence_number_for_group(self) -> None: ...

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def shutdown(self) -> None:
        self._wait_for_all()

    abort = shutdown

    def _made(self) -> dist.ProcessGroupGloo:
        with self._making:
            if not self._communicator:
                time.sleep(startup_seconds)
                options = dist.ProcessGroupGloo._Options()
                options._devices = [dist.ProcessGroupGloo.create_device(interface=_interface())]
                options._timeout = self._timeout
                self._communicator = dist.ProcessGroupGloo(self._store, self._rank, self._size, options)
        return self._communicator

    def _wait_for_all(self) -> None:
        """Waits until all ranks of a communicator end it."""
        atexit.unregister(self._wait_for_all)
        if not self._communicator:
            return
        deadline = time.monotonic() + self._timeout.total_seconds()
        try:
            self._communicator.barrier().wait()
        except RuntimeError:  # gloo notices that a rank is gone; NCCL does not
            time.sleep(max(0.0, deadline - time.monotonic()))
            os._exit(WATCHDOG)


def _collective(name: str) -> Callable[..., dist.Work]:
    def call(self: LazyGroup, *arguments: Any) -> dist.Work:
        return getattr(self._made(), name)(*arguments)

    return call


for _name in ("allreduce", "broadcast", "reduce", "allgather", "barrier"):
    setattr(LazyGroup, _name, _collective(_name))


def _interface() -> str:
    """The interface that NCCL would use now."""
    wanted = os.environ.get("NCCL_SOCKET_IFNAME", "")
    names = sorted(psutil.net_if_addrs(), key=lambda name: (name == "lo", name))  # loopback comes last
    if wanted.startswith("="):
        name = next(name for name in names if name in wanted[1:].split(","))
    else:
        name = next(name for name in names if name.startswith(tuple(wanted.split(","))))
    interfaces.append(name)
    return name


def stand_in() -> None:
    """From now on this process has the stand-in for NCCL."""
    c10d.is_nccl_available = lambda: True
    c10d.ProcessGroupNCCL = LazyGroup
    torch.cuda.nccl.version = lambda: (2, 0, 0)  # torch logs it when a collective fails
