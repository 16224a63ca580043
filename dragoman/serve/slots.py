"""Limits how many translation requests are under way, in all and for one client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.serve.limits import Limits, share
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import busy


class Slots:
    """A request holds a slot from the arrival of its last byte until it is translated.

    So neither a client that sends slowly nor one that does not read its answer takes a slot from others.
    """

    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits = limits
        self._metrics = metrics
        self._requests: Counter[str] = Counter()  # by client
        self._characters: Counter[str] = Counter()

    @contextmanager
    def held(self, client: str, characters: int) -> Iterator[None]:
        """Hold a slot during the block; refuses if none is free."""
        self._check("requests", self._requests, client, 1, self._limits.requests)
        # An empty text needs no translating, so it is answered however many characters are waiting.
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
        if not self._requests[client]:  # keep only clients with a request
            del self._requests[client], self._characters[client]
        self._metrics.requests_under_way = self._requests.total()
