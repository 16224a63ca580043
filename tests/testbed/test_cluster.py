import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed import Cluster, TestbedError
from tests.facts import raising

RECEIVE = """
import socket, time
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    started, received = time.monotonic(), 0
    while data := connection.recv(1 << 20):
        received += len(data)
print(received * 8 / 1e6 / (time.monotonic() - started))
"""
SEND = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 5000)) as connection:
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        connection.sendall(bytes(16384))
"""
ECHO = """
import socket
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    while data := connection.recv(1000):
        connection.sendall(data)
"""
COMPUTE = """
import time
started, cpu = time.monotonic(), time.process_time()
while time.monotonic() < started + 1.0:
    pass
print((time.process_time() - cpu) / (time.monotonic() - started))
"""


def python(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", script, *map(str, arguments)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(hosts=2) as cluster:
        yield cluster


@contextmanager
def listening(cluster: Cluster, host: int, script: str) -> Iterator[subprocess.Popen[str]]:
    with cluster.popen(host, python(script), stdout=subprocess.PIPE) as server:
        assert server.stdout and server.stdout.readline() == "ready\n"
        yield server
        server.kill()


def megabits_per_second(cluster: Cluster, seconds: float = 1.0, to: int = 1) -> float:
    with listening(cluster, to, RECEIVE) as receiver:
        cluster.run(0, python(SEND, f"h{to}", seconds))
        assert receiver.stdout
        return float(receiver.stdout.read())


def round_trip_seconds(cluster: Cluster, count: int = 20) -> float:
    """The median."""
    script = f"""
import socket, time
times = []
with socket.create_connection(("h1", 5000)) as connection:
    for _ in range({count}):
        started = time.monotonic()
        connection.sendall(b"x")
        connection.recv(1)
        times.append(time.monotonic() - started)
print(sorted(times)[len(times) // 2])
"""
    with listening(cluster, 1, ECHO):
        return float(cluster.run(0, python(script)).stdout)


def is_gone(pid: int) -> bool:
    """Ended; a zombie that its parent has not looked at yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_hosts_have_their_own_names_processes_and_interfaces(cluster: Cluster) -> None:
    machine = os.uname().nodename
    said = cluster.run(1, ["sh", "-c", "hostname; ls /sys/class/net; ls -d /proc/[0-9]* | wc -l"]).stdout
    name, *interfaces, processes = said.split()
    assert (name, sorted(interfaces)) == ("h1", ["eth0", "lo"])
    assert int(processes) < 10
    assert os.uname().nodename == machine


def test_hosts_reach_each_other_by_name(cluster: Cluster) -> None:
    assert round_trip_seconds(cluster, 1) < 1.0


def test_nothing_but_the_hosts_is_reached(cluster: Cluster) -> None:
    assert cluster.run(0, ["ip", "route"]).stdout.split()[0] == "10.77.0.0/24"
    assert len(cluster.run(0, ["ip", "route"]).stdout.splitlines()) == 1


def test_a_command_that_fails_is_an_error_with_what_it_said(cluster: Cluster) -> None:
    with raising(TestbedError, "h0", "3", "no luck"):
        cluster.run(0, ["sh", "-c", "printf 'no %s' luck; exit $((1 + 2))"])
    assert cluster.run(0, ["false"], check=False).returncode == 1


def test_environment_folder_and_signals_are_the_commands_own(cluster: Cluster, tmp_path: Path) -> None:
    said = cluster.run(0, ["sh", "-c", "echo $LUCK; pwd"], env={"LUCK": "yes"}, cwd=tmp_path).stdout
    assert said.split() == ["yes", str(tmp_path)]
    with cluster.popen(0, ["sleep", "60"]) as sleeper:
        sleeper.terminate()
        assert sleeper.wait(5) == -signal.SIGTERM


def test_a_transfer_sees_the_rate_and_its_changes(cluster: Cluster) -> None:
    cluster.rate("100mbit")
    assert megabits_per_second(cluster) == pytest.approx(100, rel=0.15)
    cluster.rate("20mbit")
    assert megabits_per_second(cluster) == pytest.approx(20, rel=0.15)
    cluster.rate("50mbit", host=1)  # the other end still is the slower one
    assert megabits_per_second(cluster, 0.5) == pytest.approx(20, rel=0.15)
    cluster.rate(None)
    assert megabits_per_second(cluster, 0.3) > 200


def test_two_hosts_can_have_a_rate_of_their_own() -> None:
    with Cluster(hosts=3, rate="100mbit") as three:
        three.link(0, 1, "10mbit")
        assert megabits_per_second(three) == pytest.approx(10, rel=0.15)
        assert megabits_per_second(three, to=2) == pytest.approx(100, rel=0.15)
        three.link(0, 1, "30mbit")
        three.rate("50mbit")
        assert megabits_per_second(three) == pytest.approx(30, rel=0.15)
        assert megabits_per_second(three, to=2) == pytest.approx(50, rel=0.15)


def test_a_rate_changes_under_a_running_transfer(cluster: Cluster) -> None:
    cluster.rate("100mbit")
    with cluster.traffic(0, 1):
        cluster.rate("10mbit")
        time.sleep(0.3)  # what was queued before the change
        _, before = cluster.transferred_bytes(0)
        time.sleep(1.0)
        _, after = cluster.transferred_bytes(0)
    cluster.rate(None)
    assert (after - before) * 8 / 1e6 == pytest.approx(10, rel=0.3)


def test_a_cut_link_carries_nothing_until_it_is_mended(cluster: Cluster) -> None:
    script = """
import socket
connection = socket.create_connection(("h1", 5000))
print("ready", flush=True)
for line in iter(input, "end"):
    connection.settimeout(float(line))
    try:
        connection.sendall(b"x")
        print(len(connection.recv(1)), flush=True)
    except TimeoutError:
        print("timeout", flush=True)
"""
    with (
        listening(cluster, 1, ECHO),
        cluster.popen(0, python(script), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client,
    ):
        assert client.stdin and client.stdout and client.stdout.readline() == "ready\n"

        def ask(timeout_seconds: float) -> str:
            assert client.stdin and client.stdout
            print(timeout_seconds, file=client.stdin, flush=True)
            return client.stdout.readline().strip()

        assert ask(10) == "1"
        cluster.cut(1)
        assert ask(0.5) == "timeout"
        cluster.mend(1)
        assert ask(20) == "1"  # TCP sends again by itself
        client.kill()


def test_delay_is_added_once_each_way() -> None:
    with Cluster(delay_seconds=0.02) as cluster:
        assert 0.04 <= round_trip_seconds(cluster) < 0.07


def test_a_delay_changes_while_something_runs(cluster: Cluster) -> None:
    with Cluster(delay_seconds=0.02) as delayed:
        delayed.delay(0.05)
        assert 0.1 <= round_trip_seconds(delayed) < 0.14
        delayed.delay(0.0)
        assert round_trip_seconds(delayed) < 0.02
    with pytest.raises(TestbedError, match="delay"):
        cluster.delay(0.05)


def test_packets_are_lost_and_what_arrives_is_whole() -> None:
    receive = """
import hashlib, socket
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    hash = hashlib.sha256()
    while data := connection.recv(1 << 20):
        hash.update(data)
print(hash.hexdigest())
"""
    send = """
import random, socket
with socket.create_connection(("h1", 5000)) as connection:
    connection.sendall(random.Random(1).randbytes(1_000_000))
"""
    with Cluster(loss=0.02) as cluster, listening(cluster, 1, receive) as receiver:
        cluster.run(0, python(send))
        assert receiver.stdout
        assert (
            receiver.stdout.read().strip()
            == hashlib.sha256(random.Random(1).randbytes(1_000_000)).hexdigest()
        )
        counters = Path(f"/proc/{cluster.first_process(0)}/net/snmp").read_text()
    names, values = (line.split() for line in counters.splitlines() if line.startswith("Tcp:"))
    assert int(dict(zip(names, values, strict=True))["RetransSegs"]) > 0


def test_traffic_of_another_program_takes_its_share(cluster: Cluster) -> None:
    with cluster.traffic(0, 1, "16mbit"):
        _, before = cluster.transferred_bytes(0)
        time.sleep(1.0)
        _, after = cluster.transferred_bytes(0)
    assert (after - before) * 8 / 1e6 == pytest.approx(16, rel=0.3)


def test_two_clusters_at_once_do_not_meet(cluster: Cluster) -> None:
    with Cluster(hosts=3) as other:
        for each in (cluster, other):
            assert round_trip_seconds(each, 1) < 1.0
        assert other.run(2, ["hostname"]).stdout == "h2\n"
        with listening(other, 1, ECHO), pytest.raises(TestbedError, match="Connection refused"):
            cluster.run(0, python(SEND, "h1", 0.1))


def test_processes_end_with_the_cluster() -> None:
    with Cluster(hosts=1) as cluster:
        # one of ours, and one that has left it for a session of its own
        cluster.popen(0, ["sh", "-c", "setsid sleep 300 & sleep 300"])
        while len(cluster.processes(0)) < 3:
            time.sleep(0.02)
        processes = cluster.processes(0)
    assert all(map(is_gone, processes))


def test_a_killed_owner_leaves_nothing_behind() -> None:
    script = """
import time
from testbed import Cluster
with Cluster(hosts=2) as cluster:
    cluster.slow(1, 0.5)
    for host in (0, 1):
        cluster.popen(host, ["sleep", "300"])
    while not all(map(cluster.processes, (0, 1))):
        time.sleep(0.02)
    print(*cluster.processes(0), *cluster.processes(1), *map(cluster.first_process, (0, 1)), flush=True)
    time.sleep(300)
"""
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root
    ) as owner:
        assert owner.stdout
        processes = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(processes) >= 4
        owner.kill()
    end = time.monotonic() + 10
    while not all(map(is_gone, processes)) or list(Path("/sys/fs/cgroup").glob(f"**/testbed-{owner.pid}-*")):
        assert time.monotonic() < end, "something is left"
        time.sleep(0.05)


def test_wrong_values_are_refused_before_anything_is_made() -> None:
    for wrong in (
        {"rate": "100 Mb/s"},
        {"rate": "0mbit"},
        {"hosts": 0},
        {"loss": 1.5},
        {"delay_seconds": -1.0},
    ):
        with pytest.raises(TestbedError):
            Cluster(**wrong)
