"""The requests for a translation that are under way, and how many of them one client may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.serve.limits import Limits, share
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import busy


class Places:
    """A request has a place from when all of it arrived until it is translated.

    Neither those who send slowly nor those who do not read their answer keep a place from others.
    """

    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits = limits
        self._metrics = metrics
        self._requests: Counter[str] = Counter()  # by client
        self._characters: Counter[str] = Counter()

    @contextmanager
    def held(self, client: str, characters: int) -> Iterator[None]:
        """For the time of the block; refuses if there is no place."""
        self._check("requests", self._requests, client, 1, self._limits.requests)
        # What needs no translating needs no room: an empty text is always answered.
        self._check("characters", self._characters, client, characters, self._limits.waiting_characters)
        self._count(client, 1, characters)
        try:
            yield
        finally:
            self._count(client, -1, -characters)

    def _check(self, what: str, taken: Counter[str], client: str, wanted: int, limit: int) -> None:
        total = taken.total()
        if wanted and total + wanted > limit:
            raise busy(f"{total:,} {what} are under way")
        if wanted and taken[client] + wanted > share(limit):
            raise busy(f"{taken[client]:,} {what} of this client are under way")

    def _count(self, client: str, requests: int, characters: int) -> None:
        self._requests[client] += requests
        self._characters[client] += characters
        if not self._requests[client]:  # clients come and go: only those with a request are kept
            del self._requests[client], self._characters[client]
        self._metrics.requests_under_way = self._requests.total()
