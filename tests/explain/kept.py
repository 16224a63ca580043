"""The eleven answers for recorded and generated runs, kept as files: a change of any of them shows in a diff.

`python -m tests.explain.kept` writes the files anew. Read the diff: every line of it is a changed answer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.explain.run import explain
from dragoman.measure import database
from dragoman.measure.records import Records
from tests.explain import build, generate

FOLDER = Path(__file__).parent / "kept"
RECORDED = sorted((Path(__file__).parents[1] / "runs").glob("*.db"))
DIGITS = 4  # that are kept of a number: the arithmetic of another machine may differ in the last ones
SEEDS = {"whole": 30, "holes": 12, "bare": 24}


def cases() -> list[str]:
    """The names of all kept runs: those that were recorded, then generated ones by kind and seed."""
    generated = [f"{kind}-{seed}" for kind, count in SEEDS.items() for seed in range(count)]
    return [*(path.stem for path in RECORDED), *generated]


def records_of(case: str) -> Records:
    kind, _, seed = case.partition("-")
    if kind not in SEEDS:
        return database.read(RECORDED[0].with_name(f"{case}.db"))
    run = generate.draw(int(seed))
    if kind == "bare":
        return generate.bare(generate.with_a_true_link(run))
    records = build.records(**vars(run))
    return generate.with_holes(records, int(seed)) if kind == "holes" else records


def answers(case: str) -> dict[str, Any]:
    """All that the findings of a case hold, by question."""
    findings = explain(records_of(case), price_per_hour=1.5)
    return {finding.id: _rounded(finding.model_dump(exclude={"id"})) for finding in findings}


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
