"""torch.cuda.Event with a card whose clock the test sets: the host runs ahead of it, as of a real one."""

from __future__ import annotations


class Event:
    """An event at the end of what has been queued (`now`); it has happened once the card is there (`done`).

    A test adds the seconds of a kernel to `now` when it is queued, and moves `done` when the card has run it.
    """

    now, done = 0.0, 0.0  # seconds

    def __init__(self, enable_timing: bool):
        assert enable_timing

    def record(self) -> None:
        self.at = Event.now

    def query(self) -> bool:
        return self.at <= Event.done

    def synchronize(self) -> None:
        Event.done = max(Event.done, self.at)

    def elapsed_time(self, other: Event) -> float:
        assert self.query() and other.query(), "torch refuses events that have not happened"
        return (other.at - self.at) * 1000
