"""doctor/clock_offset.py: another clock, read over a way that takes its time."""

import pytest

from dragoman.doctor.clock_offset import ClockReading, clock_offset


def test_the_quickest_answer_is_believed() -> None:
    ahead = 90.0
    readings = [
        ClockReading(100.0, 100.9 + ahead, 101.0),  # was on its way for most of a second
        ClockReading(200.0, 200.01 + ahead, 200.02),
        ClockReading(300.0, 300.1 + ahead, 300.5),
    ]
    offset = clock_offset(readings)
    assert offset.seconds == pytest.approx(ahead)
    assert offset.error_seconds == pytest.approx(0.01)


def test_a_clock_is_no_farther_off_than_the_error_says() -> None:
    for there in (100.0, 100.2, 100.5):  # read at once, meanwhile, or at the end; it shows the same time
        offset = clock_offset([ClockReading(100.0, there, 100.5)])
        assert abs(offset.seconds) <= offset.error_seconds + 1e-9
