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

    Each host has its own host name, hosts file, network, processes, /sys/class/net and /dev/shm; all other
    files are the machine's. Hosts cannot reach any other network. When the cluster ends, or the process that
    created it is killed, everything running on the hosts ends too.

    rate           of each host's link in each direction, in tc's units ("100mbit"); None: no limit
    delay_seconds  one way, from any host to any other
    loss           share of packets lost from any host to any other, 0 to 1
    loopback_name  the hosts file maps a host's own name to 127.0.1.1, as Debian's installer does
    with_ssh       every host has an ssh server that accepts the other hosts: `ssh h1`
    ssh_variables  environment of all that is started through ssh
    cores_per_host number of cores a host's commands see, different ones for each host; None: all
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
        ssh_variables: Mapping[str, str] | None = None,
    ) -> None:
        if not 1 <= hosts <= 200 or delay_seconds < 0 or not 0 <= loss < 1:
            raise TestbedError(
                f"hosts={hosts}, delay_seconds={delay_seconds}, loss={loss}: "
                "expected 1 to 200 hosts, a delay of at least 0 and a loss of at least 0 and below 1"
            )
        if rate is not None:
            bits_per_second(rate)
        self.names = [f"h{host}" for host in range(hosts)]
        self.addresses = [f"10.77.0.{host + 1}" for host in range(hosts)]
        self._rate, self._delay_seconds, self._loss = rate, delay_seconds, loss
        self._loopback_name, self._ssh, self._cores_per_host = loopback_name, with_ssh, cores_per_host
        self._ssh_variables = ssh_variables or {}
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
                ssh.serve(self._hosts, self.addresses, self._ssh_variables)
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
        """Start a command on a host; `env` extends this process's environment, other options are Popen's.

        The command is this process's own child, so signals reach it and the exit code is its own.
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
        """Run a command on a host to its end and capture its output; options are `popen`'s."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        with self.popen(host, command, **options) as process:
            try:
                output, errors = process.communicate(timeout=timeout_seconds)
            finally:
                process.kill()
        if check and process.returncode:
            text = f"{output or ''}{errors or ''}"
            raise TestbedError(f"{command} on {self.names[host]} ended with {process.returncode}:\n{text}")
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def processes(self, host: int) -> list[int]:
        """The ids of the host's processes, as this process sees them."""
        return self._hosts[host].processes()

    def first_process(self, host: int) -> int:
        """The id of the process whose end ends the host; /proc shows the host's counters under it."""
        return self._hosts[host].pid

    def rate(self, rate: str | None, host: int | None = None) -> None:
        """Change the rate of one host's link or of all links, even while commands run."""
        for link in self._links if host is None else [self._links[host]]:
            link.rate(rate)

    def delay(self, seconds: float) -> None:
        """Change the delay of all links, even while commands run; they must have started with a delay."""
        for link in self._links:
            link.delay(seconds)

    def link(self, one: int, other: int, rate: str | None) -> None:
        """Set the rate between two hosts in each direction, even while commands run.

        It replaces the sender's rate; the receiver's rate still limits everything it receives.
        """
        for sender, receiver in ((one, other), (other, one)):
            self._links[sender].rate_towards(self.addresses[receiver], rate)

    def cut(self, host: int) -> None:
        """Stop all packets on the host's link; its carrier stays up."""
        self._links[host].cut()

    def mend(self, host: int) -> None:
        """Undo `cut`."""
        self._links[host].mend()

    def slow(self, host: int, share: float | None) -> None:
        """Limit all the host's processes together to this share of one core; None removes the limit."""
        if share is not None and share <= 0:
            raise TestbedError(f"share {share}: expected more than 0 (1.0 is one core), or None")
        if host not in self._quotas:
            self._quotas[host] = cpu.quota(self._hosts[host])
        self._quotas[host].set(share)

    def transferred_bytes(self, host: int) -> tuple[int, int]:
        """Bytes received and sent by the host's eth0 so far."""
        for line in Path(f"/proc/{self._hosts[host].pid}/net/dev").read_text().splitlines():
            device, _, counters = line.partition(":")
            if device.strip() == "eth0":
                return int(counters.split()[0]), int(counters.split()[8])
        raise TestbedError(f"{self.names[host]} has no eth0")

    @contextmanager
    def traffic(self, sender: int, receiver: int, rate: str | None = None) -> Iterator[None]:
        """Send another program's TCP traffic between two hosts in the block; None: as fast as possible."""
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
