"""The world of a run: its ranks, their devices and collectives. The only reader of RANK and WORLD_SIZE.

One process is a world of one and makes the same calls.
"""

from __future__ import annotations

import atexit
import hmac
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
from dragoman.sync.failures import LostRank
from dragoman.sync.route import LISTENER, interface_towards, listen_at, own_address_towards


@dataclass(frozen=True)
class RankPlace:
    """A process's place in a world, and where the ranks of that world meet."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    address: str
    port: int
    listener: int | None = None  # rank 0: the descriptor of a socket that listens there already
    local_workers: int = 0  # ranks that this host has when none is missing; 0: local_size
    secret: str = ""  # that all ranks of this world know, and that no store holds
    key: str = ""  # what keys in the store begin with: ranks of another generation, and strangers, lack it

    @classmethod
    def of_environment(cls) -> RankPlace:
        """The place that the launcher, torchrun, mpirun or srun gave this process."""
        numbers = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        rank, size, local_rank, local_size = (int(os.environ[name]) for name in numbers)
        listener = os.environ.pop(LISTENER, None)  # removed: a descriptor has one owner
        # torchrun keeps the store when it starts ranks again: they must not find what others left.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return cls(
            rank=rank,
            size=size,
            local_rank=local_rank,
            local_size=local_size,
            address=os.environ["MASTER_ADDR"],
            port=int(os.environ["MASTER_PORT"]),
            listener=int(listener) if listener else None,
            key=f"attempt {attempt}",
        )


@dataclass(frozen=True)
class World:
    """A rank's view of the run: its own number and device, and the collectives with the other ranks."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    device: torch.device
    meeting_point: str = "127.0.0.1"  # the address at which ranks connected to each other
    meeting_port: int = 0
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

    def gather(self, tensor: torch.Tensor, to: Sequence[int] = (0,)) -> list[torch.Tensor]:
        """Every rank's CPU tensor of this shape, on these ranks; nothing on the others. Collective."""
        gathered: list[torch.Tensor] = []
        for rank in to:
            rows = [torch.empty_like(tensor) for _ in range(self.size)] if self.rank == rank else None
            dist.gather(tensor, rows, dst=rank, group=_control())
            gathered = rows or gathered
        return gathered

    def gather_bytes(self, content: bytes, to: Sequence[int] = (0,)) -> list[bytes]:
        """Every rank's bytes, of any length, on these ranks; nothing on the others. Collective."""
        lengths, padded = self._padded(content)
        rows = self.gather(padded, to)
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
        timeout = timedelta(seconds=self.timeout_seconds)
        return dist.TCPStore(
            self.meeting_point, self.meeting_port, is_master=False, wait_for_workers=False, timeout=timeout
        )

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
def join(timeout_seconds: float, place: RankPlace | None = None) -> Iterator[World]:
    """Joins the world that this process has a place in, by default the one it was started for. Collective."""
    global _control_group
    place = place or RankPlace.of_environment()
    _groups.clear()
    orphans.end_with_parent()
    timeout = timedelta(seconds=timeout_seconds)
    kernels.avoid_cudnn_attention()
    if "GLOO_SOCKET_IFNAME" not in os.environ:
        _check_meeting_point(place.address, is_shared=place.size > place.local_size)
    tcp_store = _store(place, timeout)
    store = dist.PrefixStore(place.key, tcp_store)
    device = agree(store, place.rank, place.size, place.local_rank)  # collective
    on_gpu = device.type == "cuda"
    if not on_gpu:
        # A rank that is missing comes back in seconds: its cores are left to it.
        torch.set_num_threads(max(1, cores() // (place.local_workers or place.local_size)))
    with _one_interface(interface_towards(place.address) or "lo"):
        backend = "nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.size, timeout=timeout)
        has_ended_well = False
        try:
            _control_group = dist.new_group(backend="gloo", timeout=timeout) if on_gpu else None
            _groups.extend(group for group in (dist.group.WORLD, _control_group) if group)
            world = World(
                rank=place.rank,
                size=place.size,
                local_rank=place.local_rank,
                local_size=place.local_size,
                device=device,
                meeting_point=place.address,
                meeting_port=tcp_store.port,
                timeout_seconds=timeout_seconds,
                under_torchrun="TORCHELASTIC_RUN_ID" in os.environ,
            )
            _check_members(place, world)  # collective
            yield world
            has_ended_well = True
        finally:
            # NCCL's communicators end once all ranks end them. After an error the others may never do so, and
            # the reason has yet to be printed. The process ends soon (`leave`), and they end with it.
            if has_ended_well or not on_gpu:
                dist.destroy_process_group()
            _control_group = None


def _check_members(place: RankPlace, world: World) -> None:
    """Raises unless every rank knows this world's secret, before anything of the run is sent. Collective.

    A store lists its names to whoever connects, so a stranger can take the place of a rank that has yet to
    come, but cannot prove that it was invited.
    """
    if not place.secret:
        return
    proofs = world.gather_text(_proof(place, place.rank))  # collective
    for rank, proof in enumerate(proofs):
        if not hmac.compare_digest(proof.encode(), _proof(place, rank).encode()):
            raise LostRank(
                f"a stranger came in the place of rank {rank}", hint="use a network that is your own"
            )


def _proof(place: RankPlace, rank: int) -> str:
    return hmac.new(place.secret.encode(), f"{place.key} {rank}".encode(), "sha256").hexdigest()


def _store(place: RankPlace, timeout: timedelta) -> dist.TCPStore:
    """The store through which ranks find each other. Rank 0 listens at one address; torch would at all.

    Our launcher has already opened the socket; under the user's torchrun, its agent keeps the store.
    """
    address, port, size = place.address, place.port, place.size
    if place.rank != 0 or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return dist.TCPStore(address, port, size, is_master=False, timeout=timeout)
    listener = socket.socket(fileno=place.listener) if place.listener else listen_at(address, port)
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
