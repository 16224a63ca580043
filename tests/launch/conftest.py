"""Two hosts with ssh between them; where there can be none, tests are skipped with the reason."""

import shutil
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from dragoman.data.parallel import cores
from testbed import Cluster, ssh, why_not
from tests.train.conftest import made_once, task, unbroken  # noqa: F401  fixtures


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two hosts that share the cores, as two workers of this machine do."""
    for reason in (why_not(), ssh.why_not()):
        if reason:
            pytest.skip(reason)
    with Cluster(hosts=2, with_ssh=True, cores_per_host=max(1, cores() // 2)) as cluster:
        yield cluster


@pytest.fixture
def idle(cluster: Cluster) -> Iterator[None]:
    """Whatever a failed test left on the hosts, the ssh servers apart, is killed."""
    servers = {host: cluster.processes(host) for host in (0, 1)}
    yield
    for host, known in servers.items():
        for pid in set(cluster.processes(host)) - set(known):
            with suppress(psutil.NoSuchProcess):  # it may have ended just now
                psutil.Process(pid).kill()


@pytest.fixture
def mpirun() -> None:
    _need("mpirun", "openmpi-bin")


@pytest.fixture
def rsync() -> None:
    _need("rsync", "rsync")


def _need(program: str, package: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"{package} not installed: run tools/install-debian-packages.sh")
