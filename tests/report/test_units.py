import pytest

from dragoman.report.units import label, shown
from tests.facts import lacking


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("wall_seconds", 3240.0, "54 min"),
        ("step_seconds_without_exchange", 0.52, "0.52 s"),
        ("link_bits_per_second", 3.1e9, "3.1 Gbit/s"),
        ("bytes_per_step_per_host", 365e6, "365 MB"),
        ("tokens_per_second", 10556.4, "10,556"),
        ("exposed_share", 0.41, "41%"),
        ("gap_trend_per_1000_steps", 0.0041234, "0.004123"),
        ("parameters", 60_875_000, "60,875,000"),
        ("finished", False, "no"),
        ("correlation_with_bytes", 0.13, "0.13"),
        ("planned_difference_share", 7.7e-17, "0%"),
        ("phase_seconds", {"data": 0.01, "forward": 0.16}, "data 10 ms, forward 0.16 s"),
        ("peak", 0.0007, "0.0007"),
        ("best_bleu", float("nan"), "–"),
        ("best_bleu", None, "–"),
    ],
)
def test_the_name_decides_the_unit(name: str, value: object, expected: str) -> None:
    assert shown(name, value) == expected


def test_a_curve_is_not_written_out() -> None:
    said = shown("bleu_curve", [[1, 2.0]])
    assert not lacking(said, 1, "findings.json") and lacking(said, 2)


def test_labels_leave_the_unit_to_the_number() -> None:
    assert label("step_seconds_without_exchange") == "step without exchange"
    assert label("correlation_with_bytes") == "correlation with bytes"
    assert label("link_bits_per_second") == "link"
    assert label("gain_if_doubled_bleu_low") == "gain if doubled BLEU low"
