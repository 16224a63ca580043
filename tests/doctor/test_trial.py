"""What ten steps come to, and that clearing up takes nothing else along."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.doctor import trial
from dragoman.doctor.run import DoctorRequest, run
from dragoman.errors import UsageError
from tests.doctor.build import host
from tests.facts import lacking

FOUND: dict[str, Any] = {
    "steps": 10,
    "bad_steps": 0,
    "first_loss": 10.45,
    "last_loss": 9.87,
    "hosts": ["a", "b"],
    "ranks": 4,
    "interfaces": ["eth0", "eth1"],
    "device": "Tesla V100",
    "backend": "nccl",
    "precision": "fp16",
    "mode": "allreduce",
    "exchange": "hierarchical",
    "wire": "bf16",
    "way": "hierarchical all-reduce in bf16",
    "step_seconds": 0.43,
    "tokens_per_second": 9500.0,
    "exchange_share": 0.41,
    "link_bits_per_second": 941e6,
    "link_round_trip_seconds": 0.0003,
}


def test_the_block_says_what_a_bug_report_needs() -> None:
    found = trial.described(FOUND, [host(0), host(1)])
    assert found
    _, title, *rows = trial.block(found, "ok").splitlines()
    assert not lacking(title, "10 steps", "dragoman doctor --train")
    facts: dict[str, list[str]] = {
        "versions": ["python 3.11.7", "torch 2.13.0", "dragoman 0.1.0 (code 12345678)"],
        "hosts": ["a (eth0)", "b (eth1)"],
        "devices": ["4 ranks", "Tesla V100"],
        "exchange": ["nccl", "hierarchical", "bf16", "941 Mbit/s", "0.3 ms"],
        "steps": ["10", "fp16", "0.43 s", "9,500", "41%"],
        "loss": ["10.4500", "9.8700"],
        "verdict": ["ok"],
    }
    assert [row.split()[0] for row in rows] == list(facts)
    assert not [
        wrong for row, known in zip(rows, facts.values(), strict=True) for wrong in lacking(row, *known)
    ]


@pytest.mark.parametrize(
    ("change", "status", "facts"),
    [
        ({}, "ok", [10]),
        ({"bad_steps": 2}, "warning", [2, 10, "train.precision=bf16", "train.rate"]),
        ({"steps": 4}, "error", [4, 10]),
    ],
)
def test_steps_that_were_bad_or_not_made_are_not_ok(
    change: dict[str, Any], status: str, facts: list[object]
) -> None:
    check = trial._judged(FOUND | change)
    assert check.status == status
    assert not lacking(f"{check.value} {check.advice}", *facts)


def test_only_a_trials_own_folder_is_removed(tmp_path: Path) -> None:
    precious, own = tmp_path / "runs", tmp_path / "dragoman-doctor-0123456789abcdef"
    for folder in (precious, own):
        folder.mkdir()
        trial.remove(str(folder))
    assert precious.exists()
    assert not own.exists()


def test_steps_without_a_config_or_data_are_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run(DoctorRequest([], None, tmp_path, None, with_steps=True))
    assert not lacking(str(caught.value), "--train", "--config", "--data")
