"""Collectives that can never complete end when their connections are cut."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import psutil

from dragoman.sync import connections
from tests import ranks
from tests.train import runs

RANKS = 3


def test_a_sum_with_a_stopped_rank_fails_in_all_others_at_once_when_they_are_cut(tmp_path: Path) -> None:
    with ranks.started("tests.sync.cut_ranks", [tmp_path], RANKS) as forks:
        *others, stopped = forks
        made = [tmp_path / f"sums-{rank}" for rank in range(RANKS)]
        runs.wait_until("all add up", lambda: all(path.exists() for path in made))
        assert stopped.process.pid
        os.kill(stopped.process.pid, signal.SIGSTOP)
        time.sleep(0.5)
        assert all(fork.process.is_alive() for fork in others), "they wait"
        (tmp_path / "cut").touch()
        for fork in others:
            fork.process.join(ranks.WAIT_SECONDS)
            assert float(fork.ended().said()) < 1.0
        assert psutil.Process(stopped.process.pid).status() == psutil.STATUS_STOPPED


def cut_in_a_child(report: socket.socket) -> None:
    """A child, which has our connections too, cuts them and says how many."""
    if not (child := os.fork()):
        try:
            report.sendall(bytes([connections.cut()]))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_only_tcp_connections_are_cut() -> None:
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as connection,
        listener.accept()[0] as accepted,
    ):
        # Cut in a child: the process of the tests may have connections that are not for us to cut. But
        # a connection is the same one in both: once shut down there, it is here.
        thread = threading.Thread(target=connection.recv, args=(1,))
        thread.start()
        cut_in_a_child(theirs)
        thread.join(ranks.WAIT_SECONDS)
        assert not thread.is_alive()
        assert accepted.recv(1) == b""
        assert ours.recv(1)[0] >= 2
        with socket.create_connection(listener.getsockname()):
            listener.accept()[0].close()
