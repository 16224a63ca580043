"""cost/gpu_types.py: cards by the names that people and programs give them."""

from __future__ import annotations

import pytest

from dragoman.cost import gpu_types


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Tesla V100-SXM2-16GB", ["V100"]),
        ("NVIDIA A100-PCIE-40GB", ["A100"]),
        ("one 2xP100 VM + one 2xv100 VM", ["V100", "P100"]),
        ("nvidia-tesla-t4", ["T4"]),
        ("GTX1080", ["GTX 1080 Ti"]),
        ("NVIDIA RTX A6000", ["RTX A6000"]),
        ("L40", ["L40"]),
        ("NVIDIA L40S", ["L40S"]),
        ("NVIDIA A10G", ["A10"]),
        ("V1000", []),
        ("A1000", []),
        ("P1000", []),
        ("H1000", []),
        ("RTX4000", []),
        ("L400", []),
    ],
)
def test_a_card_is_known_by_its_whole_name(text: str, names: list[str]) -> None:
    assert [kind.name for kind in gpu_types.named(text)] == names
