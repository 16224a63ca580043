"""The world of a run: its ranks, their devices and collectives. The only reader of RANK and WORLD_SIZE.

One process is a world of one and makes the same calls.
"""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address

import torch
import torch.distributed as dist

from dragoman import orphans
from dragoman.data.parallel import cores
from dragoman.errors import DragomanError
from dragoman.model import kernels
from dragoman.sync.device import agree
from dragoman.sync.route import LISTENER, interface_towards, listen_at, own_address_towards


@dataclass(frozen=True)
class World:
    """A rank's view of the run: its own number and device, and the collectives with the other ranks."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    device: torch.device
    meeting_point: str = "127.0.0.1"  # the address at which ranks connected to each other
    timeout_seconds: float = 600.0  # of every collective
    under_torchrun: bool = False  # started by the user's torchrun, which listens and unpickles; we would not

    @property
    def is_main(self) -> bool:
        """Is this rank 0, the only one that writes to disk and to the terminal?"""
        return self.rank == 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """The sums over all ranks. Collective: every rank calls it with the same number of values."""
        tensor = torch.tensor(values, dtype=torch.float64)
        self.sum_(tensor)
        return tensor.tolist()

    def sum_(self, tensor: torch.Tensor) -> None:
        """Sums a CPU tensor over all ranks, in place; no device has to be waited for. Collective."""
        dist.all_reduce(tensor, group=_control())

    def most(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over all ranks. Collective."""
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=_control())
        return tensor.tolist()

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Every rank's CPU tensor of this shape, on rank 0; nothing on the others. Collective."""
        rows = [torch.empty_like(tensor) for _ in range(self.size)] if self.is_main else None
        dist.gather(tensor, rows, dst=0, group=_control())
        return rows or []

    def gather_bytes(self, content: bytes) -> list[bytes]:
        """Every rank's bytes, of any length, on rank 0; nothing on the others. Collective."""
        lengths, padded = self._padded(content)
        rows = self.gather(padded)
        return [row[:end].numpy().tobytes() for row, end in zip(rows, lengths, strict=False)]

    def gather_text(self, text: str) -> list[str]:
        """Every rank's text, of any length, on every rank. Collective."""
        lengths, padded = self._padded(text.encode())
        table = torch.zeros(self.size, len(padded), dtype=torch.uint8)
        table[self.rank] = padded
        self.sum_(table)
        return [row[:end].numpy().tobytes().decode() for row, end in zip(table, lengths, strict=True)]

    def _padded(self, content: bytes) -> tuple[list[int], torch.Tensor]:
        """The length of each rank's bytes, and this rank's bytes padded beyond the longest. Collective."""
        lengths = torch.zeros(self.size, dtype=torch.int64)
        lengths[self.rank] = len(content)
        self.sum_(lengths)
        padded = content.ljust(int(lengths.max()) + 1, b"\0")
        return lengths.tolist(), torch.frombuffer(bytearray(padded), dtype=torch.uint8)

    def connect_to_store(self) -> dist.TCPStore:
        """A connection of its own to the store through which the ranks met: its calls hold up no other."""
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        timeout = timedelta(seconds=self.timeout_seconds)
        return dist.TCPStore(address, port, is_master=False, wait_for_workers=False, timeout=timeout)

    def group(self, ranks: Sequence[int]) -> dist.ProcessGroup:
        """A group of some ranks, for gradients. Collective, also for ranks outside it."""
        group = dist.new_group(list(ranks), timeout=timedelta(seconds=self.timeout_seconds))
        _groups.append(group)
        return group

    def broadcast_(self, tensor: torch.Tensor) -> None:
        """Sends rank 0's values to all ranks, in place. Collective."""
        dist.broadcast(tensor, src=0)

    def broadcast_bytes(self, content: bytes, source: int = 0) -> bytes:
        """The source's bytes, on every rank; other ranks' argument is ignored. No pickle. Collective."""
        length = torch.tensor([len(content)], dtype=torch.int64)
        dist.broadcast(length, src=source, group=_control())
        buffer = torch.zeros(int(length), dtype=torch.uint8)
        if self.rank == source:
            buffer.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8)) if content else None
        dist.broadcast(buffer, src=source, group=_control())
        return bytes(buffer.numpy().tobytes())

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Sends a CPU tensor to one rank, which must receive it."""
        dist.send(tensor, to, group=_control())

    def receive_(self, tensor: torch.Tensor, origin: int) -> None:
        """Receives what that rank sends into a CPU tensor of the same size."""
        dist.recv(tensor, origin, group=_control())

    def swap_(self, outgoing: torch.Tensor, to: int, incoming: torch.Tensor, origin: int) -> None:
        """Sends a CPU tensor to one rank while receiving another; those ranks do the same."""
        # The receive first: gloo announces it over the same connection. Behind a burst the announcement would
        # arrive only after the burst: two hosts would send in turns, at half the rate.
        receiving = dist.irecv(incoming, origin, group=_control())
        sending = dist.isend(outgoing, to, group=_control())
        for work in (sending, receiving):
            if work:
                work.wait()


_control_group: dist.ProcessGroup | None = None
# The groups of the newest world. They stay when it ends: neither DDP nor torch's own list may be their last
# owner. It would destroy them while holding Python's lock, and wait for threads that need the lock to release
# what they last sent.
_groups: list[dist.ProcessGroup] = []
atexit.register(_groups.clear)  # no later: during Python's shutdown their threads abort the process


def _control() -> dist.ProcessGroup | None:
    """The group for small CPU tensors, which travel over gloo even if gradients travel over NCCL."""
    return _control_group


@contextmanager
def join(timeout_seconds: float) -> Iterator[World]:
    """Joins the world that this process was started for. Collective."""
    global _control_group
    _groups.clear()
    orphans.end_with_parent()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    local_rank, local_size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    meeting_point = os.environ["MASTER_ADDR"]
    timeout = timedelta(seconds=timeout_seconds)
    kernels.avoid_cudnn_attention()
    if "GLOO_SOCKET_IFNAME" not in os.environ:
        _check_meeting_point(meeting_point, is_shared=size > local_size)
    # torchrun keeps the store when it starts ranks again: what the earlier ones left there must not be found.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"attempt {attempt}", _store(rank, size, timeout))
    device = agree(store, rank, size, local_rank)  # collective
    on_gpu = device.type == "cuda"
    if not on_gpu:
        torch.set_num_threads(max(1, cores() // local_size))
    with _one_interface(interface_towards(meeting_point) or "lo"):
        backend = "nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
        has_ended_well = False
        try:
            _control_group = dist.new_group(backend="gloo", timeout=timeout) if on_gpu else None
            _groups.extend(group for group in (dist.group.WORLD, _control_group) if group)
            place = (rank, size, local_rank, local_size)
            yield World(*place, device, meeting_point, timeout_seconds, "TORCHELASTIC_RUN_ID" in os.environ)
            has_ended_well = True
        finally:
            # NCCL's communicators end once all ranks end them. After an error the others may never do so, and
            # the reason has yet to be printed. The process ends soon (`leave`), and they end with it.
            if has_ended_well or not on_gpu:
                dist.destroy_process_group()
            _control_group = None


def _store(rank: int, size: int, timeout: timedelta) -> dist.Store:
    """The store through which ranks find each other. Rank 0 listens at one address; torch would at all.

    Our launcher has already opened the socket; under the user's torchrun, its agent keeps the store.
    """
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank != 0 or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return dist.TCPStore(address, port, size, is_master=False, timeout=timeout)
    descriptor = os.environ.pop(LISTENER, None)  # removed: a descriptor has one owner
    listener = socket.socket(fileno=int(descriptor)) if descriptor else listen_at(address, port)
    port = listener.getsockname()[1]
    return dist.TCPStore(
        address, port, size, is_master=True, timeout=timeout, master_listen_fd=listener.detach()
    )


@contextmanager
def _one_interface(name: str) -> Iterator[None]:
    """Makes gradients listen and travel only on the interface that leads to rank 0.

    gloo would look up its own host name, which Debian resolves to loopback: other hosts would wait forever.
    NCCL would listen on the first interface it likes, and asks only when it first sends something. Variables
    set by the user stay, and an interface named for gloo alone is also NCCL's. Ours are removed with the
    world: a process started later may belong to another.
    """
    name = os.environ.get("GLOO_SOCKET_IFNAME", name)
    wanted = {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": f"={name}"}  # "=": this name, not a prefix
    ours = {variable: value for variable, value in wanted.items() if variable not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for variable in ours:
            del os.environ[variable]


def _check_meeting_point(name: str, is_shared: bool) -> None:
    """Refuses a name that resolves to loopback on its own machine: ranks elsewhere would wait forever."""
    if not is_shared or name in ("localhost", "::1") or name.startswith("127."):
        return
    if ip_address(own_address_towards(name)).is_loopback:
        raise DragomanError(
            f"ranks connect to each other at {name}, which is loopback here: other hosts cannot reach it",
            hint=f"in /etc/hosts, give {name} this machine's address instead of 127.0.1.1, or start the "
            "run with the address instead of the name",
        )
