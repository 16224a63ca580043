"""Hosts as a user names them."""

import re
import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import UsageError
from dragoman.launch.hosts import MOST_RANKS, Host, is_this_machine, own_addresses, parse
from tests.facts import raising


def test_hosts_come_in_order_with_their_ranks() -> None:
    assert parse("a:2,b") == [Host("a", 2), Host("b", 1)]
    assert parse("ann@10.0.0.1:4, gpu-2.lan") == [Host("ann@10.0.0.1", 4), Host("gpu-2.lan")]
    assert parse("[fd00::2]:3,[fd00::1]") == [Host("fd00::2", 3), Host("fd00::1")]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("a,b,a:2", ["a", "a:2"]),  # twice: once with all its ranks
        ("a,ann@a", ["a", "a:2"]),
        ("a:0", ["'0'", MOST_RANKS]),
        ("a:10000", ["'10000'", MOST_RANKS]),
        (f"a:{'9' * 5_000}", [MOST_RANKS]),
        ("a:\u0663", [MOST_RANKS]),  # an Arabic three, which int() would take
        ("a:two", ["'two'", MOST_RANKS]),
        ("a:", ["''", MOST_RANKS]),
        ("a,,b", ["''"]),
        ("a;reboot", ["'a;reboot'"]),
        ("-oProxyCommand=reboot", ["'-oProxyCommand=reboot'"]),
        ("fd00::2", ["[fd00::2]"]),
    ],
)
def test_what_is_no_host_is_named(text: str, facts: list[object]) -> None:
    with raising(UsageError, "--hosts", *facts):
        parse(text)


@given(st.text(alphabet="ab0.-_@:[]%$`'\"; |&<>()\\\n\t\0\u0430é", max_size=12))
def test_no_host_can_be_taken_for_an_option_or_a_command(text: str) -> None:
    with suppress(UsageError):
        for host in parse(text):
            assert re.fullmatch(r"[\w@.:-]+", host.name)
            assert not host.name.startswith("-") and not host.machine.startswith("-")


def test_this_machine_is_known_by_its_names_and_addresses() -> None:
    addresses = [str(address) for address in own_addresses()]
    for name in ("localhost", "127.0.0.1", socket.gethostname(), *addresses):
        assert is_this_machine(name), name
    for name in ("192.0.2.77", "no-such-host.invalid", "somebody-else@localhost"):
        assert not is_this_machine(name), name
