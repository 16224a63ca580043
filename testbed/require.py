"""Whether the test bed works here, and whether a test may be skipped when it does not."""

from __future__ import annotations

import os
import shutil
from functools import cache

_TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}


@cache
def why_not() -> str | None:
    """Why hosts cannot be made here, or None. Tries it: a tenth of a second, once per process."""
    from testbed.cluster import Cluster
    from testbed.host import TestbedError

    if os.geteuid():
        return "network namespaces need root"
    missing = sorted({package for tool, package in _TOOLS.items() if not shutil.which(tool)})
    if missing:
        return f"{', '.join(missing)} not installed: run tools/install-debian-packages.sh"
    try:
        with Cluster(hosts=1, rate="1gbit"):
            return None
    except TestbedError as error:
        return str(error)


def all_required() -> bool:
    """REQUIRE_ALL=1: continuous integration, where a skipped test is a failed one."""
    return os.environ.get("REQUIRE_ALL") == "1"
