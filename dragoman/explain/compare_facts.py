"""What differs between two runs, each difference once and in familiar words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from dragoman.measure.records import Records

# A fact and the setting that asks for it. If both differ, the setting is listed where it says what was done,
# otherwise the fact.
_ASKED_BY = {
    "mode": "sync.mode",
    "wire": "sync.wire",
    "exchange": "sync.hierarchical",
    "steps between exchanges": "sync.inner_steps",
}


class FactDifference(BaseModel):
    """A fact or setting that differs; None where a run has none."""

    name: str
    a: Any = None
    b: Any = None


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FactDifference]:
    """Returns the keys whose values differ."""
    keys = [*a, *(key for key in b if key not in a)]
    return [FactDifference(name=key, a=a.get(key), b=b.get(key)) for key in keys if a.get(key) != b.get(key)]


def facts_and_settings(
    a: tuple[Records, Records], b: tuple[Records, Records]
) -> tuple[list[FactDifference], list[FactDifference]]:
    """Returns the facts and the settings that differ; each run is given whole and as the compared part."""
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
            else:  # one step between exchanges follows from the mode
                facts.remove(done)
    return facts, settings


def _facts(records: Records, judged: Records) -> dict[str, Any]:
    """Returns the facts of the compared part, except those about all attempts."""
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
    """Returns how the data differ, by counts and languages; checksums tell whether they do."""
    if a.get("fingerprint") == b.get("fingerprint"):
        return []
    rows = differences(_counts(a), _counts(b))
    pieces = a.get("vocabulary_pieces"), b.get("vocabulary_pieces")
    if pieces[0] == pieces[1] and a.get("vocabulary_sha256") != b.get("vocabulary_sha256"):
        count = f"{pieces[0]:,} pieces" if isinstance(pieces[0], int) else "one"
        rows.append(FactDifference(name="vocabulary", a=count, b="another of the same size"))
    return rows or [
        FactDifference(name="training pairs", a="one set", b="another of the same size, or in another order")
    ]


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
