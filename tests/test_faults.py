from typing import get_args

from dragoman import faults


def test_every_fault_has_its_own_words() -> None:
    assert set(faults.WORDS) == set(get_args(faults.FaultKind))
    assert len(set(faults.WORDS.values())) == len(faults.WORDS)
