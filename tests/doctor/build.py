"""Facts of hosts that nobody has, to change one at a time."""

from __future__ import annotations

from typing import Any

from dragoman.doctor.check import Check
from dragoman.doctor.facts import DataFacts, HostFacts, Interface
from dragoman.plan.needs import Needs

NEEDS = Needs(
    parameters=60_000_000,
    moments=120_000_000,
    checkpoint_bytes=720e6,
    checkpoints=4,
    activation_bytes=1.4e9,
    step_flops=8e12,
    less_memory="data.split=2 or train.recompute=true",
)


def host(number: int, **changes: Any) -> HostFacts:
    """Number 0 is h0 with 10.77.0.1, and so on."""
    facts: dict[str, Any] = {
        "name": f"h{number}",
        "boot": f"boot-{number}",
        "versions": {"python": "3.11.7", "torch": "2.13.0", "dragoman": "0.1.0 (code 12345678)"},
        "data": DataFacts(path="data/mine", fingerprint="f" * 64, vocabulary=32_768, sentence_tokens=30.0),
        "own_name_addresses": [f"10.77.0.{number + 1}"],
        "interfaces": [Interface(name="eth0", is_up=True, addresses=[f"10.77.0.{number + 1}"])],
        "disk_path": "/runs",
        "disk_free_bytes": 100 * 10**9,
        "memory_bytes": 64 * 10**9,
        "memory_available_bytes": 60 * 10**9,
        "cores": 8,
        "load": 0.1,
        "peaks": [90e9],
        "clock_offset_seconds": 0.0,
        "clock_error_seconds": 0.001,
    }
    return HostFacts(**facts | changes)


def only(checks: list[Check], status: str) -> Check:
    """The one check with that status; there must be one and no worse."""
    found = [check for check in checks if check.status == status]
    assert len(found) == 1, checks
    if status == "warning":
        assert not [check for check in checks if check.status == "error"], checks
    return found[0]
