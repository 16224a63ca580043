"""A host through ssh, and what is said when it cannot be had."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.launch import remote
from testbed import Cluster
from tests.facts import lacking
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


def is_explained(message: str, host: str, others_words: str) -> bool:
    """Whether these words of ssh or a shell are explained as the table of reasons has it, with its hint."""
    found = [(what, hint) for pattern, what, hint in remote._REASONS if re.search(pattern, others_words)]
    (what, hint), *_ = found
    begins, _, tries = message.partition("\n  try: ")
    return begins.startswith(f"{host}: {what} (") and tries.startswith(hint.partition("{")[0])


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
    assert not lacking(ask(cluster, "h1", path="/nowhere"), "ssh")


@pytest.mark.parametrize(
    ("host", "name", "content", "of_ssh"),
    [
        (1, "authorized_keys", "", "Permission denied"),
        (0, "known_hosts", "", "Host key verification failed"),
        (0, "ssh_config", "{before}\nPort 2222\n", "Connection refused"),
        (0, "ssh_config", "{before}\nHostname 10.77.0.99\nConnectTimeout 1\n", "unreachable"),
    ],
)
def test_a_refusal_of_ssh_names_the_host_and_what_to_do(
    cluster: Cluster, host: int, name: str, content: str, of_ssh: str
) -> None:
    with changed(cluster, host, name, content):
        message = ask(cluster, "h1")
    assert is_explained(message, "h1", of_ssh)


def test_a_host_without_our_python_or_without_us_is_named(cluster: Cluster) -> None:
    for message, host, of_shell in (
        (ask(cluster, "h1", "/nowhere/python"), "h1", "/nowhere/python: not found"),
        (ask(cluster, "h1", "/usr/bin/python3"), "h1", "No module named 'dragoman"),
        (ask(cluster, "h9"), "h9", "Could not resolve hostname"),
    ):
        assert is_explained(message, host, of_shell.replace("/nowhere/python", sys.executable))


@pytest.mark.parametrize("words", ["welcome to h1", "42", "null", '"hi"', "{}", "[1]"])
def test_a_talkative_login_is_not_taken_for_an_answer(cluster: Cluster, words: str) -> None:
    greeting = Path(f"/proc/{cluster.first_process(1)}/root/etc/ssh/sshrc")
    greeting.write_text(f"echo {shlex.quote(words)}\n")
    try:
        assert cluster.run(0, ["ssh", "h1", "true"]).stdout == f"{words}\n"
        assert ask(cluster, "h1") == "eth0"
    finally:
        greeting.unlink()
