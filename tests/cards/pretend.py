"""Lets a process take itself for one with GPUs: torch names them, and what belongs on them is on the CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tests.cards import nccl

NAME, CAPABILITY = "Pretended A100", (8, 0)
_CPU = torch.device("cpu")


class Event:
    """torch.cuda.Event of a card that has always finished: the host's clock is its own."""

    def __init__(self, enable_timing: bool = False): ...

    def record(self, stream: object = None) -> None:
        self.at = time.perf_counter()

    def wait(self, stream: object = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1000


class _OnCpu(TorchFunctionMode):
    """Puts on the CPU what would go to a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.pin_memory:
            return args[0]
        named = {name: _moved(value) for name, value in (kwargs or {}).items()}
        return func(*map(_moved, args), **named)


def _moved(value: object) -> object:
    return _CPU if isinstance(value, torch.device) and value.type == "cuda" else value


def answers(uuids: Sequence[str], capability: tuple[int, int] = CAPABILITY) -> dict[str, Any]:
    """What torch.cuda answers with these GPUs, by the name of the function or class."""

    def properties(device: object = 0) -> SimpleNamespace:
        number = torch.device(device).index if isinstance(device, str | torch.device) else device
        uuid, (major, minor) = uuids[number or 0], capability
        return SimpleNamespace(name=NAME, uuid=uuid, major=major, minor=minor, total_memory=40 << 30)

    def set_device(device: object) -> None:
        properties(device)  # an IndexError for one that there is not

    return {
        "is_available": lambda: bool(uuids),
        "device_count": lambda: len(uuids),
        "current_device": lambda: 0,
        "set_device": set_device,
        "get_device_properties": properties,
        "get_device_name": lambda device=0: NAME,
        "get_device_capability": lambda device=0: capability,
        "get_arch_list": lambda: os.environ.get("PRETENDED_ARCHITECTURES", "sm_80").split(),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or capability >= (8, 0),
        "max_memory_reserved": lambda device=0: 1 << 30,
        "synchronize": lambda device=0: None,
        "Event": Event,
        "Stream": lambda device=0: None,
        "stream": lambda stream: nullcontext(),
    }


def gpus(uuids: Sequence[str]) -> None:
    """From now on this process has GPUs with these UUIDs, and NCCL to go with them; it may also have none."""
    for name, answer in answers(uuids).items():
        setattr(torch.cuda, name, answer)
    if not uuids:
        return
    torch.version.cuda = "13.0"
    nccl.stand_in()
    torch.set_num_threads(1)  # on GPUs nobody else says how many
    _let_parts_take_cpu_tensors()
    _OnCpu().__enter__()


def _let_parts_take_cpu_tensors() -> None:
    """Replaces what would look at the tensors themselves, or compute for minutes."""
    from dragoman.measure import probes
    from dragoman.sync import allreduce, bucket_sender

    ddp, future = allreduce.DistributedDataParallel, torch.futures.Future
    allreduce.DistributedDataParallel = lambda *args, device_ids, **more: ddp(*args, **more)
    bucket_sender.Future = lambda devices: future()
    probes._PEAK_SIZE["cuda"] = 64
