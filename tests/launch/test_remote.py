"""A host through ssh, and what is said when it cannot be had."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed import Cluster
from tests.train import runs

# Asks the agent of a host something. $1: the host, $2: the Python to start there.
ASK = """
import sys
sys.executable = sys.argv[2] if len(sys.argv) > 2 else sys.executable
from dragoman.errors import DragomanError
from dragoman.launch.remote import Remote
try:
    with Remote(sys.argv[1]) as remote:
        print(remote.call("interface_towards", address="10.77.0.1"))
except DragomanError as error:
    print(error)
"""


def ask(cluster: Cluster, *arguments: str, path: str = os.environ["PATH"]) -> str:
    words = ["env", f"PATH={path}", runs.DRAGOMAN[0], "-c", ASK, *arguments]
    return cluster.run(0, words).stdout.strip()


@contextmanager
def changed(cluster: Cluster, host: int, name: str, content: str) -> Iterator[None]:
    """A file of a host's /etc/ssh, for a while."""
    path = Path(f"/proc/{cluster.first_process(host)}/root/etc/ssh", name)
    before = path.read_text()
    path.write_text(content.format(before=before))
    try:
        yield
    finally:
        path.write_text(before)


def test_a_call_is_answered_by_the_host_that_is_named(cluster: Cluster) -> None:
    assert ask(cluster, "h1") == ask(cluster, "root@10.77.0.2") == ask(cluster, "h0") == "eth0"


def test_this_machine_needs_no_ssh(cluster: Cluster) -> None:
    assert ask(cluster, "h0", path="/nowhere") == "eth0"
    assert "ssh is not installed on this machine" in ask(cluster, "h1", path="/nowhere")


@pytest.mark.parametrize(
    ("host", "name", "content", "said"),
    [
        (1, "authorized_keys", "", "h1: ssh refused us"),
        (0, "known_hosts", "", "h1: its ssh key is not known yet"),
        (0, "ssh_config", "{before}\nPort 2222\n", "h1: no ssh server answers"),
        (0, "ssh_config", "{before}\nHostname 10.77.0.99\nConnectTimeout 1\n", "h1: not reached"),
    ],
)
def test_a_closed_door_is_named_with_the_key_to_it(
    cluster: Cluster, host: int, name: str, content: str, said: str
) -> None:
    with changed(cluster, host, name, content):
        message = ask(cluster, "h1")
    assert message.startswith(said)
    assert "\n  try: " in message


def test_a_host_without_our_python_or_without_us_is_named(cluster: Cluster) -> None:
    assert ask(cluster, "h1", "/nowhere/python").startswith("h1: the Python of this command is not there")
    assert ask(cluster, "h1", "/usr/bin/python3").startswith("h1: dragoman is not installed there")
    assert ask(cluster, "h9").startswith("h9: no such host")


@pytest.mark.parametrize("words", ["welcome to h1", "42", "null", '"hi"', "{}", "[1]"])
def test_a_talkative_login_is_not_taken_for_an_answer(cluster: Cluster, words: str) -> None:
    greeting = Path(f"/proc/{cluster.first_process(1)}/root/etc/ssh/sshrc")
    greeting.write_text(f"echo {shlex.quote(words)}\n")
    try:
        assert cluster.run(0, ["ssh", "h1", "true"]).stdout == f"{words}\n"
        assert ask(cluster, "h1") == "eth0"
    finally:
        greeting.unlink()
