"""explain/questions.py: a row holds what its answers and reports need, under names that exist."""

import pytest
from pydantic import ValidationError

from dragoman.explain.finding import Finding, unknown
from dragoman.explain.questions import QUESTIONS
from dragoman.explain.run import explainer_of
from tests.facts import raising


@pytest.mark.parametrize("id", QUESTIONS)
def test_a_rows_explainer_exists_and_its_question_may_stay_unanswered(id: str) -> None:
    assert callable(explainer_of(QUESTIONS[id]))
    assert unknown(id, "nothing was recorded").question == QUESTIONS[id].wording


@pytest.mark.parametrize(
    ("id", "verdict"),
    [("network", "stated"), ("duration", "bottleneck"), ("overfitting", "converged"), ("weather", "stated")],
)
def test_a_finding_refuses_a_verdict_that_its_question_does_not_have(id: str, verdict: str) -> None:
    with raising(ValidationError, id if id == "weather" else f"'{verdict}'"):
        Finding(id=id, verdict=verdict, answer="It was fine.")
