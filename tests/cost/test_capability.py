"""What a GPU can do, by its compute capability."""

import pytest
import torch

from dragoman.cost import capability
from dragoman.cost.capability import Capability
from dragoman.cost.gpu_types import GPU_TYPES, named

V100, T4, A100, H100, B200 = (7, 0), (7, 5), (8, 0), (9, 0), (10, 0)


@pytest.mark.parametrize(
    ("gpu", "architectures", "runs"),
    [
        (V100, "sm_75 sm_80 sm_90 sm_100 sm_120", False),  # torch for CUDA 13
        (V100, "sm_50 sm_60 sm_70 sm_75 sm_80", True),
        ((6, 1), "sm_60", True),  # a binary runs on later GPUs of the same major version
        ((6, 0), "sm_61", False),  # but not on earlier ones
        (A100, "sm_75", False),
        ((8, 9), "sm_80 sm_86", True),
        (B200, "sm_90", False),
        (B200, "sm_90 compute_90", True),  # PTX is compiled for any later GPU
        (A100, "compute_90", False),
        (H100, "sm_90a", True),
        ((9, 1), "sm_90a compute_90a", False),  # what only an H100 has
        ((10, 3), "sm_100f", True),
        ((12, 0), "sm_100f compute_100f", False),
        (H100, "", False),
        (H100, "gfx90a", False),
    ],
)
def test_kernels_run_where_nvidia_says_they_do(gpu: Capability, architectures: str, runs: bool) -> None:
    assert capability.has_kernels(gpu, architectures.split()) == runs


@pytest.mark.parametrize(
    ("gpus", "chosen"),
    [([], "fp32"), ([A100, H100], "bf16"), ([A100, T4], "fp16"), ([V100], "fp16"), ([B200], "bf16")],
)
def test_auto_is_the_fastest_format_that_all_gpus_have(gpus: list[Capability], chosen: str) -> None:
    assert capability.automatic(gpus) == chosen


@pytest.mark.parametrize(
    ("gpu", "fact"),
    [((3, 7), "newer"), ((6, 0), "cu126"), (V100, "torch<2.15"), (T4, "upgrade"), (B200, "upgrade")],
)
def test_the_torch_that_fits_depends_on_the_gpu(gpu: Capability, fact: str) -> None:
    assert fact in capability.torch_that_fits(gpu)
    assert ("cu126" in capability.torch_that_fits(gpu)) == ((5, 0) <= gpu < T4)


def test_the_table_of_gpus_knows_which_have_units_for_bf16() -> None:
    able = {kind.name for kind in GPU_TYPES if kind.has_bf16}
    assert able == {"H100", "A100", "A40", "RTX A6000", "L40S", "L40", "A10", "L4", "RTX 4090", "RTX 3090"}


def test_tf32_multiplies_at_half_the_pace_of_bf16() -> None:
    (a100,) = named("A100")
    assert a100.reached_flops("tf32")[1] == a100.reached_flops("bf16")[1] / 2
    assert a100.reached_flops("fp32")[1] < a100.reached_flops("tf32")[1]


# Graphics and data centre GPUs; those of Jetson boards need builds of their own.
CARDS = [
    (3, 7),
    (5, 0),
    (5, 2),
    (6, 0),
    (6, 1),
    V100,
    T4,
    A100,
    (8, 6),
    (8, 9),
    H100,
    B200,
    (10, 3),
    (12, 0),
    (12, 1),
]


@pytest.mark.parametrize("cuda", ["12.6", "13.0"])
def test_torch_itself_knows_of_the_same_kernels_and_packages(cuda: str) -> None:
    built_for = torch.cuda.PYTORCH_RELEASES_CODE_CC[cuda]["x86_64"]
    architectures = [f"sm_{code}" for code in built_for]
    for card in CARDS:
        by_torch = any(torch.cuda._code_compatible_with_device(10 * card[0] + card[1], c) for c in built_for)
        assert capability.has_kernels(card, architectures) == by_torch, card
        if cuda == ("12.6" if "cu126" in capability.torch_that_fits(card) else "13.0") and card >= (5, 0):
            assert by_torch, f"what is advised for {card} has no kernels for it"
