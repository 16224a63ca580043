"""The answers for recorded, drawn and hand-made runs, kept as files: a change of any of them shows in a diff.

`python -m tests.explain.kept` writes the files anew. Read the diff: every line of it is a changed answer.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from dragoman.explain.compare import compare
from dragoman.explain.finding import Finding
from dragoman.explain.run import explain
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.measure import database
from dragoman.measure.records import Records
from tests.explain import build, by_hand, generate, partial
from tests.foreign import logs, test_fairseq, test_huggingface

FOLDER = Path(__file__).parent / "kept"
RECORDED = sorted((Path(__file__).parents[1] / "runs").glob("*.db"))
DIGITS = 5  # that are kept of a number: the arithmetic of another machine may differ in the last ones
# Of runs that hold one part of a run only, the answers that rest on it.
ASKED = {
    "bare": ("network", "step_network", "device_utilisation", "duration"),
    "facts": ("network", "device_utilisation"),
    "learning": ("convergence", "overfitting", "learning_rate"),
}
SEEDS = {"whole": 24, "holes": 12, "bare": 20, "facts": 68, "learning": 40}
LOGS = {
    "openseq2seq": logs.openseq2seq(),
    "openseq2seq-slows-down": logs.openseq2seq(seconds=lambda step: 1.7 if step < 1200 else 3.4),
    "fairseq": test_fairseq.log(),
    "huggingface": test_huggingface.STATE.read_text(),
}


def cases() -> list[str]:
    """The names of all kept cases: a kind, and what tells it from others of its kind."""
    kinds: dict[str, list[Any]] = {kind: list(range(count)) for kind, count in SEEDS.items()}
    kinds |= {"run": list(by_hand.RUNS), "pair": list(by_hand.PAIRS), "log": list(LOGS)}
    return [*(path.stem for path in RECORDED), *(f"{kind}-{name}" for kind in kinds for name in kinds[kind])]


def answers(case: str) -> dict[str, Any]:
    """All that the findings of a case hold, by question; or what two runs compare to."""
    kind, _, name = case.partition("-")
    if kind == "pair":
        return {"comparison": _rounded(compare(*by_hand.PAIRS[name]()).model_dump())}
    findings = {finding.id: _rounded(finding.model_dump(exclude={"id"})) for finding in _findings(kind, name)}
    asked = by_hand.RUNS[name][1] if kind == "run" else ASKED.get(kind, tuple(findings))
    return {question: findings[question] for question in asked}


def _findings(kind: str, name: str) -> list[Finding]:
    if kind == "log":
        return _of_log(LOGS[name])
    return explain(_records(kind, name), price_per_hour=1.5)


def _records(kind: str, name: str) -> Records:
    if kind == "run":
        return by_hand.RUNS[name][0]()
    if kind == "facts":
        return partial.facts_alone(int(name))
    if kind == "learning":
        return partial.learning(int(name))
    if kind not in SEEDS:
        return database.read(FOLDER.parents[1] / "runs" / f"{'-'.join(filter(None, (kind, name)))}.db")
    run = generate.draw(int(name))
    if kind == "bare":
        return generate.bare(generate.with_a_true_link(run))
    records = build.records(**vars(run))
    return generate.with_holes(records, int(name)) if kind == "holes" else records


def _of_log(text: str) -> list[Finding]:
    with tempfile.TemporaryDirectory() as folder:
        name = "trainer_state.json" if text.startswith("{") else "log.txt"
        path = logs.written(Path(folder), text, name)
        return diagnose([path], Given(ranks=8, machines=2, link="1gbit", params=60_880_896)).findings


def file(case: str) -> Path:
    return FOLDER / f"{case}.json"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for stale in FOLDER.iterdir():
        stale.unlink()
    for case in cases():
        file(case).write_text(json.dumps(answers(case), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
