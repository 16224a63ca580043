"""Hosts that are not alike are named, with the value that differs and what to do."""

import pytest

from dragoman.doctor import compare
from dragoman.doctor.check import worst
from dragoman.doctor.facts import DataFacts, Interface
from dragoman.doctor.judge import judge
from tests.doctor.build import NEEDS, host, only
from tests.explain.sentences import wording
from tests.facts import lacking


def versions(**changes: str) -> dict[str, str]:
    return host(0).versions | changes


def test_hosts_that_are_alike_have_nothing_to_complain_of() -> None:
    checks = judge([host(0), host(1), host(2)], NEEDS)
    assert worst(checks) == "ok"
    assert not any(check.advice for check in checks)


@pytest.mark.parametrize("package", ["torch", "dragoman"])
def test_another_version_is_an_error_that_names_host_and_both_values(package: str) -> None:
    hosts = [host(0), host(1, versions=versions(**{package: "9.9"})), host(2)]
    check = only(compare.versions(hosts), "error")
    assert (check.name, check.host) == (package, "h1")
    assert not lacking(check.value, "9.9", "h0", hosts[0].versions[package])


def test_the_odd_one_out_is_named_also_if_it_is_the_first() -> None:
    hosts = [host(0, versions=versions(torch="2.12.0")), host(1), host(2)]
    check = only(compare.versions(hosts), "error")
    assert check.host == "h0"
    assert not lacking(check.value, "2.12.0", "h1", "2.13.0")


def test_another_python_is_an_error_only_where_more_than_the_last_number_differs() -> None:
    assert only(compare.versions([host(0), host(1, versions=versions(python="3.11.9"))]), "warning")
    assert only(compare.versions([host(0), host(1, versions=versions(python="3.12.7"))]), "error")


def test_other_data_on_one_host_is_an_error_that_names_it() -> None:
    other = DataFacts(path="data/mine", fingerprint="0123456789abcdef" + "0" * 48)
    check = only(compare.data([host(0), host(1, data=other), host(2)]), "error")
    assert check.host == "h1"
    assert not lacking(check.value, "0123456789abcdef", "h0", "ffffffffffffffff")
    assert "dragoman launch copy" in check.advice


def test_missing_data_is_an_error_and_the_hosts_that_have_it_are_reported() -> None:
    missing = DataFacts(path="data/mine", problem="data/mine: no data set here", hint="make one")
    checks = compare.data([host(0), host(1, data=missing)])
    assert only(checks, "error").value == "data/mine: no data set here"
    assert [check.host for check in checks if check.status == "ok"] == ["h0"]


def test_without_data_given_nothing_is_reported_of_data() -> None:
    assert compare.data([host(0, data=None), host(1, data=None)]) == []


def test_a_name_that_means_loopback_is_reported_with_the_line_to_write() -> None:
    check = only(compare.names([host(0), host(1, own_name_addresses=["127.0.1.1"])]), "warning")
    assert check.host == "h1"
    assert "127.0.1.1" in check.value
    assert not lacking(check.advice, "/etc/hosts", "h1", "'10.77.0.2 h1'", "127.0.1.1")


def test_a_machine_alone_may_be_called_what_it_likes() -> None:
    assert compare.names([host(0, own_name_addresses=["127.0.1.1"])]) == []


def test_two_machines_of_one_name_are_an_error() -> None:
    check = only(compare.names([host(0), host(1, name="h0")]), "error")
    assert (check.name, check.host) == ("host name", "h0")
    assert not lacking(check.value, 2)


def test_another_hosts_name_that_means_loopback_here_is_an_error() -> None:
    views = [{"h0": ["10.77.0.1"], "h1": ["127.0.0.1"]}, {"h0": ["10.77.0.1"], "h1": ["10.77.0.2"]}]
    check = only(compare.peer_names([host(0), host(1)], views), "error")
    assert check.host == "h0"
    assert not lacking(check.advice, "'10.77.0.2 h1'", "/etc/hosts", "h0")


def test_another_hosts_name_that_means_a_third_address_warns_and_no_name_at_all_is_fine() -> None:
    views = [{"h0": ["10.77.0.1"], "h1": ["10.9.9.9"]}, {"h0": [], "h1": ["10.77.0.2"]}]
    check = only(compare.peer_names([host(0), host(1)], views), "warning")
    assert not lacking(check.value, "h1", "10.9.9.9")


def test_a_clock_that_is_off_warns_and_says_by_how_much_and_which_way() -> None:
    hosts = [host(0), host(1, clock_offset_seconds=90.0), host(2, clock_offset_seconds=-1.5)]
    ahead, behind = compare.clocks(hosts)
    assert (ahead.status, ahead.host, lacking(ahead.value, "90 s", "h0")) == ("warning", "h1", [])
    assert (behind.status, behind.host, lacking(behind.value, "1.5 s", "h0")) == ("warning", "h2", [])
    assert wording(ahead.value) != wording(behind.value)


def test_a_clock_read_over_a_slow_way_is_not_blamed_for_the_way() -> None:
    slow = host(1, clock_offset_seconds=1.4, clock_error_seconds=0.6)
    assert compare.clocks([host(0), slow])[0].status == "ok"


def test_the_interface_in_use_and_the_others_are_reported() -> None:
    interfaces = [
        Interface(name="eth0", is_up=True, addresses=["10.77.0.1"]),
        Interface(name="wg0", is_up=True, addresses=["10.8.0.1"]),
        Interface(name="eth1", is_up=False, addresses=["10.9.0.1"]),
    ]
    check = compare.interfaces([host(0, interfaces=interfaces, interface="wg0")])[0]
    used, others = check.value.split(";")
    assert used == "wg0 (10.8.0.1)"
    assert not lacking(others, "eth0 (10.77.0.1)") and lacking(others, "eth1")
