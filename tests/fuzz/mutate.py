"""Damages valid input. Entrance and number decide everything, so that any input can be made again.

Structured kinds are changed in their structure, so that readers are reached behind the parser; now and then
the result is damaged byte by byte as well.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from tests.fuzz.mutate_documents import json_document, some, toml_document
from tests.fuzz.mutate_tables import database

Kind = Literal["bytes", "text", "json", "toml", "sql"]

_MOST_BYTES = 2**20  # of an input: what grows with its size is found with less


def make(entrance: str, kind: Kind, seeds: Sequence[bytes], number: int) -> bytes:
    """The input of this number: first the seeds as they are, then damaged ones."""
    if number < len(seeds):
        return seeds[number]
    draw = random.Random(f"{entrance} {number}")
    data, other = draw.choice(seeds), draw.choice(seeds)
    if kind != "bytes":
        data = _STRUCTURED[kind](data, other, draw)
    if kind == "bytes" or draw.random() < 0.1:
        for _ in range(some(draw)):
            data = draw.choice(_ON_BYTES)(data, other, draw)
    return data[:_MOST_BYTES]


# --- bytes ------------------------------------------------------------------------------------------------

_PIECES = (
    b"\0", b"\0" * 64, b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf",
    b"\xff\xfe", b"\r", b"\n",
    b"\xe2\x80\xa8", b"\xc2\x85", b"\x1b[2J", b"A" * 70_000, b"\x1f\x8b", b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd", b"PK\x03\x04",
)  # fmt: skip
_EXTREMES = (0, 1, -1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))


def _flip(data: bytes, other: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(some(draw)):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _insert(data: bytes, other: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    piece = draw.choice(_PIECES) if draw.random() < 0.6 else draw.randbytes(draw.randrange(1, 40))
    return data[:place] + piece + data[place + draw.choice((0, len(piece))) :]


def _take_out(data: bytes, other: bytes, draw: random.Random) -> bytes:
    start, end = _range(data, draw)
    return data[:start] + data[end:]


def _double(data: bytes, other: bytes, draw: random.Random) -> bytes:
    start, end = _range(data, draw)
    return data[:end] + data[start:end] * draw.choice((1, 1, 2, 50)) + data[end:]


def _splice(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def _number(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """An extreme integer, as binary formats hold their sizes and counts; often near the beginning or end."""
    width = draw.choice((1, 2, 4, 8))
    value = draw.choice(_EXTREMES) % (1 << 8 * width)
    limit = min(len(data), draw.choice((16, 64, 1 << 30)))
    place = draw.randrange(limit + 1) if draw.random() < 0.7 else max(0, len(data) - limit)
    return data[:place] + value.to_bytes(width, draw.choice(("little", "big"))) + data[place + width :]


def _range(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + draw.choice((1, 4, 30, 500)))


_ON_BYTES = (_flip, _truncate, _insert, _take_out, _double, _splice, _number)


# --- text -------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"<[^<>]*>|\d[\d.,:]*|\w+|\s+|.", re.DOTALL)
_NUMBERS = (
    "nan", "inf", "-inf", "1e400", "-1", "0", "-0.0", "1e-400", "1e308", "0x10", "9" * 5000,
    "1" + "0" * 30, "99999999999",
    "1.5.5", "1,5", "", "٣", "²", "1_000", "None", "true",
)  # fmt: skip
_WORDS = (
    "", "\0", "\t", "\n", "\r", "\x1b[31m", "\u2028", "\u0085", "\ufeff", "=", "[", "]", "{", "}", ":",
    ",", ";", "%s", "%n",
    "../../x", "/", "~", "*", "-", "--", "'", '"', "\\", "\\x", "&#0;", "&#xD800;", "&amp;",
    "&undefined;", "<!--", "]]>",
    "<![CDATA[", "<?xml version='1.0' encoding='UTF-7'?>",
    '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]>',
    "nplurals=0", "nplurals=999999999", "charset=utf-7", "charset=base64", "charset=x", "x" * 70_000,
    "é" * 300, "a\u0301",
    "日本", "\U0001f600", "[" * 3000, "(" * 3000, "9" * 400,
)  # fmt: skip


@lru_cache(maxsize=64)
def _tokens(data: bytes) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(data.decode("utf-8", "surrogateescape")))


def _text(data: bytes, other: bytes, draw: random.Random) -> bytes:
    if draw.random() < 0.3:
        data = _lines(data, other, draw)
    tokens = list(_tokens(data))
    for _ in range(some(draw)):
        _change_tokens(tokens, _tokens(other), draw)
    return "".join(tokens).encode("utf-8", "surrogateescape")


def _lines(data: bytes, other: bytes, draw: random.Random) -> bytes:
    lines, others = data.splitlines(keepends=True), other.splitlines(keepends=True) or [b""]
    place = draw.randrange(len(lines) + 1)
    match draw.choice(("repeat", "swap", "delete", "move", "many", "other")):
        case "repeat":
            lines[place:place] = lines[max(0, place - draw.choice((1, 10))) : place]
        case "swap" if lines:
            there = draw.randrange(len(lines))
            lines[place - 1], lines[there] = lines[there], lines[place - 1]
        case "delete":
            del lines[place : place + draw.choice((1, 5, 50))]
        case "move":
            lines = lines[place:] + lines[:place]
        case "many":
            lines[place:place] = lines[place : place + 1] * 300
        case _:
            lines.insert(place, draw.choice(others))
    return b"".join(lines)


def _change_tokens(tokens: list[str], others: Sequence[str], draw: random.Random) -> None:
    place = draw.randrange(len(tokens) + 1)
    numbers = [index for index, token in enumerate(tokens) if token[:1].isdigit()]
    match draw.choice(("number", "number", "number", "delete", "double", "word", "replace", "other", "nest")):
        case "number" if numbers:
            tokens[draw.choice(numbers)] = draw.choice(_NUMBERS)
        case "delete":
            del tokens[place : place + draw.choice((1, 1, 3, 20))]
        case "double":
            tokens[place:place] = tokens[place : place + draw.choice((1, 3, 20))]
        case "replace":
            tokens[place : place + 1] = [draw.choice(_WORDS)]
        case "other" if others:
            tokens[place : place + 1] = [draw.choice(others)]
        case "nest":
            tokens[place : place + 1] = tokens[place : place + 1] * draw.choice((3, 200, 3000))
        case _:
            tokens.insert(place, draw.choice(_WORDS))


_STRUCTURED: dict[str, Callable[[bytes, bytes, random.Random], bytes]] = {
    "text": _text,
    "json": json_document,
    "toml": toml_document,
    "sql": database,
}
