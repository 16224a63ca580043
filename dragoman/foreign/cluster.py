"""Reads machines, ranks, devices and dates from the lines that NCCL and TensorFlow print into any log."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from dragoman.foreign.log_facts import MOST_RANKS, YEAR, Gathered

LOOKS_FOR = "NCCL's and TensorFlow's device lines"
BEGINS = (
    rb"\S{1,80}:\d+:\d+ \[\d+\] NCCL INFO|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] tensorflow/"
    rb"|name: .{1,80} major: \d|INFO:tensorflow:"
)

_RANK = re.compile(r"^(\S+?):\d+:\d+ \[\d+\] NCCL INFO .*\brank (\d+) nranks (\d+)")
_INTERFACE = re.compile(r"^(\S+?):\d+:\d+ \[\d+\] NCCL INFO .*NET(?:/\w{1,40})? ?: Using")
_INTERFACE_NAME = re.compile(r"(?:Using interface |\[\d+\])(\w+):")
_DEVICE = re.compile(r"name: (.+?) major: \d")
_STAMP_LENGTH = len("2020-06-26 15:36:43")


class LoggedCluster:
    def __init__(self, gathered: Gathered):
        self._run = gathered
        self._rank_hosts: dict[int, str] = {}
        self._interfaces: dict[str, str] = {}
        self._world = 0
        # Start -> its first and newest date, parsed only at the end, because a log has thousands of them.
        self._stamps: dict[int, list[str]] = {}
        self.is_recognised = False

    def line(self, text: str) -> None:
        if "NCCL INFO" in text:
            self._nccl(text)
        elif text.startswith("name: "):
            if device := _DEVICE.match(text):
                self.is_recognised = True
                self._run.fact("device", device[1].strip())
        elif text[:2] == "20":
            stamp = text[:_STAMP_LENGTH]
            self._stamps.setdefault(self._run.start.number, [stamp, stamp])[1] = stamp

    def _nccl(self, text: str) -> None:
        self.is_recognised = True
        if rank := _RANK.match(text):
            number, world = (self._run.whole(digits, MOST_RANKS) for digits in rank.group(2, 3))
            if number is None or world is None:
                return
            if world != self._world:  # another start with other ranks
                self._world = world
                self._rank_hosts.clear()
            self._rank_hosts[number] = rank[1]
        elif (place := _INTERFACE.match(text)) and (name := _INTERFACE_NAME.search(text)):
            self._interfaces[place[1]] = name[1]

    def finish(self) -> None:
        run = self._run
        for number, (first, last) in self._stamps.items():
            start = run.starts[number - 1]
            start.started = run.dated(moment(first))
            if start.last_step is None:  # it has no other clock
                start.ended = start.started + run.lasting(run.dated(moment(last)) - start.started, YEAR)
        if not self._world:
            return
        run.fact("ranks", self._world)
        if len(self._rank_hosts) == self._world and set(self._rank_hosts) == set(range(self._world)):
            hosts = list(dict.fromkeys(self._rank_hosts[rank] for rank in range(self._world)))
            run.fact("hosts", hosts)
            run.fact("machines", len(hosts))
            run.fact("rank_hosts", [hosts.index(self._rank_hosts[rank]) for rank in range(self._world)])
            if all(host in self._interfaces for host in hosts):
                run.fact("gradient_interfaces", [self._interfaces[host] for host in hosts])
        elif self._rank_hosts:
            run.fact("machines_seen", len(set(self._rank_hosts.values())))


def moment(stamp: str) -> float:
    """A date as Unix time. Logs name no time zone; all dates are read as UTC, so differences are right."""
    try:
        return datetime.fromisoformat(stamp.strip().replace(",", ".")).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("nan")
