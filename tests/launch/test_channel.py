"""The pair of sockets between a rank and the process that started it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from dragoman.launch import channel
from dragoman.launch.channel import Channel
from tests.ranks import WAIT_SECONDS

ANSWERS = """
from dragoman.launch.channel import Channel
ours = Channel.of_environment()
for message in ours.messages():
    ours.send(heard=message)
"""


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = channel.pair()
    other = Channel(theirs)
    yield ours, other
    ours.close()
    other.close()


def test_messages_arrive_whole_and_in_order(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    sent = [{"text": "grüße\n" * size, "number": size} for size in (0, 1, 50_000)]
    sender = threading.Thread(target=lambda: [ours.send(**message) for message in sent])
    sender.start()
    arriving = theirs.messages()
    assert [next(arriving) for _ in sent] == sent
    sender.join()


def test_messages_of_several_threads_do_not_mix(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends

    def send(number: int) -> None:
        for _ in range(100):
            ours.send(text=str(number) * 1000)

    senders = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for sender in senders:
        sender.start()
    arriving = theirs.messages()
    texts = [next(arriving)["text"] for _ in range(400)]
    for sender in senders:
        sender.join()
    assert sorted(texts) == sorted(str(number) * 1000 for number in range(4) for _ in range(100))


def test_the_messages_end_with_the_other_side_and_sending_then_is_no_error(
    ends: tuple[Channel, Channel],
) -> None:
    ours, theirs = ends
    theirs.send(last=True)
    theirs.close()
    ours.send(too="late")
    assert list(ours.messages()) == [{"last": True}]


def test_closing_wakes_the_thread_that_listens(ends: tuple[Channel, Channel]) -> None:
    ours, _ = ends
    listener = threading.Thread(target=lambda: list(ours.messages()))
    listener.start()
    ours.close()
    listener.join(WAIT_SECONDS)
    assert not listener.is_alive()


def test_a_rank_finds_its_end_and_its_end_closes_with_it() -> None:
    ours, theirs = channel.pair()
    with theirs:
        variables = os.environ | {channel.CONTROL: str(theirs.fileno())}
        rank = subprocess.Popen(
            [sys.executable, "-c", ANSWERS], env=variables, pass_fds=[theirs.fileno()], close_fds=True
        )
    with rank:
        arriving = ours.messages()
        ours.send(join=1)
        assert next(arriving) == {"heard": {"join": 1}}
        rank.kill()
        assert list(arriving) == []
    ours.close()


def test_a_descriptor_has_one_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    monkeypatch.setenv(channel.CONTROL, str(theirs.detach()))
    rank = Channel.of_environment()
    assert channel.CONTROL not in os.environ
    rank.close()
    ours.close()
