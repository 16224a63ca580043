"""What is said of a collective that failed, from words of gloo and NCCL that were seen in the field."""

from __future__ import annotations

import pytest
import torch.distributed as dist

from dragoman.errors import DragomanError
from dragoman.sync.failures import explained
from tests.facts import lacking

WHERE = "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, "
SHARED_MEMORY = f"""{WHERE}unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
Error while creating shared memory segment /dev/shm/nccl-1YsMbG (size 7340384)
Exception raised from create at /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268
"""
REMOTE = f"""{WHERE}remote process exited or there was a network error, NCCL version 2.21.5
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
socketProgressOpt: Call to recv from 172.16.0.4<33759> failed : Connection reset by peer
"""
REMOTE_AS_INTERNAL = f"""{WHERE}internal error, NCCL version 2.14.3
ncclInternalError: Internal check failed.
Last error:
Net : Connection closed by remote peer user<50260>
"""
MEMORY = f"""{WHERE}unhandled cuda error, NCCL version 2.18.6
ncclUnhandledCudaError: Call to CUDA function failed.
Last error:
Cuda failure 'out of memory'
"""
WITHOUT_LAST_WORDS = f"""{WHERE}unhandled system error, NCCL version 2.8.3
ncclSystemError: System call (socket, malloc, munmap, etc) failed.
"""
GLOO = (
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:41. This"
)


def said(error: Exception) -> DragomanError:
    with pytest.raises(DragomanError) as caught, explained():
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (dist.DistBackendError(REMOTE), "172.16.0.4<33759>"),
        (dist.DistBackendError(REMOTE_AS_INTERNAL), "user<50260>"),
        (RuntimeError(GLOO), "[10.0.0.2]:41"),
        (dist.DistNetworkError("failed to recv, got 0 bytes"), "0 bytes"),
    ],
    ids=["NCCL", "NCCL's internal error", "gloo", "store"],
)
def test_a_lost_rank_is_told_apart_from_what_this_host_lacks(error: Exception, cause: str) -> None:
    lost, lacks = said(error), said(dist.DistBackendError(SHARED_MEMORY))
    assert not lacking(lost.what, cause)
    assert lost.hint == said(RuntimeError(GLOO)).hint != lacks.hint


@pytest.mark.parametrize(
    ("text", "cause", "advice"),
    [
        (SHARED_MEMORY, "/dev/shm/nccl-1YsMbG (size 7340384)", "--shm-size=1g"),
        (MEMORY, "'out of memory'", "nvidia-smi"),
        (WITHOUT_LAST_WORDS, "ncclSystemError", "NCCL_DEBUG=INFO"),
    ],
    ids=["shared memory", "memory", "system"],
)
def test_what_nccl_lacks_is_said_with_its_own_words_and_what_to_do(
    text: str, cause: str, advice: str
) -> None:
    error = said(dist.DistBackendError(text))
    assert not lacking(error.what, cause) and "NCCLUtils" not in error.what
    assert not lacking(error.hint, advice)


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="shapes"), explained():
        raise RuntimeError("shapes differ")
