from __future__ import annotations

import math

import pytest

from dragoman import figures
from dragoman.cost.gpu_types import named
from dragoman.errors import UsageError
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import load
from dragoman.plan.cluster import CARRIED, PlannedLink


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("about 1.9", 1.9),
        ("22-24", 23),
        ("about 2 to 3 seconds", 2.5),
        ("around 120K", 120_000),
        ("141.9k", 141_900),
        ("4,524,868 lines", 4_524_868),
        ("1.829 mean (8 pts, first 800 steps)", 1.829),
        ("100k in 40 h (~120k)", 100_000),
        ("a lot", None),
        ("", None),
    ],
)
def test_figures_are_read_as_people_write_them(text: str, value: float | None) -> None:
    assert figures.figure(text) == value


def test_days_are_not_hours() -> None:
    assert figures.hours("about 2 days per 100k") == 48
    assert figures.hours("just under 24") == 24
    assert figures.hours("90 min") == 1.5


@pytest.mark.parametrize(
    ("text", "bits"),
    [("1gbit", 1e9), ("1000 Mbps", 1e9), ("1000", 1e9), ("1GB", 1e9), ("100gbit", 1e11), ("", None)],
)
def test_links_are_ordered_in_bits(text: str, bits: float | None) -> None:
    assert figures.bits_per_second(text) == bits


def test_watts_are_told_from_names_memory_and_percent() -> None:
    text = "v100a 43,44; v100b 158,192 at 79%,84% (8690 MiB used)"
    assert figures.figures(text) == [43, 44, 158, 192]


def test_every_rate_of_a_text_is_found_and_a_range_is_one() -> None:
    found = figures.readings("ranged from 180 Mbps to 210 Mbps while the port has 1000 Mbps")
    assert [reading.value for reading in found] == [195, 1000]
    (five_minutes,) = figures.readings("about 17.3 Gb/5 min network in")
    assert five_minutes.bytes_per_second == pytest.approx(17.3e9 / 8 / 300)


def test_the_unit_that_fits_is_named_and_none_if_none_does() -> None:
    (read,) = figures.readings("200 Mbps")
    fits = figures.consistent(read, 192e6)
    assert fits and (fits.unit, fits.as_written) == ("MB/s", False)
    fits = figures.consistent(read, 25e6)
    assert fits and fits.as_written
    assert figures.consistent(read, 1e6) is None


def test_several_gpus_in_one_text_are_all_found() -> None:
    assert [kind.name for kind in named("one 2xP100 VM + one 2xV100 VM")] == ["V100", "P100"]
    assert [kind.name for kind in named("Tesla P40")] == ["P40"]
    assert named("a GPU") == named(None) == []


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("23h 36m", 23.6),
        ("23h36min", 23.6),
        ("23:36:00", 23.6),
        ("1 day, 2:24:00", 26.4),
        ("2 days, 22:08:45", 70.1458),
        ("1-02:24:00", 26.4),
        ("23 hours and 36 minutes", 23.6),
        ("1 day, 2 hours", 26),
        ("85000 seconds", 85000 / 3600),
        ("22-24 hours", 23),
        ("1416 minutes", 23.6),
        ("24 hours (86400 s)", 24),
        ("unknown", None),
    ],
)
def test_durations_are_read_in_their_units(text: str, hours: float | None) -> None:
    assert figures.hours(text) == (hours and pytest.approx(hours))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.7 s", 1.7),
        ("1,7", 1.7),
        ("about 300ms", 0.3),
        ("0.5 steps/s", 2),
        ("0.5 steps per second", 2),
        ("1.67 (0.6 steps/s)", 1.67),
        ("around 4 mins for 100 steps", 2.4),
        ("170 s per 100 steps", 1.7),
        ("0.52 global_step/sec", 1 / 0.52),
        ("31 steps/min", 60 / 31),
        ("100 steps: 190 s", 1.9),
        ("100 steps took 3 min", 1.8),
        ("about 2 to 3 seconds", 2.5),
        ("-", None),
    ],
)
def test_a_step_time_is_read_in_its_unit(text: str, seconds: float | None) -> None:
    assert figures.step_seconds(text) == (seconds and pytest.approx(seconds))


def test_a_link_is_the_figure_with_a_unit() -> None:
    assert figures.bits_per_second("2 x 1 Gbps") == 1e9
    assert figures.bits_per_second("1,5 Gbit") == 1.5e9
    assert figures.bits_per_second("1tbit") == figures.bits_per_second("1 Tb/s") == 1e12
    assert figures.bits_per_second("1 to 10 Gbit") == 1e10
    assert figures.bits_per_second("1000 the usual") == 1e9
    assert figures.bits_per_second("1,000 Mbps") == 1e9


@pytest.mark.parametrize("text", ["200 MiB/s", "200 megabytes per second", "200 MB/s"])
def test_rates_are_read_in_words_too(text: str) -> None:
    assert [reading.bytes_per_second for reading in figures.readings(text)] == [200e6]


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("1gbit", 1e9),
        ("1e3mbit", 1e9),
        ("1.5 Gbit/s", 1.5e9),
        ("1,5 Gbit", 1.5e9),
        ("10GbE", 1e10),
        ("1000", 1e9),
    ],
)
def test_an_order_is_read_as_a_whole(text: str, bits: float) -> None:
    assert figures.ordered_link(text) == bits
    assert PlannedLink.parse(text).bits_per_second.value == CARRIED[0] * bits


@pytest.mark.parametrize(
    "text",
    [
        "-1gbit",
        "0",
        "0gbit",
        "inf",
        "nan",
        "1e308gbit",
        "1e-9mbit",
        "1gbit2",
        "gbit",
        "2 x 1gbit",
        "1gbit fast",
    ]
    + ["1" * 5000, "1e" + "9" * 400, ""],
)
def test_an_order_that_is_no_rate_is_refused(text: str) -> None:
    for read in (figures.ordered_link, PlannedLink.parse):
        with pytest.raises(UsageError, match="--link"):
            read(text)


@pytest.mark.parametrize(
    "facts",
    [
        {"link": "-1gbit"},
        {"nic": "-200 Mbps"},
        {"nic": "0 Mbps"},
        {"gpu_power": "-42/250"},
        {"gpu_power": "1e9"},
    ]
    + [{"gpu_power": "42/0"}, {"gpu_power": "42/250/7"}, {"gpu_util": 500.0}, {"step_seconds": math.nan}]
    + [{"hours": math.inf}, {"gradient_bytes": -1}, {"steps": 10**20}],
)
def test_a_fact_that_cannot_be_true_is_refused(facts: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(facts)).replace('_', '-')}"):
        diagnose([], load(None, {"step_seconds": 1.7} | facts))


@pytest.mark.parametrize(
    "text", ["9" * 400, "1e999", "0 s for 0 steps", "1 s for 0 steps", "0-0", "1e-320 steps/s"]
)
def test_a_figure_that_no_run_has_is_none(text: str) -> None:
    for read in (figures.figure, figures.hours, figures.step_seconds, figures.bits_per_second):
        assert (read(text) or 0) <= figures.MOST
    assert 0 <= figures.rounding(text) <= 1
    assert not figures.readings(f"{text} Mbps") or figures.readings(f"{text} Mbps")[0].value < figures.MOST
