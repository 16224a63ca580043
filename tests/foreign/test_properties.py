"""What must be true of the answers whatever somebody gives: handfuls of facts, drawn at random."""

from __future__ import annotations

import random

import pytest

from dragoman.errors import UsageError
from dragoman.foreign.answers import Diagnosis, diagnose
from dragoman.foreign.facts import Given
from tests.explain import sentences
from tests.facts import failed

CHOICES: dict[str, list[object]] = {
    "model": ["transformer-base", "transformer-big", "transformer-tiny"],
    "gpu": ["V100", "P100", "T4", "K80", "A100"],
    "machines": [1, 2, 4, 16],
    "ranks": [16, 32, 64],
    "link": ["1gbit", "100mbit", "10gbit", "100gbit"],
    "gpu_power": ["42/250", "174/250", "100/250"],
    "gpu_util": [100, 60],
    "batch": [8, 64, 256, 1024],
    "precision": ["fp32", "mixed"],
    "steps": [1, 100, 50_000],
    "hours": [0.5, 23.5, 72],
}
STEPS = [0.005, 0.1, 0.5, 1.7, 1.9, 11, 35, 60, 3600]


def drawn(count: int, seed: int) -> list[Diagnosis]:
    made, draw = [], random.Random(seed)
    while len(made) < count:
        given = {name: draw.choice(values) for name, values in CHOICES.items() if draw.random() < 0.6}
        try:
            made.append(diagnose([], Given.model_validate(given | {"step_seconds": draw.choice(STEPS)})))
        except UsageError:  # fewer ranks than machines
            continue
    return made


@pytest.fixture(scope="module")
def made() -> list[Diagnosis]:
    return drawn(200, seed=8)


def test_sentences_are_whole_and_their_numbers_are_known(made: list[Diagnosis]) -> None:
    for one in made:
        for finding in one.findings:
            assert not failed([finding])
            assert not list(sentences.ugly(finding))
            if finding.id in ("network", "device_utilisation"):
                assert not list(sentences.unfounded(finding, sentences.Known(one.records)))


def test_what_the_network_holds_up_the_devices_wait_for(made: list[Diagnosis]) -> None:
    verdicts = [{finding.id: finding.verdict for finding in one.findings} for one in made]
    said = {row["network"] for row in verdicts}
    assert said >= {"bottleneck", "not_bottleneck", "single_machine", "unknown"}
    for row in verdicts:
        if row["network"] == "bottleneck":
            assert row["device_utilisation"] == "waiting_network"
        if row["network"] in ("not_bottleneck", "single_machine"):
            assert row["device_utilisation"] != "waiting_network"


def test_bounds_are_in_order_and_shares_are_shares(made: list[Diagnosis]) -> None:
    for one in made:
        numbers = {finding.id: finding.numbers for finding in one.findings}
        network, device = numbers["network"], numbers["device_utilisation"]
        shares = [value for name, value in device.items() if "share" in name and "power" not in name]
        assert all(0 <= share <= 1 for share in shares)
        low, high = (network.get(f"speedup_without_exchange_{end}") for end in ("low", "high"))
        assert low is None or 1 <= low <= high


def test_advice_on_a_run_of_an_unknown_program_names_no_option_of_ours(made: list[Diagnosis]) -> None:
    advice = [text for one in made for finding in one.findings for text in finding.advice]
    assert advice and not [text for text in advice if "sync." in text or "data.step" in text]
