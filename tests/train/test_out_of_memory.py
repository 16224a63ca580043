"""Which errors mean that memory ran out, so that a smaller part may still fit."""

from __future__ import annotations

import pytest
import torch

from dragoman.train.step import _MemoryErrors, _OutOfMemory


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`"),
        torch.distributed.DistBackendError("NCCL error in: ...\nLast error:\nCuda failure 2 'out of memory'"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
    ids=["torch", "cuBLAS", "driver", "NCCL", "CPU", "Python"],
)
def test_whoever_lacks_the_memory_the_share_is_computed_again_in_parts(error: Exception) -> None:
    with pytest.raises(_OutOfMemory), _MemoryErrors(can_begin_again=True):
        raise error


def test_another_error_of_cublas_is_not_taken_for_a_lack_of_memory() -> None:
    error = RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`")
    with pytest.raises(RuntimeError) as caught, _MemoryErrors(can_begin_again=True):
        raise error
    assert caught.value is error
