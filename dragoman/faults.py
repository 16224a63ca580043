"""What can befall a run, by name: the same names in its records, its messages and its report."""

from __future__ import annotations

from typing import Literal

FaultKind = Literal[
    "killed",
    "out_of_memory",
    "exception",
    "host_unreachable",
    "link_cut",
    "port_blocked",
    "stopped",
    "disk_full",
    "checkpoint_damaged",
    "clock_jump",
    "launcher_dead",
    "slow_rank",
    "notice",
]

WORDS: dict[FaultKind, str] = {  # for people
    "killed": "killed by a signal",
    "out_of_memory": "out of memory",
    "exception": "uncaught exception",
    "host_unreachable": "host unreachable",
    "link_cut": "link cut",
    "port_blocked": "port blocked",
    "stopped": "process stopped",
    "disk_full": "disk full",
    "checkpoint_damaged": "checkpoint damaged",
    "clock_jump": "clock set",
    "launcher_dead": "launcher gone",
    "slow_rank": "rank too slow",
    "notice": "notice to leave",
}
