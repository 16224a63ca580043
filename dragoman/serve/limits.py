"""What one server takes on. Past a limit it says so at once: 413 for what is too large, 429 for too much."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    characters: int = 20_000  # of one request, all its texts together
    texts: int = 64  # of one request
    requests: int = 128  # under way at once, waiting included
    batch_texts: int = 32  # translated at a time
    batch_characters: int = 20_000  # the same: a long text must not hold up many others
    receive_seconds: float = 10.0  # for a request's headers, and again for its body
    send_seconds: float = 30.0  # for a client to take its answer

    @property
    def body_bytes(self) -> int:
        """Every character as JSON writes those outside the first plane, \\ud83d\\ude00, and some room."""
        return 12 * self.characters + 16_384

    @property
    def waiting_characters(self) -> int:
        """Of all requests under way."""
        return 10 * self.characters

    @property
    def tokens(self) -> int:
        """Of one request's translations, where it sets their length: about what it could ask for without."""
        return 10 * self.characters

    @property
    def connections(self) -> int:
        """Enough for every request under way, and as many again that are read, answered or idle."""
        return 4 * self.requests

    @property
    def unread_bytes(self) -> int:
        """Of answers that clients have not taken yet, all together: 16 MB as a rule."""
        return 64 * self.body_bytes


def share(limit: int) -> int:
    """Of one client: three quarters, so that others find room whatever it does."""
    return max(1, limit * 3 // 4)
