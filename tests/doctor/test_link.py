"""Real sockets: what is measured, and what a closed port looks like."""

import socket
import time

import pytest

from dragoman.doctor import link
from dragoman.doctor.facts import is_local
from dragoman.doctor.link import TriedConnection


@pytest.fixture(autouse=True)
def loopback_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no other host here: loopback stands for one."""
    monkeypatch.setattr(link, "is_local", lambda address: False)
    assert is_local("127.0.0.1")


def connect(addresses: list[str], port: int, token: str, measured: bool = False) -> TriedConnection:
    return TriedConnection.model_validate(link.connect(addresses, port, token, measured))


def test_a_listener_is_measured_both_ways() -> None:
    door = link.listen()
    found = connect(["127.0.0.1"], door["port"], door["token"], measured=True)
    assert found.failure == ""
    assert found.interface == "lo"
    assert found.sent_bits_per_second > 1e8
    assert found.received_bits_per_second > 1e8
    assert 0 < found.round_trip_seconds < 0.1


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def refused() -> str:
    """How a closed port is told."""
    return connect(["127.0.0.1"], closed_port(), "00" * 16).failure


def test_a_closed_port_is_a_failure() -> None:
    found = connect(["127.0.0.1"], closed_port(), "00" * 16, measured=True)
    assert found.failure
    assert not found.sent_bits_per_second


def test_somebody_elses_port_is_not_taken_for_the_hosts() -> None:
    """As where an address of a virtual network exists on both hosts: the next address is tried."""
    other, wanted = link.listen(), link.listen()
    assert connect(["127.0.0.1"], other["port"], wanted["token"]).failure not in ("", refused())
    assert connect(["127.0.0.1"], wanted["port"], wanted["token"]).failure == ""


def test_the_first_address_that_answers_is_taken_and_else_the_first_failure_told() -> None:
    door = link.listen()
    assert connect(["255.255.255.255", "127.0.0.1"], door["port"], door["token"]).address == "127.0.0.1"
    assert connect(["127.0.0.1", "255.255.255.255"], closed_port(), door["token"]).failure == refused()


def test_a_listener_ends_by_itself() -> None:
    door = link.listen(seconds=0.2)
    deadline = time.monotonic() + 10
    while connect(["127.0.0.1"], door["port"], door["token"]).failure != refused():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_host_without_an_address_says_so() -> None:
    assert connect([], 1, "00" * 16).failure not in ("", refused())
