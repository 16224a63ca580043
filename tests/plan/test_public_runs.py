"""benchmarks/plan.py on rows of public runs, where they are at hand."""

import os
from pathlib import Path
from statistics import median

import pytest

from benchmarks import plan

TABLE = Path(os.environ.get("DRAGOMAN_DATA", "/nowhere")) / "public-runs" / "runs.csv"


@pytest.mark.skipif(not TABLE.exists(), reason="DRAGOMAN_DATA has no public-runs")
def test_even_rows_are_predicted_from_odd_ones() -> None:
    results = list(plan.public(TABLE))
    assert len(results) == 15
    assert median(result.error for result in results) < plan.GOALS["public"][0]
    assert sum(result.is_inside for result in results) >= 12
