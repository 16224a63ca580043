import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.require import why_not

ROOT = Path(__file__).parents[2]


def test_without_root_the_reason_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_not.__wrapped__() == "network namespaces need root"


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = why_not.__wrapped__()
    assert reason and reason.startswith("iproute2, mount, util-linux not installed")


@pytest.mark.parametrize(("required", "outcome"), [("0", "1 skipped"), ("1", "1 error")])
def test_a_skip_is_a_failure_where_all_is_required(required: str, outcome: str, tmp_path: Path) -> None:
    test = "tests/testbed/test_cluster.py::test_hosts_reach_each_other_by_name"
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", test]
    environment = os.environ | {"PATH": str(tmp_path), "REQUIRE_ALL": required}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert outcome in done.stdout
    assert "iproute2, mount, util-linux not installed" in done.stdout
