"""Several hosts on one machine, as Linux namespaces: for tests and benchmarks, not part of the package.

with Cluster(hosts=2, rate="100mbit") as cluster:
    cluster.run(0, ["ping", "-c1", "h1"])
"""

from testbed.cluster import Cluster
from testbed.host import TestbedError
from testbed.require import why_not

__all__ = ["Cluster", "TestbedError", "why_not"]
