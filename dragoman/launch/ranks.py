"""Runs any program as ranks on this machine that begin and end together; supervisor.py keeps trainings going.

    python -m dragoman.launch.ranks 2 -m dragoman train ...

Ranks need one listening socket to find each other. The launcher opens it at one address and hands it to
rank 0: nothing listens on other interfaces, and no other program can take the port before it is used. Only
numbers and addresses pass between the launcher and the ranks; nothing is unpickled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack

from dragoman import orphans, terminal
from dragoman.launch import environment
from dragoman.launch.environment import AFTER_LOSS_SECONDS, SAVE_SECONDS
from dragoman.launch.signals import stop_requests
from dragoman.sync.route import listen_at

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.05
_REPORT_SECONDS = 2.0  # after a failure all ranks exit; the one that reports the reason may be the last


def run(words: Sequence[str], workers: int) -> int:
    """Runs `python WORDS` as ranks and returns their exit code. They share our standard output and error.

    SIGINT, SIGTERM and SIGHUP are requests to stop: each is passed to the ranks, which save and exit.
    """
    requests: list[int] = []
    with stop_requests(requests.append), ExitStack() as stack:
        ranks = _start(words, workers)
        stack.callback(_end, ranks, 0.0)  # no rank outlives this function, even after an exception
        while _running(ranks) and not _failed(ranks) and not requests:
            time.sleep(_POLL_SECONDS)
        if requests:
            _forward(requests, ranks, SAVE_SECONDS)
            return _outcome_of_stop(ranks)
        _wait(ranks, _REPORT_SECONDS)
        failed = _failed(ranks)
        _end(ranks, AFTER_LOSS_SECONDS)
        return _outcome(failed)


def _start(words: Sequence[str], workers: int) -> list[subprocess.Popen[bytes]]:
    shared = os.environ | environment.for_ranks(workers)
    ranks = []
    with listen_at(_LOOPBACK, 0) as listener:
        port, descriptor = listener.getsockname()[1], listener.fileno()
        for rank in range(workers):
            place = environment.place(rank, workers, rank, workers, _LOOPBACK, port)
            if rank == 0:
                place |= environment.with_listener(descriptor)
            # In a session of their own, so that Ctrl-C reaches only the launcher, which forwards it.
            process = subprocess.Popen(
                [sys.executable, *words],
                env=shared | place,
                pass_fds=[descriptor] if rank == 0 else (),
                start_new_session=True,
                preexec_fn=orphans.end_with_parent,
            )
            ranks.append(process)
    return ranks


def _running(ranks: Sequence[subprocess.Popen[bytes]]) -> list[subprocess.Popen[bytes]]:
    return [rank for rank in ranks if rank.poll() is None]


def _failed(ranks: Sequence[subprocess.Popen[bytes]]) -> dict[int, int]:
    """The exit codes other than 0, by rank."""
    codes = {number: rank.poll() for number, rank in enumerate(ranks)}
    return {number: code for number, code in codes.items() if code}


def _forward(requests: list[int], ranks: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Sends the ranks each requested signal, including new ones, until they exit; then kills the rest.

    `requests` may grow meanwhile. Ranks are killed after this many seconds.
    """
    deadline = time.monotonic() + seconds
    while (running := _running(ranks)) and time.monotonic() < deadline:
        while requests:
            number = requests.pop(0)
            for rank in running:
                rank.send_signal(number)
        time.sleep(_POLL_SECONDS)
    _end(ranks, 0.0)


def _wait(ranks: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _running(ranks) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _end(ranks: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Sends the remaining ranks SIGTERM, and kills those still running after this many seconds."""
    for rank in _running(ranks):
        rank.terminate()
    _wait(ranks, seconds)
    for rank in _running(ranks):
        rank.kill()
    for rank in ranks:
        rank.wait()


def _outcome_of_stop(ranks: Sequence[subprocess.Popen[bytes]]) -> int:
    if not (failed := _failed(ranks)):
        return 0
    terminal.warn(
        f"error: stopped, but {len(failed)} of {len(ranks)} ranks ended before everything was saved\n"
        "  try: the same command, which continues from the last checkpoint"
    )
    return 1


def _outcome(failed: dict[int, int]) -> int:
    """The exit code after ranks failed. Ranks report their own errors unless a signal ended them."""
    for rank, code in failed.items():
        if code < 0:
            terminal.warn(f"error: {_killed(rank, -code)}")
    return max(1, *failed.values()) if failed else 0


def _killed(rank: int, number: int) -> str:
    return (
        f"rank {rank} was ended by {signal.Signals(number).name}\n"
        "  try: the same command, which continues from the last checkpoint; if it happens again, check "
        "whether the machine runs out of memory (dmesg), and need less of it with --set data.split=2 or "
        "--set train.recompute=true"
    )


if __name__ == "__main__":
    sys.exit(run(sys.argv[2:], int(sys.argv[1])))
