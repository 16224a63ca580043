"""What differs between two runs, in words that a person knows, and each thing once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from dragoman.measure.records import Records

# A fact, and the setting that asks for it: where both differ, the one that was asked for is listed if it says
# what was done, and else the fact.
_ASKED_BY = {
    "mode": "sync.mode",
    "wire": "sync.wire",
    "exchange": "sync.hierarchical",
    "steps between exchanges": "sync.inner_steps",
}


class FactDifference(BaseModel):
    """A fact or setting that is not the same; None where a run has none."""

    name: str
    a: Any = None
    b: Any = None


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FactDifference]:
    keys = [*a, *(key for key in b if key not in a)]
    return [FactDifference(name=key, a=a.get(key), b=b.get(key)) for key in keys if a.get(key) != b.get(key)]


def facts_and_settings(
    a: tuple[Records, Records], b: tuple[Records, Records]
) -> tuple[list[FactDifference], list[FactDifference]]:
    """Of two runs, each as a whole and with the steps that are judged: facts that differ, and settings."""
    facts = differences(_facts(*a), _facts(*b))
    facts += _data(a[1].facts.data_card, b[1].facts.data_card)
    settings = differences(a[1].facts.settings, b[1].facts.settings)
    asked = {row.name: row for row in settings}
    for fact, setting in _ASKED_BY.items():
        done = next((row for row in facts if row.name == fact), None)
        if done and (wanted := asked.get(setting)):
            if (done.a, done.b) == (wanted.a, wanted.b):
                facts.remove(done)
            elif fact != "steps between exchanges":
                settings.remove(wanted)
            else:  # one step between exchanges is what the mode says
                facts.remove(done)
    return facts, settings


def _facts(records: Records, judged: Records) -> dict[str, Any]:
    """Of the steps that are compared, but for what is said of all attempts."""
    facts = judged.facts
    attempts = [attempt.ranks for attempt in records.attempts]
    return {
        "source": facts.source,
        "ranks": facts.ranks,
        "ranks of attempts": attempts if len(set(attempts)) > 1 else None,
        "hosts": facts.hosts or None,
        "ranks per host": [facts.rank_hosts.count(host) for host in range(len(facts.hosts))] or None,
        "device": facts.device,
        "parameters": facts.parameters,
        "mode": facts.mode,
        "exchange": facts.exchange,
        "wire": facts.wire,
        "steps between exchanges": facts.exchange_every,
        "steps": len(records.steps["step"]),
    }


def _data(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FactDifference]:
    """Checksums tell that data differ; counts and languages say how."""
    if a.get("fingerprint") == b.get("fingerprint"):
        return []
    rows = differences(_counts(a), _counts(b))
    pieces = a.get("vocabulary_pieces"), b.get("vocabulary_pieces")
    if pieces[0] == pieces[1] and a.get("vocabulary_sha256") != b.get("vocabulary_sha256"):
        said = f"{pieces[0]:,} pieces" if isinstance(pieces[0], int) else "one"
        rows.append(FactDifference(name="vocabulary", a=said, b="as many others"))
    return rows or [FactDifference(name="training pairs", a="some", b="as many others, or in another order")]


def _counts(card: Mapping[str, Any]) -> dict[str, Any]:
    train = card.get("parts", {}).get("train", {})
    languages = [card.get(f"{side}_language") for side in ("source", "target")]
    pieces = card.get("vocabulary_pieces")
    return {
        "languages": " to ".join(map(str, languages)) if all(languages) else None,
        "corpora": ", ".join(corpus["name"] for corpus in card.get("corpora", [])) or None,
        "training pairs": train.get("pairs"),
        "held-out pairs": card.get("parts", {}).get("dev", {}).get("pairs"),
        "vocabulary": f"{pieces:,} pieces" if isinstance(pieces, int) else None,
    }
