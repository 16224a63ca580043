"""Reads sorted-string tables (LevelDB, the `.index` of a TensorFlow checkpoint) and plain protobuf messages.

A table consists of blocks and a footer of 48 bytes, which ends in a magic number and points to the block that
lists the others. Within a block, each key stores only its difference from the previous key. TensorFlow writes
its index uncompressed.
"""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = bytes.fromhex("57fb808b247547db")
FOOTER_BYTES = 48
_UNCOMPRESSED = 0
# A few bytes can encode a long key, and many entries can point to one block, so a small file could expand
# without limit. The largest published checkpoints have some ten thousand tensors.
_MOST_ENTRIES = 200_000
_MOST_KEY_BYTES = 1 << 26  # of all keys together, expanded


class Broken(ValueError):
    """The file is of another kind, damaged or cut off."""


def entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a table in order; raises Broken if it is damaged."""
    if len(data) < FOOTER_BYTES or data[-8:] != MAGIC:
        raise Broken("the file does not end like a table")
    footer = data[-FOOTER_BYTES:]
    _, at = varint(footer, 0)
    _, at = varint(footer, at)
    start, at = varint(footer, at)
    size, _ = varint(footer, at)
    count = key_bytes = end = 0
    for _, handle in _block(data, start, size):
        start, at = varint(handle, 0)
        size, _ = varint(handle, at)
        if start < end:
            raise Broken("two blocks overlap")
        end = start + size
        for key, value in _block(data, start, size):
            count, key_bytes = count + 1, key_bytes + len(key)
            if count > _MOST_ENTRIES or key_bytes > _MOST_KEY_BYTES:
                raise Broken(f"more than {_MOST_ENTRIES:,} entries, or {_MOST_KEY_BYTES >> 20} MiB of names")
            yield key, value


def _block(data: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    if start + size + 5 > len(data) or size < 4:
        raise Broken("a block lies outside the file")
    if data[start + size] != _UNCOMPRESSED:
        raise Broken("a block is compressed")
    block = data[start : start + size]
    restarts = int.from_bytes(block[-4:], "little")
    end = size - 4 * (restarts + 1)
    at, key = 0, b""
    while at < end:
        shared, at = varint(block, at)
        new, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or at + new + length > end:
            raise Broken("an entry lies outside its block")
        key = key[:shared] + block[at : at + new]
        yield key, block[at + new : at + new + length]
        at += new + length


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer and the position after it."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise Broken("a variable-length integer does not end")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The field numbers and values of a protobuf message; fixed-width values as bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length, at = varint(data, at)
        if length is None or at + length > len(data):
            raise Broken("not a protobuf message")
        yield tag >> 3, data[at : at + length]
        at += length
