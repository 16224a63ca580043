"""plan/work.py: steps, tokens and sizes of a run."""

import pytest

from dragoman.config import Data, Sync, Training
from dragoman.cost import flops
from dragoman.errors import UsageError
from dragoman.plan.work import CorpusSize, Work
from tests.facts import lacking, only
from tests.plan import build


def test_epochs_are_counted_in_pairs_of_a_step() -> None:
    work = build.work(step=4_000)
    assert work.pairs_per_step() == 200
    assert work.steps(3).value == 150
    assert work.steps(None).value == 1_000


def test_epochs_without_a_corpus_are_wrong_use() -> None:
    with pytest.raises(UsageError, match="--pairs N"):
        Work(Training(), CorpusSize.usual(None)).steps(1)


def test_a_step_of_pairs_is_less_sure_than_one_of_tokens_where_lengths_are_not_known() -> None:
    def spread(data: Data) -> float:
        work = Work(Training(data=data), CorpusSize.usual(None))
        return work.flops_per_step("high") / work.flops_per_step("low")

    assert spread(Data(unit="pairs", step=1_024, microbatch=64)) > 1.25
    assert spread(Data()) < 1.02


def test_work_is_that_of_the_flop_count() -> None:
    work = build.work()
    expected = flops.step(build.TINY, 1_000, source_tokens=8_000, target_tokens=8_000, pairs=400)
    assert work.flops_per_step() == pytest.approx(expected)


def test_recomputing_is_computed_but_is_no_work_of_the_model() -> None:
    plain = build.work()
    again = Work(
        plain.settings.model_copy(
            update={"train": plain.settings.train.model_copy(update={"recompute": True})}
        ),
        plain.corpus,
    )
    assert again.flops_per_step() == plain.flops_per_step() == plain.computed_flops_per_step()
    projection = 2 * 8_000 * 1_000 * build.TINY.width
    assert again.computed_flops_per_step() == pytest.approx(4 / 3 * plain.flops_per_step() - projection)
    assert again.memory_bytes(1).value < plain.memory_bytes(1).value


def test_what_was_not_counted_is_reported() -> None:
    assert build.corpus().assumptions == []
    only(CorpusSize.usual(None).assumptions, "32,768 pieces")


def test_disk_holds_the_checkpoints_that_are_kept_and_the_one_being_written() -> None:
    work = Work(Training(), CorpusSize.usual(None))
    assert work.disk_bytes.value == pytest.approx(4 * 12 * 60_880_896, rel=0.01)
    assert not lacking(work.disk_bytes.source, "4 checkpoints", "12 bytes")
    outer = Work(Training(sync=Sync(mode="diloco")), CorpusSize.usual(None)).disk_bytes
    assert outer.value == pytest.approx(4 * 16 * 60_880_896, rel=0.01)
    assert not lacking(outer.source, "4 checkpoints", "16 bytes")
