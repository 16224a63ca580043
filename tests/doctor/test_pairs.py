"""What measurements between hosts mean."""

from dataclasses import replace

import pytest

from dragoman.doctor import pairs
from dragoman.doctor.link import TriedConnection
from dragoman.doctor.pairs import ConnectionAttempt
from tests.doctor.build import NEEDS, host, only
from tests.facts import lacking


def attempt(
    sender: str, receiver: str, there: float = 1e9, back: float = 1e9, failure: str = ""
) -> ConnectionAttempt:
    connection = TriedConnection(
        address="10.77.0.2",
        failure=failure,
        sent_bits_per_second=there,
        received_bits_per_second=back,
        round_trip_seconds=0.0004,
    )
    return ConnectionAttempt(sender, receiver, 41_234, "32768-60999", connection)


@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 7, 24])
def test_every_pair_is_in_one_round_and_no_host_twice_in_a_round(hosts: int) -> None:
    rounds = pairs.rounds(hosts)
    assert sorted(pair for chosen in rounds for pair in chosen) == [
        (first, second) for first in range(hosts) for second in range(first + 1, hosts)
    ]
    for chosen in rounds:
        busy = [number for pair in chosen for number in pair]
        assert len(busy) == len(set(busy))
    assert len(rounds) <= 2 * hosts


@pytest.mark.parametrize("failure", ["refused", "no answer"])
def test_a_port_that_is_not_reached_is_an_error_with_both_hosts_and_the_ports(failure: str) -> None:
    attempts = [attempt("h0", "h1"), attempt("h1", "h0", 0, 0, failure)]
    check = only(pairs.ports(attempts), "error")
    assert check.host == "h1 to h0"
    assert not lacking(check.value, "10.77.0.2", "41234", failure)
    assert not lacking(check.advice, "h1", "32768-60999", "h0")


def test_ports_that_are_reached_take_one_line() -> None:
    assert [check.status for check in pairs.ports([attempt("h0", "h1"), attempt("h1", "h0")])] == ["ok"]


def test_links_say_both_rates_and_the_round_trip() -> None:
    check = pairs.links([attempt("h0", "h1", 941e6, 938e6)])[0]
    assert (check.status, check.host) == ("ok", "h0 to h1")
    assert not lacking(check.value, "941 Mbit/s", "938 Mbit/s", "0.4 ms")


def test_a_pair_that_is_much_slower_than_the_others_is_named() -> None:
    attempts = [attempt("h0", "h1"), attempt("h0", "h2"), attempt("h1", "h2", 1e8, 1e8)]
    assert only(pairs.links(attempts), "warning").host == "h1 to h2"


def test_a_link_that_is_slow_one_way_only_is_noticed() -> None:
    assert only(pairs.links([attempt("h0", "h1", 1e9, 1e8)]), "warning")


def test_an_exchange_that_would_outlast_computing_warns_with_both_times() -> None:
    hosts = [host(0, peaks=[90e9], ranks=2), host(1, peaks=[90e9], ranks=2)]
    good = pairs.exchange(hosts, [attempt("h0", "h1", 1e9, 1e9)], NEEDS)[0]
    assert good.status == "ok"
    # 2 x 3/4 x 240 MB out of each host
    assert not lacking(good.value, "360 MB", "2.88 s")
    bad = pairs.exchange(hosts, [attempt("h0", "h1", 1e8, 1e7)], NEEDS)[0]
    assert bad.status == "warning"
    assert lacking(bad.value, "288 s", "4 min 48 s", "44.4 s") == ["288 s"]


def test_shards_cross_once_between_two_hosts() -> None:
    hosts = [host(0, ranks=2), host(1, ranks=2)]
    plain, shards = (
        pairs.exchange(hosts, [attempt("h0", "h1")], needs)[0]
        for needs in (NEEDS, replace(NEEDS, gathered=1_000_000))
    )
    assert not lacking(plain.value, "360 MB"), "3/2 of 240 MB, around a ring of four ranks"
    assert not lacking(shards.value, "240 MB")
