"""The pretended GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.nn import functional
from torch.utils import _foreach_utils
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.model import grid
from tests.fake_cuda.counting import Counts, pin

DEVICE = torch.device("cuda", 0)
Answer = Callable[[Tensor], Tensor]


@contextmanager
def pretended(capability: tuple[int, int] = (8, 0), answer: Answer | None = None) -> Iterator[Counts]:
    """A card of this compute capability; yields the counts of everything inside.

    `answer` makes the values that the host gets when it reads a tensor from the device; usually ones. It gets
    a tensor of ones of that shape and dtype. Outside this block, fake tensors are of no use.
    """
    counts = Counts()
    with ExitStack() as stack:
        for target, name, value in _patches(counts, capability):
            stack.enter_context(patch.object(target, name, value))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(_HostSide(answer or (lambda ones: ones)))
        yield stack.enter_context(counts)


class _HostSide(TorchDispatchMode):
    """What FakeTensorMode leaves out: values that the host reads, and pinned memory."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name == "_local_scalar_dense" and args[0].is_cuda:
            with unset_fake_temporarily():
                return self._read(args[0]).item()
        if name == "_to_copy" and args[0].is_cuda and kwargs.get("device") == torch.device("cpu"):
            return self._read(args[0], kwargs.get("dtype"))
        if name == "_pin_memory":
            return pin(args[0].clone())
        return func(*args, **kwargs)

    def _read(self, tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        with unset_fake_temporarily():
            return self._answer(torch.ones(tensor.shape, dtype=dtype or tensor.dtype))


class _Event:
    """An event of a stream without work: it has always happened. Only waiting for it is counted."""

    def __init__(self, counts: Counts, **_: object) -> None:
        self._counts = counts

    def record(self, stream: object = None) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: object) -> float:
        return 1.0  # ms

    def synchronize(self) -> None:
        self._counts.wait("event")


def _patches(counts: Counts, capability: tuple[int, int]) -> Iterator[tuple[Any, str, Any]]:
    """What a build for GPUs would answer."""
    yield torch.cuda.amp.common, "amp_definitely_not_available", lambda: False
    yield (
        torch.cuda,
        "is_bf16_supported",
        lambda including_emulation=True: including_emulation or (capability >= (8, 0)),
    )
    yield torch.cuda, "get_device_capability", lambda device=None: capability
    yield torch.backends.cuda, "is_flash_attention_available", lambda: True
    yield torch.cuda, "is_current_stream_capturing", lambda: False
    yield torch.cuda, "synchronize", lambda device=None: counts.wait("synchronize")
    yield torch.cuda, "Event", lambda **flags: _Event(counts, **flags)
    yield _foreach_utils, "_foreach_supported_types", [torch.Tensor, torch.nn.Parameter, FakeTensor]
    yield FakeTensor, "tolist", lambda tensor: tensor.cpu().tolist()  # its own reads element by element
    yield Tensor, "numpy", _numpy(Tensor.numpy)
    yield grid, "F", _Functional(capability)


def _numpy(real: Callable[[Tensor], np.ndarray]) -> Callable[[Tensor], np.ndarray]:
    """Tensor.numpy, which makes a detached copy first: it must not become a fake one."""

    def numpy(tensor: Tensor) -> np.ndarray:
        with unset_fake_temporarily():
            return real(tensor)

    return numpy


class _Functional:
    """torch.nn.functional, with attention as a card of this capability would do it (without cuDNN's)."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self._capability = capability

    def __getattr__(self, name: str) -> Any:
        return getattr(functional, name)

    def scaled_dot_product_attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
    ) -> Tensor:
        is_new = self._capability >= (8, 0)
        if attn_mask is None and is_new and query.dtype in (torch.float16, torch.bfloat16):
            flash = torch.ops.aten._scaled_dot_product_flash_attention
            return flash(query, key, value, dropout_p, is_causal)[0]
        if query.dtype == torch.bfloat16 and not is_new:
            plain = torch.ops.aten._scaled_dot_product_attention_math
            return plain(query, key, value, attn_mask, dropout_p, is_causal)[0]
        bias = None if attn_mask is None else _aligned(attn_mask, query, key)
        has_gradient = torch.is_grad_enabled() and query.requires_grad
        efficient = torch.ops.aten._scaled_dot_product_efficient_attention
        return efficient(query, key, value, bias, has_gradient, dropout_p, is_causal)[0]


def _aligned(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The mask as the kernel reads it: torch copies it unless its rows begin at multiples of 8 elements."""
    slots = mask.shape[-1]
    if slots % 8:
        mask = functional.pad(mask, (0, -slots % 8))[..., :slots]
    return mask.expand(*query.shape[:3], key.shape[2])
