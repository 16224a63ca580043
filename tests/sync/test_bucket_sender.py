"""sync/bucket_sender.py: order, pieces and failures, along a route that goes nowhere."""

from __future__ import annotations

import pytest
import torch
from torch.futures import Future

from dragoman.sync.bucket_sender import PIECE_BYTES, BucketSender
from dragoman.sync.wire import Finish

CPU = torch.device("cpu")
PIECE = PIECE_BYTES // 4  # gradients


class Bucket:
    """As DDP hands one over."""

    def __init__(self, count: int, is_last: bool):
        self._gradients, self._is_last = torch.zeros(count), is_last

    def buffer(self) -> torch.Tensor:
        return self._gradients

    def is_last(self) -> bool:
        return self._is_last


class Diary:
    """A route that writes down what it is asked, and fails at some beginning or end."""

    def __init__(self, fails_at: str = ""):
        self.entries: list[str] = []
        self._fails_at = fails_at
        self._count = 0

    def begin(self, gradients: torch.Tensor) -> Finish:
        number, self._count = self._count, self._count + 1
        self._write(f"begin {number}")

        def finish() -> None:
            self._write(f"end {number}")
            gradients.add_(1)

        return finish

    def _write(self, entry: str) -> None:
        self.entries.append(entry)
        if entry == self._fails_at:
            raise RuntimeError("Connection closed by peer")


def sent(sender: BucketSender, *counts: int) -> list[Future[torch.Tensor]]:
    last = len(counts) - 1
    buckets = [Bucket(count, number == last) for number, count in enumerate(counts)]
    return [sender.hook(None, bucket) for bucket in buckets]  # type: ignore[arg-type]


def test_two_pieces_are_under_way_at_a_time_and_all_arrive_in_order() -> None:
    diary = Diary()
    sender = BucketSender(diary, CPU)
    arrived = [future.wait() for future in sent(sender, 10, PIECE + 1, 10)]
    sender.raise_failure()
    assert all(gradients.eq(1).all() for gradients in arrived)
    expected = "begin 0, begin 1, end 0, begin 2, end 1, begin 3, end 2, end 3"
    assert ", ".join(diary.entries) == expected
    sender.close()


@pytest.mark.parametrize("place", ["begin 0", "end 0", "begin 1", "end 1", "end 2"])
def test_a_failure_ends_the_step_and_leaves_nobody_waiting(place: str) -> None:
    diary = Diary(place)
    sender = BucketSender(diary, CPU)
    for future in sent(sender, 10, 10, 10):
        future.wait()
    with pytest.raises(RuntimeError, match="closed by peer"):
        sender.raise_failure()
    assert diary.entries[-1] == place, "nothing is sent after a failure"
    sender.close()
