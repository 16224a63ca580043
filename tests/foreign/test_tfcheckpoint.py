from __future__ import annotations

import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.errors import LogError
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.foreign.read import read
from dragoman.foreign.sstable import MAGIC, Broken, entries
from tests.facts import lacking
from tests.foreign import logs

FP32, FP16, INT64 = 1, 19, 9


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def message(dtype: int, shape: tuple[int, ...], size: int) -> bytes:
    dims = b""
    for dim in shape:
        inner = b"\x08" + varint(dim)
        dims += b"\x12" + varint(len(inner)) + inner
    return b"\x08" + varint(dtype) + b"\x12" + varint(len(dims)) + dims + b"\x28" + varint(size) + b"\x35abcd"


def block(rows: list[tuple[bytes, bytes]]) -> bytes:
    data, before = b"", b""
    for key, value in rows:
        shared = 0
        while shared < min(len(key), len(before)) and key[shared] == before[shared]:
            shared += 1
        data += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    return data + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")


def table(tensors: dict[str, tuple[int, tuple[int, ...], int]]) -> bytes:
    rows = [(b"", b"\x08\x01")]
    rows += [(name.encode(), message(*tensor)) for name, tensor in sorted(tensors.items())]
    data = block(rows)
    index = block([(b"\xff", varint(0) + varint(len(data)))])
    body = data + b"\x00crc_" + index + b"\x00crc_"
    footer = varint(0) + varint(0) + varint(len(data) + 5) + varint(len(index))
    return body + footer.ljust(40, b"\0") + MAGIC


def checkpoint(copy: bool) -> dict[str, tuple[int, tuple[int, ...], int]]:
    """One matrix of 300 x 100 with Adam's states, and with or without a half-precision copy."""
    count = 300 * 100
    master = "Loss_Optimization/FP32-master-copy/model/w" if copy else "model/w"
    tensors = {
        name: (FP32, (300, 100), 4 * count) for name in (master, f"o/{master}/Adam", f"o/{master}/Adam_1")
    }
    if copy:
        tensors["model/w"] = (FP16, (300, 100), 2 * count)
    return tensors | {"global_step": (INT64, (), 8), "beta1_power": (FP32, (), 4)}


@pytest.mark.parametrize(("copy", "each", "precision"), [(False, 12, "fp32"), (True, 14, "mixed")])
def test_the_index_gives_parameters_and_precision(
    tmp_path: Path, copy: bool, each: int, precision: str
) -> None:
    (tmp_path / "model.ckpt-500.index").write_bytes(table(checkpoint(copy)))
    (tmp_path / "model.ckpt-400.index").write_bytes(table(checkpoint(copy)))
    (tmp_path / "model.ckpt-500.meta").write_bytes(b"graph")
    made = diagnose([tmp_path], Given())
    files, size = (
        next(f for f in made.findings if f.id == id) for id in ("checkpoint_files", "checkpoint_size")
    )
    assert made.records.facts.parameters == 30_000
    assert not lacking(size.answer, f"{each}.0", precision)
    names = {file["name"]: file["bytes"] for file in files.numbers["files"]}
    assert names["model.ckpt-500.meta"] == 5
    assert names["model.ckpt-500.data-00000-of-00001"] == each * 30_000 + 12
    assert not any("400" in name for name in names)


def test_a_damaged_index_is_not_read(tmp_path: Path) -> None:
    whole = table(checkpoint(True))
    for end in range(0, len(whole), 11):
        with pytest.raises(Broken):
            list(entries(whole[:end]))
        broken = bytes([*whole[:end], whole[end] ^ 0xFF, *whole[end + 1 :]])
        (tmp_path / "model.ckpt-1.index").write_bytes(broken)
        with suppress(LogError):  # a name that is damaged is still one
            read([tmp_path / "model.ckpt-1.index"])


def bomb(kind: str) -> bytes:
    """A small table that stands for much: by pointing to itself, by long shared names, by its dimensions."""
    value = message(FP32, (2**62,) * 5000 if kind == "dimensions" else (3,), 12)
    rows = [(b"%04d" % number, value) for number in range(1000 if kind == "blocks" else 1)]
    data = block(rows)
    if kind == "names":
        name = b"k" * 30_000
        data = varint(0) + varint(len(name)) + varint(len(value)) + name + value
        data += 10_000 * (varint(len(name)) + varint(0) + varint(0)) + bytes(4) + (1).to_bytes(4, "little")
    handle = varint(0) + varint(len(data))
    index = block([(b"%04d" % number, handle) for number in range(3000 if kind == "blocks" else 1)])
    footer = varint(0) + varint(0) + varint(len(data) + 5) + varint(len(index))
    return data + b"\0crc_" + index + b"\0crc_" + footer.ljust(40, b"\0") + MAGIC


@pytest.mark.parametrize("kind", ["blocks", "names", "dimensions"])
def test_a_small_index_that_unfolds_to_a_large_one_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model.ckpt-1.index"
    path.write_bytes(bomb(kind))
    tracemalloc.start()
    with pytest.raises(LogError, match=r"model\.ckpt-1\.index"):
        read([path])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200e6


def test_a_damaged_index_beside_a_log_is_noted(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt-1.index").write_bytes(bomb("blocks"))
    made = diagnose([tmp_path, logs.written(tmp_path, logs.openseq2seq())], Given())
    assert made.records.facts.parameters == 60_880_896
    assert any("model.ckpt-1.index" in note for note in made.notes)
