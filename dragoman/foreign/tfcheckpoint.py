"""Reads the tensors of a TensorFlow checkpoint from its `.index`, and the sizes of its other files."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import LogError, reading
from dragoman.foreign.log_facts import Gathered
from dragoman.foreign.sstable import MAGIC, Broken, entries, fields

LOOKS_FOR = "the .index of a TensorFlow checkpoint"
MOST_BYTES = 1 << 26
_MOST_DIMS = 254  # TensorFlow's own limit
_MOST_ELEMENTS = 10**13  # in one tensor; no whole model has more
PURPOSES = {
    ".index": "names, shapes and positions of the tensors in the data file",
    ".meta": "the graph, used by TensorFlow only",
    ".data": "the values: weights and optimizer states",
}
_SLOT = re.compile(r"^(.*)/(\w+?)_1$")
_MASTER = "FP32-master-copy"
_DTYPES = {1: "fp32", 2: "fp64", 14: "bf16", 19: "fp16"}


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: int
    elements: int
    bytes: int


def is_one(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, 2)
        if not 8 <= file.tell() <= MOST_BYTES:
            return False
        file.seek(-8, 2)
        return file.read() == MAGIC


def read(path: Path, gathered: Gathered) -> None:
    with reading(path, LogError, hint="copy the .index again, or leave it out"):
        indexed = tensors(path.read_bytes())
    parameters = count_parameters(indexed)
    if parameters:
        gathered.fact("parameters", parameters)
    stem = path.name.removesuffix(".index")
    data = sum(tensor.bytes for tensor in indexed)
    files = [file for file in sorted(path.parent.iterdir()) if file.name.startswith(f"{stem}.")]
    files = [file for file in files if file.is_file()]
    rows = [
        {"name": file.name, "bytes": file.stat().st_size, "purpose": _purpose(file.name)} for file in files
    ]
    if not any(".data" in file.name for file in files):
        name = f"{stem}.data-00000-of-00001"
        rows.append({"name": name, "bytes": data, "purpose": f"{PURPOSES['.data']} (size from the index)"})
    gathered.fact("checkpoint_files", rows)
    gathered.fact("checkpoint_data_bytes", data)
    if parameters:
        gathered.remark("checkpoint_size", _precision(indexed, data, parameters))
    gathered.source = gathered.source or "TensorFlow"


def tensors(data: bytes) -> list[Tensor]:
    """The tensors that an index lists; raises Broken if it is damaged."""
    indexed = []
    for key, value in entries(data):
        if not key:  # the header: number of shards and version
            continue
        parts = dict(fields(value))
        elements = _elements(parts.get(2, b""))
        dtype, size = parts.get(1, 0), parts.get(5, 0)
        if not isinstance(dtype, int) or not isinstance(size, int) or size > 8 * _MOST_ELEMENTS:
            raise Broken("not the index of a checkpoint")
        indexed.append(Tensor(key.decode("utf-8", "replace"), dtype, elements, size))
    return indexed


def _elements(shape: int | bytes) -> int:
    """The number of elements of a shape."""
    if not isinstance(shape, bytes):
        raise Broken("a shape is a number")
    dims = [dim for number, dim in fields(shape) if number == 2 and isinstance(dim, bytes)]
    if len(dims) > _MOST_DIMS:
        raise Broken(f"a shape has {len(dims):,} dimensions")
    sizes = [dict(fields(dim)).get(1, 0) for dim in dims]
    elements = math.prod(size for size in sizes if isinstance(size, int))
    if elements > _MOST_ELEMENTS:
        raise Broken("a tensor is larger than any model")
    return elements


def count_parameters(indexed: list[Tensor]) -> int:
    """The number of trained parameters: those with an optimizer state (`name/Adam_1`).

    Without any such state, all numbers count, except the fp32 copies of mixed precision.
    """
    slots: dict[str, int] = {}
    names = {tensor.name for tensor in indexed}
    for tensor in indexed:
        slot = _SLOT.match(tensor.name)
        if slot and f"{slot[1]}/{slot[2]}" in names and tensor.elements > 1:
            slots[slot[2]] = slots.get(slot[2], 0) + tensor.elements
    if slots:
        return max(slots.values())
    return sum(
        tensor.elements
        for tensor in indexed
        if tensor.dtype in _DTYPES and _MASTER not in tensor.name and tensor.elements > 1
    )


def _precision(indexed: list[Tensor], data: int, parameters: int) -> str:
    by_type: dict[str, int] = {}
    for tensor in indexed:
        name = _DTYPES.get(tensor.dtype, "other")
        by_type[name] = by_type.get(name, 0) + tensor.bytes
    half = sum(by_type.get(name, 0) for name in ("fp16", "bf16"))
    text = f"{data / parameters:.1f} bytes per parameter in the data file: "
    if half > parameters:
        parts = "4 for the fp32 weights, 8 for two moments, 2 for a half-precision copy"
        return f"{text}trained in mixed precision ({parts})"
    states = by_type.get("fp32", 0) / parameters / 4
    return f"{text}all in fp32 ({states:.0f} numbers per parameter: the weight and the optimizer's states)"


def _purpose(name: str) -> str:
    return next((text for ending, text in PURPOSES.items() if ending in name), "")
