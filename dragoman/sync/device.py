"""The device of each rank. All ranks agree on its type through the store, before a backend is chosen.

Ranks with a GPU would use NCCL, and ranks without one gloo: each side would wait minutes for the other, in
silence. Not yet run on hardware.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist
from pydantic import BaseModel

from dragoman import format_units
from dragoman.errors import DragomanError

_READ_SECONDS = (
    10.0  # how long rank 0, which keeps the store, waits for the others to read it before an error
)


class Offer(BaseModel):
    """What a rank could compute on."""

    host: str
    local_rank: int
    gpus: int  # that torch can use in this process
    gpu: int | None = None  # the number of the one for this rank
    uuid: str = ""  # of that one
    lacking: str = ""  # why there is none for this rank


def agree(store: dist.Store, rank: int, size: int, local_rank: int) -> torch.device:
    """This rank's device: a GPU on every rank, or the CPU on every rank, or the same error. Collective."""
    store.set(f"dragoman/device/{rank}", _offer(local_rank).model_dump_json())
    texts = store.multi_get([f"dragoman/device/{other}" for other in range(size)])  # waits for every rank
    offers = [Offer.model_validate_json(text) for text in texts]
    if refused := refusal(offers):
        _wait_until_all_have_read(store, rank, size)
        raise refused
    own = offers[rank]
    return torch.device("cpu") if own.gpu is None else torch.device("cuda", own.gpu)


def _offer(local_rank: int) -> Offer:
    """What this rank could compute on; makes its GPU the current one.

    A rank uses the GPU with its number, or the only one it sees, as srun shows with --gpus-per-task.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    offer = Offer(host=socket.gethostname(), local_rank=local_rank, gpus=gpus)
    if gpus == 0:
        offer.lacking = "torch was built without CUDA" if torch.version.cuda is None else "torch finds none"
    elif 1 < gpus <= local_rank:
        offer.lacking = f"torch can use {gpus} there, for ranks 0 to {gpus - 1} of the host"
    else:
        number = local_rank if gpus > 1 else 0
        try:
            torch.cuda.set_device(number)
            offer.uuid = str(torch.cuda.get_device_properties(number).uuid)
            offer.gpu = number
        except RuntimeError as error:  # a driver or card that fails only when it is used
            offer.lacking = str(error).partition("\n")[0]
    return offer


def refusal(offers: Sequence[Offer]) -> DragomanError | None:
    """Why these ranks cannot train together, if they cannot. Offers are in the order of ranks."""
    if not any(offer.gpus for offer in offers):
        return None
    for rank, offer in enumerate(offers):
        if offer.gpus and offer.gpu is None:
            return DragomanError(
                f"rank {rank} (number {offer.local_rank} on {offer.host}) has no GPU: {offer.lacking}",
                hint="start fewer ranks on that host, or check CUDA_VISIBLE_DEVICES and nvidia-smi there",
            )
    return _without(offers) or _shared(offers)


def _without(offers: Sequence[Offer]) -> DragomanError | None:
    """The error if some hosts have no GPU and others do."""
    lacking = {offer.host: offer.lacking for offer in offers if not offer.gpus}
    if not lacking:
        return None
    having = next(offer.host for offer in offers if offer.gpus)
    each = format_units.hosts([f"{host} ({why})" for host, why in lacking.items()])
    return DragomanError(
        f"no GPU that torch can use on {each}, but {having} has one: all ranks need the same kind of device",
        hint="find out what is missing there with dragoman doctor, leave that host out, or train on CPUs: "
        "set CUDA_VISIBLE_DEVICES to nothing on the hosts with GPUs",
    )


def _shared(offers: Sequence[Offer]) -> DragomanError | None:
    """The error if two ranks would compute on the same GPU, which NCCL refuses."""
    users: dict[str, int] = {}
    for rank, offer in enumerate(offers):
        other = users.setdefault(offer.uuid, rank)
        if other != rank:
            why = ", the only one that they see" if offer.gpus == 1 else ""
            return DragomanError(
                f"rank {other} on {offers[other].host} and rank {rank} on {offer.host} have the same "
                f"GPU{why} ({offer.uuid})",
                hint="start one rank per GPU, or check CUDA_VISIBLE_DEVICES; with srun, use "
                "--gpus-per-node or --gpus-per-task=1",
            )
    return None


def _wait_until_all_have_read(store: dist.Store, rank: int, size: int) -> None:
    """Keeps rank 0 alive, and the store with it, until no rank needs it any more."""
    store.add("dragoman/device/read", 1)
    deadline = time.monotonic() + _READ_SECONDS
    while rank == 0 and store.add("dragoman/device/read", 0) < size and time.monotonic() < deadline:
        time.sleep(0.01)
