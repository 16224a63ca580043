"""What code costs on a GPU, counted operator by operator: launches, casts, copies and host-device waits."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import dragoman

_PACKAGE = Path(dragoman.__file__).parent
_COPIES = {"_to_copy", "copy_"}
# These only allocate or return a view, which their schema does not say.
_NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "_unsafe_view"}


class Counts(TorchDispatchMode):
    """Counts while it is active. Several may be nested: each counts what happens inside it.

    Every operator that writes on the GPU counts as one launch. Some launch several kernels (those for lists
    of tensors, a fused optimizer), so launches are a lower bound. Operators whose result's shape depends on
    values on the device (`nonzero`, a mask as index) would make the host wait too: fake tensors refuse them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self.operators: Counter[str] = Counter()  # launches by operator
        self.casts = 0  # launches that only change a dtype
        self.uploads = 0  # copies to the GPU for which the host does not wait
        self.waits: Counter[str] = Counter()  # by kind and by place in dragoman

    @property
    def launches(self) -> int:
        return self.operators.total()

    def report(self) -> dict[str, Any]:
        """All counts, ready for JSON."""
        return {
            "launches": self.launches,
            "casts": self.casts,
            "uploads": self.uploads,
            "waits": dict(self.waits),
            "operators": dict(self.operators.most_common()),
        }

    def wait(self, kind: str) -> None:
        """Notes that the host waits for the device here."""
        self.waits[f"{kind} at {_place()}"] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        given, made = _tensors((args, kwargs)), _tensors(out)
        written = made or (given if func._schema.is_mutable else [])  # those for lists return nothing
        is_on_gpu = any(tensor.is_cuda for tensor in written)
        if name in _COPIES:
            self._copy(given[-1], made[0], bool(kwargs.get("non_blocking") or (args[2:] and args[2])))
            is_on_gpu = is_on_gpu and given[-1].is_cuda
        elif name == "_local_scalar_dense" and given[0].is_cuda:
            self.wait("value read")
        elif is_on_gpu and any(not tensor.is_cuda and tensor.dim() for tensor in given):
            self.wait(f"{name} with an operand on the host")
        if is_on_gpu and _has_kernel(func, name):
            self.operators[name] += 1
        return out

    def _copy(self, source: Tensor, copy: Tensor, is_asynchronous: bool) -> None:
        if source.is_cuda and not copy.is_cuda:
            self.wait("copy to the host")
        elif copy.is_cuda and not source.is_cuda:
            if is_asynchronous and is_pinned(source):
                self.uploads += 1
            else:
                self.wait("copy of memory that is not pinned")
        elif copy.is_cuda:
            self.casts += source.dtype != copy.dtype


def pin(tensor: Tensor) -> Tensor:
    """The tensor, marked as standing in pinned memory."""
    tensor.is_in_pinned_memory = True  # type: ignore[attr-defined]
    return tensor


def is_pinned(tensor: Tensor) -> bool:
    return hasattr(tensor, "is_in_pinned_memory")


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _has_kernel(func: Any, name: str) -> bool:
    aliases = [returned.alias_info for returned in func._schema.returns]
    is_view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
    return not is_view and name not in _NO_KERNEL


def _place() -> str:
    """The innermost line of dragoman that is being run, such as "train/step.py:83"."""
    frame = sys._getframe()
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_PACKAGE):
            return f"{file.relative_to(_PACKAGE)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "outside dragoman"
