"""format_units.py: numbers as a reader says them."""

import pytest

from dragoman import format_units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.047, "47 ms"),
        (1.934, "1.93 s"),
        (99.6, "99.6 s"),
        (725, "12 min 5 s"),
        (3600, "60 min"),
        (12_000, "3 h 20 min"),
        (187_200, "2 d 4 h"),
        (0, "0 ms"),
        (-725, "-12 min 5 s"),
        (0.0994, "99.4 ms"),
        (0.0996, "0.0996 s"),
        (99.9, "99.9 s"),
        (100, "1 min 40 s"),
        (5_399, "89 min 59 s"),
        (5_400, "1 h 30 min"),
        (48 * 3600 - 60, "47 h 59 min"),
        (48 * 3600, "2 d 0 h"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert format_units.seconds(value) == text


def test_sizes_rates_and_shares() -> None:
    assert format_units.size(365_285_376) == "365 MB"
    assert format_units.size(999_900) == "1 MB"
    assert format_units.rate(9.3e8) == "930 Mbit/s"
    assert format_units.share(0.412) == "41%"
    assert format_units.share(0.0042) == "0.42%"
    assert [format_units.share(value) for value in (0.0099, 0.0101, -0.0042)] == ["0.99%", "1%", "-0.42%"]
    assert [format_units.size(value) for value in (999.4, 999.6, 1.5e15, 2e18)] == [
        "999 bytes",
        "1 kB",
        "1.5 PB",
        "2e+03 PB",
    ]
    assert [format_units.count(value) for value in (9_999_999, 10_000_000, 999.4e6)] == [
        "9,999,999",
        "10 million",
        "999 million",
    ]
    assert format_units.flops(3.2e12) == "3.2 TFLOP/s"
    assert format_units.count(4_500_966) == "4,500,966"
    assert format_units.count(60_880_896) == "60.9 million"
    assert format_units.count(999_600_000) == "1.0 billion"
    assert format_units.count(2_512_000_000) == "2.5 billion"
    assert format_units.listed(["a"]) == "a"
    assert format_units.listed(["a", "b", "c"]) == "a, b and c"


def test_many_hosts_are_counted() -> None:
    names = [f"h{number}" for number in range(64)]
    assert format_units.hosts(names[:1]) == "h0"
    assert format_units.hosts(names[:3]) == "h0, h1 and h2"
    assert format_units.hosts(names) == "h0, h1, h2 and 61 more"
    assert format_units.hosts([]) == ""
