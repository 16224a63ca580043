"""The limits of one server; past them it refuses at once, with 413 for too large and 429 for too many."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    characters: int = 20_000  # in one request, all texts together
    texts: int = 64  # in one request
    requests: int = 128  # under way at once, including those waiting
    batch_texts: int = 32  # translated together
    batch_characters: int = 20_000  # translated together: a long text must not delay many others
    receive_seconds: float = 10.0  # for a request's headers, and again for its body
    send_seconds: float = 30.0  # for a client to read its answer

    @property
    def body_bytes(self) -> int:
        """Room for every character in JSON's longest form, \\ud83d\\ude00, and for the rest of the body."""
        return 12 * self.characters + 16_384

    @property
    def waiting_characters(self) -> int:
        """Characters in all requests under way."""
        return 10 * self.characters

    @property
    def tokens(self) -> int:
        """Tokens in a request's translations if it sets `max_length`: about what it could get without it."""
        return 10 * self.characters

    @property
    def connections(self) -> int:
        """Enough for every request under way, and for others being read, answered or idle."""
        return 4 * self.requests

    @property
    def unread_bytes(self) -> int:
        """Bytes of answers not yet read by clients, all together: 16 MB by default."""
        return 64 * self.body_bytes


def share(limit: int) -> int:
    """One client's share of a limit: three quarters, which leaves room for others."""
    return max(1, limit * 3 // 4)
