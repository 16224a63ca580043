"""The link between a host and the switch: veth and tc, or a userspace cable where netem is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from testbed.host import Host, TestbedError

_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_WHOLE_SEGMENT_BYTES = 70_000  # a smaller bucket makes tbf cut the kernel's 64 kB segments into packets
_BURST_SECONDS = 0.002
_QUEUE = "50ms"
_SORTING = 20  # handle of the discipline that sorts by address


def bits_per_second(rate: str) -> float:
    """'100mbit' -> 1e8; the units of tc."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?bit)", rate)
    if not match or not float(match[1]):
        raise TestbedError(
            f"rate {rate!r}: expected a number with bit, kbit, mbit or gbit, such as '100mbit'"
        )
    return float(match[1]) * _UNITS[match[2]]


class Link:
    """Joins a host's eth0 to port pN of the switch.

    Delay and loss apply from the switch to the host, so that a packet between two hosts meets them once; the
    rate applies in both directions.
    """

    def __init__(
        self, host: Host, address: str, switch: Host, port: str, delay_seconds: float, loss: float
    ) -> None:
        self._host, self._switch, self._port = host, switch, port
        self._rate: str | None = None
        self._peers: dict[str, int] = {}  # addresses with their own rate, and their classes
        self._cable: subprocess.Popen[str] | None = None
        self._loss = loss
        self._netem = bool(delay_seconds or loss) and _has_netem(switch)
        if (delay_seconds or loss) and not self._netem:
            self._cable = _userspace_cable(host, switch, port, delay_seconds, loss)
        else:
            names = ["name", port, "type", "veth", "peer", "name", "eth0", "netns", str(host.pid)]
            switch.network("ip", "link", "add", *names)
        if self._netem:
            self.delay(delay_seconds)
        # No IPv6 link-local addresses, so that only the hosts' own traffic is on the link.
        switch.network("ip", "link", "set", port, "addrgenmode", "none", "up")
        host.network("ip", "link", "set", "eth0", "addrgenmode", "none", "up")
        host.network("ip", "address", "add", address, "dev", "eth0")
        self.mend()

    def delay(self, seconds: float) -> None:
        """Set the delay of what the host receives; the link must have started with a delay or loss."""
        if self._cable:
            assert self._cable.stdin
            print(seconds, file=self._cable.stdin, flush=True)
        elif self._netem:
            # netem's queue holds the packets under way: 100,000 are 1 Gbit/s for a second
            limits = ["delay", f"{seconds}s", "loss", f"{self._loss:.4%}", "limit", "100000"]
            place = ["dev", self._port, "root", "handle", "1:"]
            self._switch.network("tc", "qdisc", "replace", *place, "netem", *limits)
        else:
            raise TestbedError("this link started without a delay and cannot get one now")

    def rate(self, rate: str | None) -> None:
        """Set the rate of all the host receives, and of what it sends to addresses without their own rate."""
        self._rate = rate
        _limit(self._host, "eth0", ["parent", f"{_SORTING}:1"] if self._peers else ["root"], "10:", rate)
        _limit(self._switch, self._port, ["parent", "1:1"] if self._netem else ["root"], "10:", rate)

    def rate_towards(self, address: str, rate: str | None) -> None:
        """Set the rate of what the host sends to one address, instead of the link's rate."""
        if not self._peers:
            self._sort_by_address()
        if address not in self._peers:
            number = self._peers[address] = len(self._peers) + 2
            self._add_class(number)
            match = ["u32", "match", "ip", "dst", f"{address}/32", "flowid", f"{_SORTING}:{number:x}"]
            place = ["dev", "eth0", "parent", f"{_SORTING}:"]
            self._host.network("tc", "filter", "add", *place, "protocol", "ip", *match)
        number = self._peers[address]
        _limit(self._host, "eth0", ["parent", f"{_SORTING}:{number:x}"], f"{0x100 + number:x}:", rate)

    def _sort_by_address(self) -> None:
        """Sort packets with htb, class 1 for other addresses; buckets below the classes set the rates."""
        self._host.network("tc", "qdisc", "delete", "dev", "eth0", "root", ok=False)
        sorting = ["handle", f"{_SORTING}:", "htb", "default", "1"]
        self._host.network("tc", "qdisc", "add", "dev", "eth0", "root", *sorting)
        self._add_class(1)
        _limit(self._host, "eth0", ["parent", f"{_SORTING}:1"], "10:", self._rate)

    def _add_class(self, number: int) -> None:
        name = ["parent", f"{_SORTING}:", "classid", f"{_SORTING}:{number:x}"]
        no_limit = ["htb", "rate", "100gbit", "quantum", str(_WHOLE_SEGMENT_BYTES)]
        self._host.network("tc", "class", "add", "dev", "eth0", *name, *no_limit)

    def cut(self) -> None:
        """Drop all packets while both ends still see a carrier, as if a cable further away were pulled."""
        self._switch.network("ip", "link", "set", self._port, "nomaster")

    def mend(self) -> None:
        """Undo `cut`."""
        self._switch.network("ip", "link", "set", self._port, "master", "bridge")

    def end(self) -> None:
        if self._cable:
            self._cable.communicate()  # closes its input, which ends it


def _limit(end: Host, device: str, place: list[str], handle: str, rate: str | None) -> None:
    """Replace the queueing discipline at `place` by a bucket of this rate; None removes it."""
    if rate is None:
        end.network("tc", "qdisc", "delete", "dev", device, *place, ok=False)  # there may be none
        return
    burst = max(_WHOLE_SEGMENT_BYTES, int(bits_per_second(rate) / 8 * _BURST_SECONDS))
    bucket = ["tbf", "rate", rate, "burst", str(burst), "latency", _QUEUE]
    end.network("tc", "qdisc", "replace", "dev", device, *place, "handle", handle, *bucket)


def _has_netem(switch: Host) -> bool:
    return switch.network("tc", "qdisc", "add", "dev", "lo", "root", "netem", ok=False)


def _userspace_cable(
    host: Host, switch: Host, port: str, delay_seconds: float, loss: float
) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("cable.py")
    ends = [str(host.pid), str(switch.pid), port]
    cable = subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), *ends, str(delay_seconds), str(loss)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert cable.stdout
    if cable.stdout.readline() != "ready\n":
        raise TestbedError(
            f"this kernel lacks netem, and the userspace link failed: {cable.communicate()[1].strip()}"
        )
    return cable
