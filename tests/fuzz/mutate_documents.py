"""JSON and TOML with their structure changed: keys lost, renamed or doubled, values of every wrong kind."""

from __future__ import annotations

import json
import random
import re
import tomllib
from typing import Any


def some(draw: random.Random) -> int:
    """Mostly one or two changes: many at once seldom get past the first check."""
    return min(8, 1 + int(draw.expovariate(0.9)))


class Raw(str):
    """Stands in the document as it is."""


class Twice:
    """A key that comes twice, with a value each."""

    def __init__(self, first: Any, second: Any):
        self.values = (first, second)


_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 0.5, -0.0, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 1e308, -1e308, 5e-324,
    Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("1e400"), Raw("-1e400"), Raw("9" * 400),
    Raw("9" * 5000),
    "", " ", "x", "1", "-1", "nan", "true", "\0", "\x1b[2J", "a/b", "../../x", "/", ".", "x" * 70_000,
    "\ud800", "\n", "é日",
    [], {}, [[]], [{}], {"": None}, [1, "x", None], {"x": {"x": {}}}, [0] * 2000, Raw("[" * 500 + "]" * 500),
    Raw("[" * 100_000 + "]" * 100_000), Raw('{"x":' * 2000 + "1" + "}" * 2000),
)  # fmt: skip
_DIGITS = Raw("9" * 5000)

Place = tuple[Any, Any]  # a container, and a key or an index in it


def change(document: Any, draw: random.Random) -> Any:
    """Some places of a document deleted, renamed, doubled, exchanged, or filled with something else."""
    for _ in range(some(draw)):
        places = list(_places(document))
        if not places or draw.random() < 0.02:
            return draw.choice(_VALUES)
        container, key = draw.choice(places)
        match draw.choice(
            ("value", "value", "value", "number", "delete", "rename", "double", "swap", "wrap")
        ):
            case "number" if isinstance(container[key], (int, float)):
                container[key] = draw.choice(
                    (
                        -container[key],
                        container[key] * 1e300,
                        container[key] + 0.5,
                        str(container[key]),
                        _DIGITS,
                    )
                )
            case "delete":
                del container[key]
            case "rename" if isinstance(container, dict):
                container[draw.choice(("", "x", key + " ", key.upper(), "a.b", "\0", "é"))] = container.pop(
                    key
                )
            case "double":
                if isinstance(container, dict):
                    container[key] = Twice(container[key], draw.choice(_VALUES))
                else:
                    container[key:key] = [_copied(container[key])] * draw.choice((1, 1, 300))
            case "swap":
                other, there = draw.choice(places)
                if other is not container:
                    container[key] = _copied(other.get(there) if isinstance(other, dict) else other[there])
            case "wrap":
                container[key] = [container[key]] if draw.random() < 0.5 else {"x": container[key]}
            case _:
                container[key] = _copied(draw.choice(_VALUES))
    return document


def _places(value: Any) -> list[Place]:
    found: list[Place] = []
    waiting = [value]
    while waiting and len(found) < 20_000:
        container = waiting.pop()
        if isinstance(container, dict):
            found += [(container, key) for key in container]
            waiting += container.values()
        elif isinstance(container, list):
            found += [(container, index) for index in range(len(container))]
            waiting += container
    return found


def _copied(value: Any) -> Any:
    """Fresh containers: values of the pool must not change with the document they went into."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def json_text(value: Any) -> str:
    """JSON, or nearly: NaN, keys twice, numbers of any length."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        parts = []
        for key, inner in value.items():
            both = inner.values if isinstance(inner, Twice) else (inner,)
            parts += [f"{json.dumps(key)}: {json_text(each)}" for each in both]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Twice):
        return json_text(value.values[1])
    return json.dumps(value)


def json_document(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return json_text(change(json.loads(data), draw)).encode("utf-8", "surrogatepass")


def toml_document(data: bytes, other: bytes, draw: random.Random) -> bytes:
    document = change(tomllib.loads(data.decode()), draw)
    if not isinstance(document, dict):
        return _toml_value(document).encode("utf-8", "surrogatepass")
    values = {key: value for key, value in document.items() if not isinstance(value, dict)}
    lines = _toml_lines(values)
    for name, section in document.items():
        if isinstance(section, dict):
            lines += [f"[{_toml_key(name)}]", *_toml_lines(section)]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _toml_lines(values: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in values.items():
        both = value.values if isinstance(value, Twice) else (value,)
        lines += [f"{_toml_key(key)} = {_toml_value(each)}" for each in both]
    return lines


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[\w.-]+", key, re.ASCII) else json.dumps(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, Raw):
        return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(value, str(value))
    if isinstance(value, dict):
        return "{" + ", ".join(_toml_lines(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, Twice):
        return _toml_value(value.values[1])
    return "nan" if value is None else json.dumps(value, ensure_ascii=False)
