import numpy as np
import pytest

from dragoman.report.charts import thin


def test_means_keep_short_series_and_shorten_long_ones() -> None:
    (short,) = thin.means(np.arange(10))
    assert short.tolist() == list(range(10))
    x, y = thin.means(np.arange(100_000), np.full(100_000, 2.0))
    assert len(x) == 500
    assert x.mean() == pytest.approx(49_999.5)
    assert (y == 2).all()


def test_means_leave_out_what_is_not_known() -> None:
    values = np.full(1000, np.nan)
    values[0] = 3.0
    (shorter,) = thin.means(values)
    assert shorter[0] == 3
    assert np.isnan(shorter[1:]).all()


def test_picks_keep_the_peak() -> None:
    curve = np.concatenate((np.linspace(0, 1, 12_345), np.linspace(1, 0, 50_000)))
    assert curve[thin.picks(curve)].max() == 1
    assert len(thin.picks(curve)) <= thin.MOST


def test_slices_of_time_are_no_shorter_than_a_row() -> None:
    bins = thin.TimeBins(np.array([0.0, 600.0]), shortest=60)
    assert bins.count == 10
    assert bins.of(np.array([-5.0, 0.0, 61.0, 9e9, np.nan])).tolist() == [0, 0, 1, 9, 0]


def test_clock_takes_a_unit_that_fits() -> None:
    for seconds, count, unit in ((60.0, 60, "seconds"), (3600.0, 60, "minutes"), (864_000.0, 10, "days")):
        since, label = thin.clock(np.array([0.0, seconds]), 0)
        assert (since[1], label.split()[0]) == (count, unit)
