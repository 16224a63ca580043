"""Servers for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve import stand_in
from tests.serve.stand_in import Server
from tests.train.conftest import made_once, task, unbroken  # noqa: F401  fixtures

TOKEN = "a-long-and-secret-word"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A quick one with two models and no token, shared by the tests of a file."""
    with stand_in.started(tmp_path_factory.mktemp("server"), "--second-model") as started:
        yield started


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that asks for a token."""
    with stand_in.started(tmp_path_factory.mktemp("guarded"), "--token", TOKEN) as started:
        yield started
