"""The interface towards an address, by the kernel's own routes."""

import sys

import pytest

from dragoman.sync.route import interface_towards, own_address_towards
from testbed import Cluster

LOOK = """
import sys
from dragoman.sync.route import interface_towards, own_address_towards
for address in sys.argv[1:]:
    print(interface_towards(address), own_address_towards(address))
"""


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "127.0.1.1"])
def test_this_machine_is_reached_by_loopback(address: str) -> None:
    assert interface_towards(address) == "lo"


def test_the_own_address_towards_loopback_is_loopback() -> None:
    assert own_address_towards("127.0.0.1") == "127.0.0.1"


@pytest.mark.usefixtures("hosts_are_possible")
@pytest.mark.parametrize("loopback_name", [False, True], ids=["usual", "debian"])
def test_other_hosts_are_reached_by_the_cable_whatever_the_own_name_resolves_to(loopback_name: bool) -> None:
    with Cluster(hosts=2, loopback_name=loopback_name) as cluster:
        said = cluster.run(0, [sys.executable, "-c", LOOK, "h1", cluster.addresses[1], "127.0.0.1", "h0"])
        by_name, by_address, loopback, own_name = (line.split() for line in said.stdout.splitlines())
        assert by_name == by_address == ["eth0", cluster.addresses[0]]
        assert loopback == ["lo", "127.0.0.1"]
        # Debian's 127.0.1.1 is reached by loopback; an address of one's own is held by its interface
        assert own_name[0] == ("lo" if loopback_name else "eth0")
