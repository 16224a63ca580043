"""Whether the test bed works here, and whether tests may be skipped if it does not."""

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
    """Why hosts cannot be created here, or None; found by trying, which takes 0.1 s once per process."""
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
    """Whether REQUIRE_ALL=1 is set, as in continuous integration: a skipped test then counts as failed."""
    return os.environ.get("REQUIRE_ALL") == "1"
