"""Settles the number format of a run's computing, the same on all ranks, once their devices are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dragoman.config import Training
from dragoman.cost import capability
from dragoman.cost.capability import AskedPrecision, Capability
from dragoman.model import kernels
from dragoman.sync.topology import Placement


@dataclass(frozen=True)
class SettledPrecision:
    """The number format that all ranks compute in."""

    settings: Training  # whose train.precision is no longer "auto"
    words: str  # such as "fp16 with loss scaling"
    why: str = ""  # empty on CPUs, and if the settings name the format

    def __str__(self) -> str:
        return f"{self.words} ({self.why})" if self.why else self.words


@dataclass(frozen=True)
class RankGpu:
    """The GPU of a rank."""

    name: str  # and where it is
    capability: Capability


def settle(settings: Training, asked: AskedPrecision, placement: Placement) -> SettledPrecision:
    """The format of the settings, or what `auto` stands for on these devices. Collective.

    `asked` is the user's; the settings may already hold the format that the run began with.
    """
    cards = _cards(placement)  # collective
    capabilities = [card.capability for card in cards]
    wanted = settings.train.precision
    settled = capability.automatic(capabilities) if wanted == "auto" else wanted
    computed = settled if cards else "fp32"
    if cards and computed == "fp32":
        kernels.use_tf32()
    train = settings.train.model_copy(update={"precision": settled})
    return SettledPrecision(
        settings.model_copy(update={"train": train}),
        capability.words(computed, capabilities),
        _why(wanted, asked, cards),
    )


def kept(settings: Training, before: Training) -> Training:
    """The settings with the format that the run began with, unless they name one."""
    if settings.train.precision != "auto":
        return settings
    train = settings.train.model_copy(update={"precision": before.train.precision})
    return settings.model_copy(update={"train": train})


def _cards(placement: Placement) -> list[RankGpu]:
    """The GPU of each rank, known to every rank; empty on CPUs. Collective."""
    world, topology = placement.world, placement.topology
    texts = world.gather_text(_own(world.device))  # collective
    cards = []
    for rank, text in enumerate(texts):
        major, minor, name = text.split(" ", 2)
        if name:
            place = f"{name} on {topology.hosts[topology.rank_hosts[rank]]}"
            cards.append(RankGpu(place, (int(major), int(minor))))
    return cards


def _own(device: torch.device) -> str:
    """Compute capability and name of this rank's GPU; no name on a CPU."""
    if device.type != "cuda":
        return "0 0 "
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major} {minor} {torch.cuda.get_device_name(device)}"


def _why(wanted: AskedPrecision, asked: AskedPrecision, cards: Sequence[RankGpu]) -> str:
    if not cards or asked != "auto":
        return ""
    if wanted != "auto":
        return "as the run began; --set train.precision changes it"
    lacking = [card.name for card in cards if not capability.has_bf16(card.capability)]
    return f"{lacking[0]} has no units for bf16" if lacking else "every GPU has units for bf16"
