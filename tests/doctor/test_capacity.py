"""Hosts that are too small or too slow for the run are named."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman import config
from dragoman.config import Data, Sync, Train, Training
from dragoman.cost.capability import AskedPrecision, Capability
from dragoman.doctor import capacity, gpus
from dragoman.doctor import host as host_facts
from dragoman.doctor.facts import Gpu, GpuFacts, OtherProgram, UsableGpu
from dragoman.measure import probes
from dragoman.plan import needs
from tests.doctor.build import NEEDS, host, only
from tests.facts import lacking

GIGABYTE = 10**9
V100 = Gpu(name="Tesla V100", memory_bytes=32 * GIGABYTE, free_bytes=31 * GIGABYTE)


CUDA_12_6 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CUDA_13 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


def usable(name: str = "Tesla V100", capability: Capability = (7, 0)) -> UsableGpu:
    return UsableGpu(name=name, capability=capability, memory_bytes=32 * GIGABYTE)


def with_gpus(**changes: Any) -> GpuFacts:
    facts = {
        "driver": "550.1",
        "listed": [V100, V100],
        "usable": [usable(), usable()],
        "cuda": "12.6",
        "architectures": CUDA_12_6,
    }
    return GpuFacts(**facts | changes)


def test_a_disk_without_room_for_two_checkpoints_is_an_error() -> None:
    check = only(capacity.disk([host(0), host(1, disk_free_bytes=GIGABYTE)], NEEDS), "error")
    assert check.host == "h1"
    assert not lacking(check.value, "1 GB", "/runs", "4 checkpoints", "720 MB")


def test_a_disk_without_room_for_all_checkpoints_warns() -> None:
    check = only(capacity.disk([host(0, disk_free_bytes=2 * GIGABYTE)], NEEDS), "warning")
    assert "checkpoint.keep_last" in check.advice


def test_checkpoints_that_are_there_already_count_as_room() -> None:
    facts = host(0, disk_free_bytes=GIGABYTE, checkpoint_bytes=3 * GIGABYTE)
    assert capacity.disk([facts], NEEDS)[0].status == "ok"


def test_memory_that_cannot_hold_weights_and_moments_is_an_error() -> None:
    small = host(1, memory_bytes=GIGABYTE, memory_available_bytes=GIGABYTE, ranks=2)
    assert only(capacity.memory([host(0), small], NEEDS), "error").host == "h1"


def test_memory_that_is_taken_by_something_else_warns() -> None:
    busy = host(1, memory_available_bytes=2 * GIGABYTE)
    check = only(capacity.memory([host(0), busy], NEEDS), "warning")
    assert not lacking(check.value, "2 GB", "64 GB", "1 rank", "2.87 GB")
    assert not lacking(check.advice, "data.split=2", "train.recompute=true")


def test_a_model_that_fits_no_rank_fits_when_ranks_share_it() -> None:
    xl = config.load(Training, config.located(Path("transformer-xl")))
    shared = needs.of(xl, vocabulary=32_768, sentence_tokens=30.0)
    plain = needs.of(xl.model_copy(update={"sync": Sync()}), vocabulary=32_768, sentence_tokens=30.0)
    assert shared.parameters == plain.parameters == pytest.approx(1e9, rel=0.01)
    assert shared.state_bytes(8) == plain.state_bytes(8) / 8 == pytest.approx(2e9, rel=0.01)
    assert shared.rank_bytes(8) > shared.state_bytes(8) + 4e9, "an evaluation needs all weights"
    small = Gpu(name="A10", memory_bytes=24 * 10**9, free_bytes=15 * 10**9)
    card = host(0, gpus=with_gpus(listed=[small] * 8, usable=[usable()] * 8), ranks=8)
    assert capacity.memory([card], shared)[0].status == "ok"
    assert not lacking(only(capacity.memory([card], plain), "warning").advice, "sync.mode=sharded")
    assert shared.less_memory == "data.split=2", "the rest is in use"
    muon = Training(train=Train(optimizer="muon"), data=Data(split=2))
    assert needs.less_memory(muon) == "data.split=4 or train.recompute=true", "it needs whole matrices"


def test_more_ranks_than_cores_warn() -> None:
    check = only(capacity.ranks([host(0, ranks=8), host(1, ranks=9)]), "warning")
    assert check.host == "h1"
    assert not lacking(check.value, "9 ranks", "8 cores")


def test_on_gpus_their_own_memory_counts() -> None:
    full = Gpu(name="Tesla V100", memory_bytes=32 * GIGABYTE, free_bytes=GIGABYTE)
    check = only(capacity.memory([host(0, gpus=with_gpus(listed=[V100, full]), ranks=2)], NEEDS), "warning")
    assert not lacking(check.value, "1 GB", "32 GB", "1 rank")


def test_a_slow_host_is_named_with_its_load() -> None:
    slow = host(1, peaks=[50e9], load=7.0)
    check = only(capacity.speed([host(0), slow]), "warning")
    assert check.host == "h1"
    assert not lacking(check.value, "50 GFLOP/s", "7.0", "8 cores", "90 GFLOP/s")


def test_a_slow_device_among_good_ones_of_its_own_host_is_noticed() -> None:
    alone = only(capacity.speed([host(0, peaks=[9e12, 5e12, 9e12])]), "warning")
    among = only(capacity.speed([host(0, peaks=[9e12, 5e12, 9e12]), host(1, peaks=[9e12])]), "warning")
    assert len(alone.advice) < len(among.advice), "only one of several hosts can be left out"


def test_hosts_that_are_all_slow_are_not_blamed() -> None:
    assert [check.status for check in capacity.speed([host(0, peaks=[1e9]), host(1, peaks=[0.8e9])])] == [
        "ok",
        "ok",
    ]


def test_other_programs_on_the_cores_are_named() -> None:
    others = [OtherProgram(name="burn", cores=1.5), OtherProgram(name="cron", cores=0.1)]
    check = only(capacity.cores([host(0), host(1, programs=others)]), "warning")
    assert check.host == "h1"
    assert not lacking(check.value, "1.6", "8 cores", "burn", "1.5", "cron", "0.1")
    assert not capacity.cores([host(0, programs=others[1:])])
    assert not capacity.cores([host(0, programs=others, gpus=with_gpus(usable=[usable()]))]), (
        "it computes elsewhere"
    )


def test_hosts_without_gpus_hear_nothing_of_gpus() -> None:
    assert capacity.gpus([host(0), host(1)]) == []


@pytest.mark.parametrize(
    ("found", "ranks", "status", "facts"),
    [
        (with_gpus(), 2, "ok", [2, "Tesla V100", "550.1"]),
        (with_gpus(usable=[usable()]), 1, "warning", [1, 2]),
        (with_gpus(usable=[usable()]), 2, "error", [1, 2, "2 ranks"]),
        (with_gpus(usable=[], cuda=None), 1, "error", [0, 2, "torch", "CUDA"]),
        (with_gpus(usable=[], cuda="13.0"), 1, "error", [0, 2, "550.1", "13.0"]),
        (with_gpus(cuda="13.0", architectures=CUDA_13), 2, "error", ["Tesla V100", "sm_70", "13.0"]),
        (GpuFacts(), 1, "error", []),
    ],
)
def test_gpus_that_ranks_cannot_use_are_reported(
    found: GpuFacts, ranks: int, status: str, facts: list[object]
) -> None:
    check = capacity.gpus([host(0, gpus=with_gpus()), host(1, gpus=found, ranks=ranks)])[1]
    assert (check.host, check.status) == ("h1", status)
    assert not lacking(check.value, *facts)


def test_gpus_without_kernels_come_with_the_line_that_installs_some() -> None:
    check = only(capacity.gpus([host(0, gpus=with_gpus(architectures=CUDA_13))]), "error")
    assert not lacking(check.advice, "pip install", "torch<2.15", "cu126")


def test_a_gpu_that_no_rank_uses_needs_no_kernels() -> None:
    both = [usable("H100", (9, 0)), usable()]
    assert not [
        c
        for c in capacity.gpus([host(0, gpus=with_gpus(usable=both, architectures=CUDA_13))])
        if c.status == "error"
    ]
    assert only(
        capacity.gpus([host(0, ranks=2, gpus=with_gpus(usable=both, architectures=CUDA_13))]), "error"
    )


A100, T4 = usable("NVIDIA A100", (8, 0)), usable("Tesla T4", (7, 5))


@pytest.mark.parametrize(
    ("asked", "found", "status", "facts"),
    [
        ("auto", [A100, A100], "ok", ["bf16"]),
        ("auto", [A100, T4], "ok", ["fp16", "Tesla T4 on h1"]),
        ("bf16", [A100, T4], "warning", ["bf16", "Tesla T4 on h1"]),
        ("fp16", [A100, T4], "ok", ["fp16"]),
        ("fp32", [A100, A100], "ok", ["fp32", "TF32"]),
        ("fp32", [T4, T4], "ok", ["fp32"]),
    ],
)
def test_the_number_format_is_what_all_gpus_can_do(
    asked: AskedPrecision, found: list[UsableGpu], status: str, facts: list[str]
) -> None:
    hosts = [host(number, gpus=with_gpus(usable=[gpu])) for number, gpu in enumerate(found)]
    (check,) = capacity.precision(hosts, asked)
    assert check.status == status
    assert not lacking(check.value, *facts)
    assert ("TF32" in check.value) == ("TF32" in facts)


def test_cpus_hear_nothing_of_number_formats() -> None:
    assert capacity.precision([host(0), host(1)], "bf16") == []


def test_another_driver_warns() -> None:
    hosts = [host(0, gpus=with_gpus()), host(1, gpus=with_gpus(driver="535.2"))]
    check = only(capacity.gpus(hosts), "warning")
    assert check.host == "h1"
    assert not lacking(check.value, "535.2", "h0", "550.1")


ONE_V100 = SimpleNamespace(
    cuda=SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda number: SimpleNamespace(
            name="Tesla V100", major=7, minor=0, total_memory=32 * GIGABYTE
        ),
        get_arch_list=lambda: CUDA_12_6,
    ),
    version=SimpleNamespace(cuda="12.6"),
)


def test_gpus_are_listed_by_the_driver_and_counted_by_torch() -> None:
    nvml = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlSystemGetDriverVersion=lambda: b"550.1",
        nvmlDeviceGetName=lambda handle: "Tesla V100",
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=32 * GIGABYTE, free=31 * GIGABYTE),
    )
    assert gpus.inspect(nvml, ONE_V100) == with_gpus(usable=[usable()])


def test_the_peak_is_measured_only_on_gpus_that_torch_has_kernels_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probes, "own_peak", lambda device: float(device.index))
    both = [usable(), usable("H100", (9, 0))]
    assert host_facts._peaks(with_gpus(usable=both, architectures=CUDA_13)) == [1.0]
    assert host_facts._peaks(with_gpus(usable=both)) == [0.0, 1.0]


def no_nvml() -> None:
    raise RuntimeError("Driver/library version mismatch")


def test_a_driver_that_fails_is_no_gpu() -> None:
    assert gpus.inspect(SimpleNamespace(nvmlInit=no_nvml)) == GpuFacts()


def test_what_torch_may_use_is_checked_also_without_the_drivers_own_library() -> None:
    """In a container that may compute, but has no NVML."""
    found = gpus.inspect(SimpleNamespace(nvmlInit=no_nvml), ONE_V100)
    assert found == with_gpus(usable=[usable()], listed=[], driver=None)
    assert only(capacity.gpus([host(0, gpus=found, ranks=2)]), "error")
    assert [check.status for check in capacity.gpus([host(0, gpus=found)])] == ["ok"]
    check = capacity.memory([host(0, gpus=found, memory_bytes=GIGABYTE)], NEEDS)[0]
    assert (check.status, lacking(check.value, "32 GB")) == ("ok", []), "not the host's memory"


def test_the_needs_of_transformer_base_are_about_what_it_takes() -> None:
    wanted = needs.of(Training(), vocabulary=32_768, sentence_tokens=30.0)
    assert wanted.parameters == 60_880_896
    assert wanted.checkpoint_bytes == pytest.approx(730.6e6, rel=0.01)
    assert wanted.checkpoints == 4  # the last 2, the best one, and the one being written
    assert 2.7e9 < wanted.activation_bytes < 3.3e9
    again = needs.of(Training(train=Train(recompute=True)), vocabulary=32_768, sentence_tokens=30.0)
    assert 0.3e9 < again.activation_bytes < 0.6e9
    assert (again.state_bytes(), again.step_flops) == (wanted.state_bytes(), wanted.step_flops)
