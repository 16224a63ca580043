"""explain/gains.py: BLEU as a line in a power of the token probability."""

from __future__ import annotations

import numpy as np

from dragoman.explain.gains import POWERS, _Line


def test_a_loss_that_rose_by_hundreds_overflows_in_no_power() -> None:
    for power in POWERS:
        line = _Line(np.linspace(900.0, 0.0, 5), np.linspace(3.0, 30.0, 5), power)
        assert np.isfinite([line.slope, line.noise, *line.at(np.array([900.0, -900.0]))]).all()
