"""A rank's membership in a process of its own: `python -m tests.launch.member SOCKET SCENE`.

It connects to the Unix socket twice: as to its supervisor, and to report to the test what it sees.
"""

from __future__ import annotations

import socket
import sys

from dragoman.launch import membership
from dragoman.launch.channel import Channel
from dragoman.launch.membership import Invitation, Supervised


def connected(path: str) -> Channel:
    end = socket.socket(socket.AF_UNIX)
    end.connect(path)
    return Channel(end)


def waits(invitation: Invitation) -> str:
    """What arrives over a connection to another rank of this world, or why nothing does."""
    with socket.create_connection((invitation.place.address, invitation.place.port)) as connection:
        try:
            return connection.recv(100).decode() or "cut"
        except ConnectionError:
            return "cut"


def worlds(member: Supervised, report: Channel) -> None:
    """Waits for a word of another rank in each world."""
    for step in range(10):
        invitation = member.join(step)
        report.send(joined=invitation.generation)
        report.send(arrived=waits(invitation))
        member.left()


def twice(member: Supervised, report: Channel) -> None:
    """Connects once more after a cut, as a collective may that is under way."""
    invitation = member.join(0)
    report.send(arrived=waits(invitation))
    report.send(arrived=waits(invitation))
    member.left()
    member.join(1)


def orphan(member: Supervised, report: Channel) -> None:
    """Loses its supervisor during a step, in which it waits for a rank that is gone."""
    membership._ORPHAN_SECONDS = 0.5
    member.on_stop(lambda number: report.send(stop=number))
    invitation = member.join(3)
    member.at(3, "step")
    report.send(arrived=waits(invitation), is_orphan=member.is_orphan)
    member.left()
    member.join(3)


if __name__ == "__main__":
    to_supervisor, to_test = connected(sys.argv[1]), connected(sys.argv[1])
    globals()[sys.argv[2]](Supervised(to_supervisor), to_test)
