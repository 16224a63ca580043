"""A cluster of hosts on this machine, joined by a switch; see `Cluster`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from testbed import cpu, ssh
from testbed.host import Host, TestbedError
from testbed.link import Link, bits_per_second

_TRAFFIC_PORT = 9876


class Cluster:
    """Hosts 0, 1, ... named h0, h1, ..., each with an eth0 to one switch.

    Host name, hosts file, network, processes, /sys/class/net and /dev/shm are the host's own; other files are
    the machine's. Nothing reaches beyond the hosts. When the cluster ends, or the process that made it
    is killed, everything that runs on the hosts ends too.

    rate           of each host's link in each direction, in tc's units ("100mbit"); None is no limit
    delay_seconds  from any host to any other, one way
    loss           share of packets lost on the way from any host to any other, 0 to 1
    loopback_name  the hosts file gives a host's own name as 127.0.1.1, as Debian's installer does
    with_ssh       every host has an ssh server, and a user on a host may enter the others: `ssh h1`
    cores_per_host a host's commands see so many cores, the next ones for each host; None is all
    """

    def __init__(
        self,
        hosts: int = 2,
        rate: str | None = None,
        delay_seconds: float = 0.0,
        loss: float = 0.0,
        loopback_name: bool = False,
        with_ssh: bool = False,
        cores_per_host: int | None = None,
    ) -> None:
        if not 1 <= hosts <= 200 or delay_seconds < 0 or not 0 <= loss < 1:
            raise TestbedError(f"hosts={hosts}, delay_seconds={delay_seconds}, loss={loss}: not possible")
        if rate is not None:
            bits_per_second(rate)
        self.names = [f"h{host}" for host in range(hosts)]
        self.addresses = [f"10.77.0.{host + 1}" for host in range(hosts)]
        self._rate, self._delay_seconds, self._loss = rate, delay_seconds, loss
        self._loopback_name, self._ssh, self._cores_per_host = loopback_name, with_ssh, cores_per_host
        self._hosts: list[Host] = []
        self._links: list[Link] = []
        self._quotas: dict[int, cpu.Quota] = {}
        self._ending = ExitStack()

    def __enter__(self) -> Cluster:
        with ExitStack() as stack:
            switch = Host("switch", "127.0.0.1 localhost")
            stack.callback(switch.end)
            switch.network("ip", "link", "add", "name", "bridge", "type", "bridge")
            switch.network("ip", "link", "set", "bridge", "addrgenmode", "none", "up")
            for number, name in enumerate(self.names):
                host = Host(name, self._hosts_file(number), self._cores(number))
                stack.callback(host.end)
                self._hosts.append(host)
                address = f"{self.addresses[number]}/24"
                link = Link(host, address, switch, f"p{number}", self._delay_seconds, self._loss)
                stack.callback(link.end)
                self._links.append(link)
            self.rate(self._rate)
            if self._ssh:
                ssh.serve(self._hosts, self.addresses)
            self._ending = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ending.close()
        finally:
            for quota in self._quotas.values():
                quota.end()

    def popen(
        self,
        host: int,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Starts a command on a host. `env` is added to this process's environment; other options as Popen's.

        It is this process's own child: signals and exit code are the command's.
        """
        return self._hosts[host].popen(command, env, cwd or Path.cwd(), **options)

    def run(
        self,
        host: int,
        command: Sequence[str | Path],
        *,
        timeout_seconds: float = 60.0,
        check: bool = True,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on a host to its end, and keeps what it prints; options as `popen`'s."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        with self.popen(host, command, **options) as process:
            try:
                output, errors = process.communicate(timeout=timeout_seconds)
            finally:
                process.kill()
        if check and process.returncode:
            said = f"{output or ''}{errors or ''}"
            raise TestbedError(f"{command} on {self.names[host]} ended with {process.returncode}:\n{said}")
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def processes(self, host: int) -> list[int]:
        """What runs on the host, by the numbers that this process sees."""
        return self._hosts[host].processes()

    def first_process(self, host: int) -> int:
        """The process whose end is the host's end; /proc shows the host's counters under its number."""
        return self._hosts[host].pid

    def rate(self, rate: str | None, host: int | None = None) -> None:
        """Changes the rate of one host's link, or of all, also while something runs."""
        for link in self._links if host is None else [self._links[host]]:
            link.rate(rate)

    def delay(self, seconds: float) -> None:
        """Changes the delay of all links, also while something runs; they must have begun with one."""
        for link in self._links:
            link.delay(seconds)

    def link(self, one: int, other: int, rate: str | None) -> None:
        """A rate for what two hosts send each other, in each direction, also while something runs.

        It stands in place of the sender's rate; the receiver's still holds for all that it receives.
        """
        for sender, receiver in ((one, other), (other, one)):
            self._links[sender].rate_towards(self.addresses[receiver], rate)

    def cut(self, host: int) -> None:
        """From now on nothing passes the host's link; its carrier stays up."""
        self._links[host].cut()

    def mend(self, host: int) -> None:
        self._links[host].mend()

    def slow(self, host: int, share: float | None) -> None:
        """All the host's processes together get at most this share of one core; None takes the limit away."""
        if share is not None and share <= 0:
            raise TestbedError(f"share {share}: expected more than 0 (1.0 is one core), or None")
        if host not in self._quotas:
            self._quotas[host] = cpu.quota(self._hosts[host])
        self._quotas[host].set(share)

    def transferred_bytes(self, host: int) -> tuple[int, int]:
        """Received and sent by the host's eth0 so far."""
        for line in Path(f"/proc/{self._hosts[host].pid}/net/dev").read_text().splitlines():
            device, _, counters = line.partition(":")
            if device.strip() == "eth0":
                return int(counters.split()[0]), int(counters.split()[8])
        raise TestbedError(f"{self.names[host]} has no eth0")

    @contextmanager
    def traffic(self, sender: int, receiver: int, rate: str | None = None) -> Iterator[None]:
        """Another program's TCP traffic between two hosts until the block ends; None: as fast as it goes."""
        script = [sys.executable, "-I", "-S", str(Path(__file__).with_name("traffic.py"))]
        bytes_per_second = [] if rate is None else [str(bits_per_second(rate) / 8)]
        receive = [*script, "receive", str(_TRAFFIC_PORT)]
        send = [*script, "send", self.addresses[receiver], str(_TRAFFIC_PORT), *bytes_per_second]
        with ExitStack() as stack:
            for host, command in ((receiver, receive), (sender, send)):
                started = self.popen(host, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                process = stack.enter_context(started)
                stack.callback(process.kill)
                assert process.stdout and process.stderr
                if process.stdout.readline() != "ready\n":
                    raise TestbedError(
                        f"no traffic from {sender} to {receiver}: {process.stderr.read().strip()}"
                    )
            yield

    def _cores(self, host: int) -> list[int]:
        cores, count = sorted(os.sched_getaffinity(0)), self._cores_per_host or 0
        return [cores[number % len(cores)] for number in range(host * count, (host + 1) * count)]

    def _hosts_file(self, host: int) -> str:
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        for other, name in enumerate(self.names):
            own = other == host and self._loopback_name
            lines.append(f"{'127.0.1.1' if own else self.addresses[other]} {name}")
        return "\n".join(lines)
