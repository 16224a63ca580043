"""Tests that need hosts are skipped with the reason where there can be none."""

import pytest

from testbed.require import why_not


@pytest.fixture(autouse=True, scope="session")
def hosts_are_possible() -> None:
    if reason := why_not():
        pytest.skip(reason)
