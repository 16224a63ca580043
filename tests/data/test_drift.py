import random
from pathlib import Path

import numpy as np
import pytest

from dragoman.data import drift
from tests.facts import lacking

LINES = 5000


def parallel(seed: int) -> tuple[list[bytes], list[bytes]]:
    """Sentences whose lengths are spread and correlated about as in real text."""
    draw = random.Random(seed)
    source_bytes = [max(5, int(draw.lognormvariate(4.0, 0.5))) for _ in range(LINES)]
    target_bytes = [max(5, int(length * draw.lognormvariate(0.15, 0.2))) for length in source_bytes]
    return [b"s" * length for length in source_bytes], [b"t" * length for length in target_bytes]


def write(folder: Path, source: list[bytes], target: list[bytes]) -> tuple[Path, Path]:
    paths = folder / "train.en", folder / "train.de"
    for path, sentences in zip(paths, (source, target), strict=True):
        path.write_bytes(b"".join(line + b"\n" for line in sentences))
    return paths


@pytest.mark.parametrize("lost_lines", [1, 7])
@pytest.mark.parametrize("line", [1, 2, 137, 2500, 4900])
@pytest.mark.parametrize("side", ["source", "target"])
def test_lines_lost_on_one_side_are_found_within_a_few(line: int, side: str, lost_lines: int) -> None:
    misses = []
    for seed in range(10):
        lengths = {
            name: np.array([len(row) for row in rows])
            for name, rows in zip(("source", "target"), parallel(seed), strict=True)
        }
        lengths[side] = np.delete(lengths[side], slice(line - 1, line - 1 + lost_lines))
        found = drift.first_drifting_line(lengths["source"], lengths["target"])
        assert found is not None
        misses.append(abs(found - line))
    assert np.median(misses) <= 1
    assert max(misses) <= 5


@pytest.mark.parametrize("lost_lines", [1, 1000])
def test_a_file_cut_off_at_its_end_is_called_that(tmp_path: Path, lost_lines: int) -> None:
    source, target = parallel(1)
    error = drift.error(*write(tmp_path, source, target[:-lost_lines]))
    assert (error.path, error.line) == (str(tmp_path / "train.de"), LINES - lost_lines)
    assert not lacking(error.what, f"{LINES - lost_lines:,}", f"{LINES:,}")


def test_the_error_gives_both_counts_the_line_and_what_stands_there(tmp_path: Path) -> None:
    source, target = parallel(1)
    del target[2998]
    error = drift.error(*write(tmp_path, source, target))
    assert not lacking(error.what, "train.en", "5,000", "train.de", "4,999")
    assert error.line is not None and abs(error.line - 2999) <= 2
    assert not lacking(error.what, f"{error.line:,}")
    assert "'sss" in error.what and "'ttt" in error.what
    assert error.path == str(tmp_path / "train.en")


def test_an_empty_file_beside_a_full_one_is_cut_off(tmp_path: Path) -> None:
    error = drift.error(*write(tmp_path, [], [b"one"]))
    assert error.path == str(tmp_path / "train.en")
