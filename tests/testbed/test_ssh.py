"""Hosts that can be entered by ssh."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import Cluster, ssh


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := ssh.why_not():
        pytest.skip(reason)
    with Cluster(hosts=3, with_ssh=True, cores_per_host=1) as cluster:
        yield cluster


def test_every_host_is_entered_from_every_other_by_name_and_address(cluster: Cluster) -> None:
    for host, other in ((0, 1), (1, 2), (2, 0)):
        for name in (f"h{other}", cluster.addresses[other]):
            assert cluster.run(host, ["ssh", name, "hostname"]).stdout == f"h{other}\n"


def test_keys_are_the_hosts_own_and_the_machine_keeps_none(cluster: Cluster) -> None:
    keys = [cluster.run(host, ["cat", "/etc/ssh/host_key.pub"]).stdout for host in range(3)]
    assert len(set(keys)) == 3
    assert not Path("/etc/ssh/host_key.pub").exists()
    assert not Path("/etc/ssh/authorized_keys").exists()


def test_a_session_reads_no_start_up_file_of_the_user(cluster: Cluster) -> None:
    start_up = Path.home() / ".bashrc"
    if not start_up.exists():
        pytest.skip("this user has no .bashrc")
    assert cluster.run(0, ["ssh", "h1", "cat ~/.bashrc"]).stdout == ""
    assert start_up.is_file()


def test_a_session_has_the_cores_of_its_host(cluster: Cluster) -> None:
    assert cluster.run(0, ["ssh", "h1", "nproc"]).stdout == "1\n"
    assert cluster.run(0, ["nproc"]).stdout == "1\n"
    assert len(os.sched_getaffinity(0)) > 1 or os.cpu_count() == 1


def test_a_stranger_is_not_let_in(cluster: Cluster) -> None:
    stranger = ["-o", "IdentityFile=/nowhere", "-o", "BatchMode=yes", "-F", "none"]
    known = ["-o", "GlobalKnownHostsFile=/etc/ssh/known_hosts", "-o", "UserKnownHostsFile=none"]
    done = cluster.run(0, ["ssh", *stranger, *known, "h1", "true"], check=False)
    assert done.returncode == 255
    assert "Permission denied" in done.stderr


def test_the_command_gives_hosts_that_are_entered_by_ssh() -> None:
    words = [sys.executable, "-m", "testbed", "--ssh", "--hosts", "2", "--", "ssh", "h1", "hostname"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "h1\n"), done.stderr
