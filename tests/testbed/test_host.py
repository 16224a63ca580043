"""A process that becomes one of a host, as forks of the tests do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import Cluster
from tests.train.runs import wait_until

BECOME = """
import os, signal, socket, sys
from testbed.host import become
become(int(sys.argv[1]))
own = os.path.realpath("/proc/self") == f"/proc/{os.getpid()}"
print(socket.gethostname(), sorted(os.listdir("/sys/class/net")), os.getcwd(), own)
"""


def started(cluster: Cluster, folder: Path, then: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", BECOME + then, str(cluster.first_process(0))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("hosts_are_possible")
def test_it_has_the_name_network_and_processes_of_the_host_and_its_own_folder_and_end(tmp_path: Path) -> None:
    with Cluster(hosts=1) as cluster:
        for then, code in (("sys.exit(3)", 3), ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM)):
            with started(cluster, tmp_path, f"sys.stdout.flush(); {then}") as process:
                assert process.communicate(timeout=60)[0] == f"h0 ['eth0', 'lo'] {tmp_path} True\n"
                assert process.returncode == code


@pytest.mark.usefixtures("hosts_are_possible")
def test_killed_it_leaves_nothing_on_the_host(tmp_path: Path) -> None:
    with (
        Cluster(hosts=1) as cluster,
        started(cluster, tmp_path, "sys.stdout.flush(); signal.pause()") as process,
    ):
        assert process.stdout and process.stdout.readline()
        assert len(cluster.processes(0)) == 1
        process.kill()
        wait_until("it is gone", lambda: not cluster.processes(0))
