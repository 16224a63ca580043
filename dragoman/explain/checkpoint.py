"""What files is a checkpoint made of, and how big is it? From the newest one on disk."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from dragoman import format_units
from dragoman.config import Model
from dragoman.cost import size
from dragoman.explain.finding import Finding, known, unknown
from dragoman.measure.records import Records, RunFacts

NUMBER_BYTES = 4  # fp32
ODDS = 0.05  # of the size: config, vocabulary, state and file headers beside the numbers
ODD_BYTES = 2_000_000  # which a small model has as well as a large one


def explain_files(records: Records) -> Finding:
    files = _files(records)
    if not files:
        return unknown("checkpoint_files", "no checkpoint was recorded")
    listed = [
        f"{file['name']} ({format_units.size(file['bytes'])}"
        f"{': ' + file['purpose'] if file['purpose'] else ''})"
        for file in files
    ]
    return Finding(
        id="checkpoint_files",
        verdict="stated",
        answer=f"{format_units.counted(len(files), 'file')}: {'; '.join(listed)}.",
        numbers={"files": files},
        evidence=["files: the newest checkpoint's folder and manifest"],
    )


def explain_size(records: Records) -> Finding:
    files, parameters = _files(records), records.facts.parameters
    total = sum(file["bytes"] for file in files)
    expected, arithmetic = _arithmetic(records.facts)
    numbers = known(total_bytes=total or None, parameters=parameters, expected_bytes=expected)
    if not files:
        finding = unknown("checkpoint_size", "no checkpoint was recorded", numbers)
        if expected:
            finding.answer += f" By arithmetic it would be about {format_units.size(expected)}: {arithmetic}."
        return finding
    text = f"{format_units.size(total)} in {format_units.counted(len(files), 'file')}."
    if parameters and expected:
        numbers |= known(bytes_per_parameter=total / parameters)
        text = f"{format_units.size(total)}, {total / parameters:.1f} bytes per parameter."
        text += f" {_compare(total, parameters, expected, f'{arithmetic} = {format_units.size(expected)}')}"
    return Finding(
        id="checkpoint_size",
        verdict="stated",
        answer=text,
        numbers=numbers,
        evidence=["total_bytes: sum over the newest checkpoint's files", "parameters: counted in the model"],
    )


def _arithmetic(facts: RunFacts) -> tuple[int | None, str]:
    """Bytes of the weights and of what the optimizer keeps, and how they come about."""
    if not facts.parameters:
        return None, ""
    count, moments = format_units.count(facts.parameters), _muons_moments(facts)
    if moments is None:
        total = 3 * NUMBER_BYTES * facts.parameters
        text = f"{count} parameters x {NUMBER_BYTES} bytes x 3 (weights and Adam's two moments)"
    else:
        total = NUMBER_BYTES * (facts.parameters + moments)
        text = f"({count} parameters + {format_units.count(moments)} moments) x {NUMBER_BYTES} bytes"
        text += " (Muon keeps one moment for matrices of layers, two for the rest)"
    if outer := facts.way.saved_bytes(facts.parameters):
        text += f" + {count} x {outer // facts.parameters} (DiLoCo's outer momentum)"
    return total + outer, text


def _muons_moments(facts: RunFacts) -> int | None:
    pieces = facts.data_card.get("vocabulary_pieces")
    if facts.settings.get("train.optimizer") != "muon" or not isinstance(pieces, int):
        return None
    prefix = "model."
    found = {
        name.removeprefix(prefix): value for name, value in facts.settings.items() if name.startswith(prefix)
    }
    try:
        return size.moments(Model.model_validate(found), pieces, "muon")
    except ValidationError:
        return None


def _compare(total: int, parameters: int, expected: int, arithmetic: str) -> str:
    if abs(total - expected) <= ODDS * expected or expected <= total <= min(
        2 * expected, expected + ODD_BYTES
    ):
        return f"The arithmetic agrees: {arithmetic}."
    per_parameter = total / parameters
    known_kinds = {
        4.0: "weights alone",
        8.0: "weights and one moment",
        14.0: "fp16 copy of the weights besides",
    }
    for each, meaning in known_kinds.items():
        if abs(per_parameter / each - 1) <= ODDS:
            return f"In fp32 it would be {arithmetic}; {each:g} bytes mean {meaning}."
    return f"In fp32 it would be {arithmetic}; the rest is something else."


def _files(records: Records) -> list[dict[str, Any]]:
    """Those whose name and size are known, the largest first."""
    found = [
        {"name": str(file["name"]), "bytes": int(file["bytes"]), "purpose": str(file.get("purpose") or "")}
        for file in records.facts.checkpoint_files
        if "name" in file and isinstance(file.get("bytes"), int | float) and file["bytes"] >= 0
    ]
    return sorted(found, key=lambda file: -file["bytes"])
