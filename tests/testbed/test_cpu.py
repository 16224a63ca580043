from collections.abc import Callable
from pathlib import Path

import pytest

from testbed import Cluster, cpu
from tests.testbed.test_cluster import COMPUTE, python


def no_cgroup() -> Path | None:
    return None


@pytest.mark.parametrize("place", [cpu._cgroup_parent, no_cgroup], ids=["cgroup", "stops"])
def test_a_slow_host_gets_its_share_of_a_core(
    place: Callable[[], Path | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if place is not no_cgroup and place() is None:
        place = no_cgroup  # a container, say: then the same claim holds for what is used there
    monkeypatch.setattr(cpu, "_cgroup_parent", place)
    with Cluster(hosts=2) as cluster:
        cluster.slow(0, 0.3)
        # Two at once: the share is the host's. The machine may be busy, so there is no more than a low floor.
        with (
            cluster.popen(0, python(COMPUTE), stdout=-1) as one,
            cluster.popen(0, python(COMPUTE), stdout=-1) as two,
        ):
            used = float(one.communicate()[0]) + float(two.communicate()[0])
        assert 0.1 < used < 0.4
        cluster.slow(0, None)
        assert float(cluster.run(0, python(COMPUTE)).stdout) > 0.4


def test_a_limit_holds_for_what_runs_already() -> None:
    with (
        Cluster(hosts=1) as cluster,
        cluster.popen(0, python("input()" + COMPUTE), stdin=-1, stdout=-1) as process,
    ):
        cluster.slow(0, 0.2)
        assert float(process.communicate("\n")[0]) < 0.3
