"""The environment variables that ranks are started with."""

from __future__ import annotations

import pytest

from dragoman.launch import environment

ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALLOCATOR:
        monkeypatch.delenv(name, raising=False)


def test_ranks_get_gpu_memory_in_segments_that_grow() -> None:
    set_here = {name: value for name, value in environment.for_ranks(2).items() if name in ALLOCATOR}
    assert set_here == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


@pytest.mark.parametrize("name", ALLOCATOR)
def test_settings_of_the_allocator_that_a_user_made_stay_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "max_split_size_mb:128")
    assert not set(environment.for_ranks(2)) & set(ALLOCATOR)
    assert environment.for_every_host()[name] == "max_split_size_mb:128"
