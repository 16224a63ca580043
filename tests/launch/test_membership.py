"""A rank's side of the talk with the supervisor; the supervisor and the other ranks are the test's."""

from __future__ import annotations

import queue
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DragomanError
from dragoman.launch import membership
from dragoman.launch.channel import Channel, Message
from dragoman.launch.membership import FaultNote, Membership, Supervised
from tests import ranks
from tests.ranks import Fork

LOOPBACK = "127.0.0.1"


def order(generation: int, port: int, rank: int = 1) -> Message:
    return {
        "join": {
            "generation": generation,
            "rank": rank,
            "size": 2,
            "local_rank": rank,
            "local_size": 2,
            "address": LOOPBACK,
            "port": port,
            "key": f"key {generation}",
            "faults": [{"kind": "killed"}],
            "joined": ["b"],
        }
    }


# --- in this process: a channel that the test holds both ends of ------------------------------------------


class Held(Channel):
    def __init__(self) -> None:
        self.sent: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.orders: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def send(self, **message: Any) -> None:
        if "at" not in message:
            self.sent.put(message)

    def messages(self) -> Iterator[Message]:
        while True:
            yield self.orders.get()

    def close(self) -> None: ...


@pytest.fixture
def channel() -> Held:
    return Held()


@pytest.fixture
def member(channel: Held) -> Supervised:
    return Supervised(channel)


def soon(is_so: Callable[[], object]) -> bool:
    deadline = time.monotonic() + ranks.WAIT_SECONDS
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(is_so())


def test_a_rank_says_which_step_its_state_is_of_and_gets_its_place(channel: Held, member: Supervised) -> None:
    channel.orders.put(order(4, port=1234))
    invitation = member.join(step=17)
    assert channel.sent.get() == {"ready": 17}
    place = invitation.place
    assert (place.rank, place.size, place.local_rank, place.local_size) == (1, 2, 1, 2)
    assert (place.address, place.port, place.key, place.listener) == (LOOPBACK, 1234, "key 4", None)
    assert (invitation.generation, invitation.faults, invitation.joined) == (
        4,
        [FaultNote(kind="killed")],
        ["b"],
    )


def test_the_first_rank_listens_at_the_address_before_it_says_the_port(
    channel: Held, member: Supervised
) -> None:
    channel.orders.put(order(1, port=0, rank=0))
    place = member.join(step=-1).place
    assert [channel.sent.get(), channel.sent.get()] == [{"ready": -1}, {"listening": place.port}]
    assert place.listener is not None
    with socket.socket(fileno=place.listener) as listener:
        assert listener.getsockname() == (LOOPBACK, place.port)
        socket.create_connection((LOOPBACK, place.port)).close()


def test_a_wish_to_regroup_counts_for_the_world_it_was_meant_for(channel: Held, member: Supervised) -> None:
    channel.orders.put(order(1, port=1))
    member.join(step=0)
    channel.orders.put({"regroup": 1})
    assert soon(lambda: member.regroup_wanted)
    member.left()
    channel.orders.put(order(2, port=1))
    member.join(step=1)
    assert not member.regroup_wanted
    heard: list[int] = []
    member.on_stop(heard.append)
    channel.orders.put({"regroup": 1})
    channel.orders.put({"stop": signal.SIGTERM})  # it comes after the one before
    assert soon(lambda: heard)
    assert not member.regroup_wanted


def test_a_wish_to_regroup_that_comes_before_the_place_in_the_world_is_not_lost(
    channel: Held, member: Supervised
) -> None:
    heard: list[int] = []
    member.on_stop(heard.append)
    channel.orders.put({"regroup": 1})
    channel.orders.put({"stop": signal.SIGTERM})
    assert soon(lambda: heard)
    channel.orders.put(order(1, port=1))
    member.join(step=0)
    assert member.regroup_wanted


def test_a_stop_reaches_who_takes_it_also_if_it_came_before(channel: Held, member: Supervised) -> None:
    early: list[int] = []
    channel.orders.put({"stop": signal.SIGINT})
    channel.orders.put(order(1, port=1))
    member.join(step=0)
    member.on_stop(early.append)
    assert early == [signal.SIGINT]
    channel.orders.put({"stop": signal.SIGTERM})
    assert soon(lambda: early == [signal.SIGINT, signal.SIGTERM])


def test_the_supervisor_decides_on_signals(channel: Held, member: Supervised) -> None:
    assert member.signalled(signal.SIGTERM)
    assert channel.sent.get() == {"signal": signal.SIGTERM}
    assert not Membership().signalled(signal.SIGTERM), "without one the rank does"


@pytest.mark.parametrize(
    ("error", "is_final", "is_quiet"),
    [
        (DragomanError("no data"), True, False),
        (OSError("disk full"), True, False),
        (RuntimeError("oh"), False, False),
        (SystemExit(1), False, True),
    ],
)
def test_the_supervisor_hears_whether_another_try_may_help(
    channel: Held, member: Supervised, error: BaseException, is_final: bool, is_quiet: bool
) -> None:
    member.failed(error)
    said = channel.sent.get()
    assert (said["is_final"], said["is_quiet"]) == (is_final, is_quiet)
    assert bool(said["failed"]) != is_quiet


@pytest.mark.parametrize(("last", "code"), [({"leave": True}, 0), (None, 1)])
def test_a_rank_that_is_not_needed_leaves(
    member: Supervised, monkeypatch: pytest.MonkeyPatch, last: Message | None, code: int
) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(membership, "leave", leave)
    member._orders.put(last)
    with pytest.raises(SystemExit) as left:
        member.join(step=0)
    assert left.value.code == code


# --- in a process of its own, which waits for another rank ------------------------------------------------


class Rank:
    """The other ends of a rank's connections."""

    def __init__(self, fork: Fork, supervisor: Channel, report: Channel, others: socket.socket):
        self.fork, self.supervisor = fork, supervisor
        self.port = others.getsockname()[1]
        self._others, self._report = others, report.messages()

    def reports(self) -> Message:
        return next(self._report)

    def connects(self) -> socket.socket:
        """The other rank's end of its connection."""
        connection, _ = self._others.accept()
        return connection

    def exit_code(self) -> int | None:
        self.fork.process.join(ranks.WAIT_SECONDS)
        return self.fork.process.exitcode


@contextmanager
def rank(folder: Path, scene: str) -> Iterator[Rank]:
    with socket.socket(socket.AF_UNIX) as meeting, socket.create_server((LOOPBACK, 0)) as others:
        meeting.bind(str(folder / "meeting"))
        meeting.listen()
        meeting.settimeout(ranks.WAIT_SECONDS)
        others.settimeout(ranks.WAIT_SECONDS)
        with ranks.started("tests.launch.member", [folder / "meeting", scene], 1) as (fork,):
            supervisor, report = (Channel(meeting.accept()[0]) for _ in range(2))
            try:
                yield Rank(fork, supervisor, report, others)
            finally:
                supervisor.close()
                report.close()


def test_a_cut_wakes_a_rank_that_waits_and_leaves_its_next_world_alone(tmp_path: Path) -> None:
    with rank(tmp_path, "worlds") as waiting:
        waiting.supervisor.send(**order(1, waiting.port))
        assert waiting.reports() == {"joined": 1}
        with waiting.connects():
            waiting.supervisor.send(cut=1)
            assert waiting.reports() == {"arrived": "cut"}
        waiting.supervisor.send(**order(2, waiting.port))
        assert waiting.reports() == {"joined": 2}
        with waiting.connects() as other:
            waiting.supervisor.send(cut=1)  # the same news, late
            time.sleep(3 * membership._CUT_SECONDS)
            other.sendall(b"hello")
            assert waiting.reports() == {"arrived": "hello"}


def test_a_connection_that_is_made_after_a_cut_is_cut_too(tmp_path: Path) -> None:
    with rank(tmp_path, "twice") as waiting:
        waiting.supervisor.send(**order(1, waiting.port))
        with waiting.connects():
            waiting.supervisor.send(cut=1)
            assert waiting.reports() == {"arrived": "cut"}
            with waiting.connects():
                assert waiting.reports() == {"arrived": "cut"}


def test_a_cut_that_overtakes_the_place_in_the_world_is_not_lost(tmp_path: Path) -> None:
    with rank(tmp_path, "worlds") as waiting:
        waiting.supervisor.send(cut=1)
        time.sleep(membership._CUT_SECONDS)
        waiting.supervisor.send(**order(1, waiting.port))
        with waiting.connects():
            assert waiting.reports() == {"joined": 1}
            assert waiting.reports() == {"arrived": "cut"}
        waiting.supervisor.send(**order(2, waiting.port))
        with waiting.connects() as other:
            assert waiting.reports() == {"joined": 2}
            other.sendall(b"hello")
            assert waiting.reports() == {"arrived": "hello"}


def test_a_rank_whose_supervisor_is_gone_stops_nobody_and_gives_up_the_others_when_it_stands_still(
    tmp_path: Path,
) -> None:
    with rank(tmp_path, "orphan") as waiting:
        waiting.supervisor.send(**order(1, waiting.port))
        with waiting.connects():
            waiting.supervisor.close()
            assert waiting.reports() == {"arrived": "cut", "is_orphan": True}
            assert waiting.exit_code() == 1


def test_a_rank_whose_supervisor_is_gone_before_it_has_a_place_leaves(tmp_path: Path) -> None:
    with rank(tmp_path, "worlds") as waiting:
        waiting.supervisor.close()
        assert waiting.exit_code() == 1
