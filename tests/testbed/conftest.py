"""Tests that need hosts are skipped with the reason where there can be none."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _here(hosts_are_possible: None) -> None: ...
