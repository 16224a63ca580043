"""What ten steps come to, and that clearing up takes nothing else along."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.doctor import trial
from dragoman.doctor.run import DoctorRequest, run
from dragoman.errors import UsageError
from tests.doctor.build import host

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
    assert trial.block(found, "ok").splitlines()[1:] == [
        "10 steps of dragoman doctor --train",
        "  versions  python 3.11.7, torch 2.13.0, dragoman 0.1.0 (code 12345678)",
        "  hosts     a (eth0), b (eth1)",
        "  devices   4 ranks on Tesla V100",
        "  exchange  nccl, hierarchical all-reduce in bf16; link 941 Mbit/s, round trip 0.3 ms",
        "  steps     10 made, fp16; 0.43 s each, 9,500 target tokens/s, 41% in the exchange",
        "  loss      10.4500 at the first, 9.8700 at the last",
        "  verdict   ok",
    ]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({}, "ok", "10 made"),
        ({"bad_steps": 2}, "warning", "2 of 10 had a gradient that is not finite"),
        ({"steps": 4}, "error", "4 of 10 were made"),
    ],
)
def test_steps_that_were_bad_or_not_made_are_not_ok(change: dict[str, Any], status: str, said: str) -> None:
    check = trial._judged(FOUND | change)
    assert check.status == status
    assert said in check.value


def test_only_a_trials_own_folder_is_removed(tmp_path: Path) -> None:
    precious, own = tmp_path / "runs", tmp_path / "dragoman-doctor-0123456789abcdef"
    for folder in (precious, own):
        folder.mkdir()
        trial.remove(str(folder))
    assert precious.exists()
    assert not own.exists()


def test_steps_without_a_config_or_data_are_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--train needs a config and data"):
        run(DoctorRequest([], None, tmp_path, None, with_steps=True))
