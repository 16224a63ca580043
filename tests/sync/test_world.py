"""Joining a world, and leaving it without a trace."""

import os

import pytest

from dragoman.sync import world as worlds


@pytest.mark.usefixtures("world_of_one")
def test_a_world_leaves_no_interface_behind_for_processes_that_start_later() -> None:
    before = dict(os.environ)
    with worlds.join(60):
        assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"
    assert dict(os.environ) == before


@pytest.mark.usefixtures("world_of_one")
def test_an_interface_that_the_user_names_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with worlds.join(60):
        pass
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"
