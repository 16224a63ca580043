"""Ranks started by Slurm's srun: one process per task."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping

from dragoman.launch.meeting import port_of_job
from dragoman.sync.route import own_address_towards

_FIRST_SPECIAL_STEP = 4_294_967_290  # ids from here on are not srun's steps, but the batch shell and similar


def translate(environ: Mapping[str, str]) -> dict[str, str]:
    """torch's variables made from Slurm's; empty outside srun and in a step with a single task.

    The shell of a batch script also has SLURM_PROCID, and a step with one task may be an interactive shell
    from which the user starts anything.
    """
    step = int(environ.get("SLURM_STEP_ID", _FIRST_SPECIAL_STEP))
    if step >= _FIRST_SPECIAL_STEP or int(environ["SLURM_STEP_NUM_TASKS"]) == 1:
        return {}
    node = int(environ["SLURM_NODEID"])
    return {
        "RANK": environ["SLURM_PROCID"],
        "WORLD_SIZE": environ["SLURM_STEP_NUM_TASKS"],
        "LOCAL_RANK": environ["SLURM_LOCALID"],
        "LOCAL_WORLD_SIZE": str(tasks_per_node(environ["SLURM_STEP_TASKS_PER_NODE"])[node]),
        "MASTER_ADDR": environ.get("MASTER_ADDR")
        or _meeting_point(node_names(environ["SLURM_STEP_NODELIST"]), node),
        "MASTER_PORT": environ.get("MASTER_PORT") or port_of_job(int(environ["SLURM_JOB_ID"]) * 10 + step),
    }


def tasks_per_node(text: str) -> list[int]:
    """`2(x3),1` as 2, 2, 2, 1."""
    counts = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        counts += [int(count)] * int(times or 1)
    return counts


def node_names(text: str) -> list[str]:
    """`gpu[08-10,12],login` as gpu08, gpu09, gpu10, gpu12, login."""
    names = []
    for word in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        parts = re.split(r"\[([^\]]*)\]", word)  # plain text and bracket contents alternate
        expanded = [""]
        for number, part in enumerate(parts):
            choices = _numbers(part) if number % 2 else [part]
            expanded = [name + choice for name in expanded for choice in choices]
        names += expanded
    return names


def _numbers(text: str) -> list[str]:
    """`08-10,12` as 08, 09, 10, 12."""
    numbers = []
    for span in text.split(","):
        first, _, last = span.partition("-")
        numbers += [f"{n:0{len(first)}d}" for n in range(int(first), int(last or first) + 1)]
    return numbers


def _meeting_point(names: list[str], node: int) -> str:
    """The first node, or its address towards the last node if its own name resolves to loopback (Debian)."""
    first = names[0]
    if len(names) == 1:
        return "127.0.0.1"
    if node == 0 and ipaddress.ip_address(socket.gethostbyname(first)).is_loopback:
        return own_address_towards(names[-1])
    return first
