import pytest

from dragoman.data.formats.languages import choose, matches


@pytest.mark.parametrize("found", ["en", "EN", "en-GB", "en_US", "en_US.UTF-8", " en "])
def test_a_language_matches_itself_in_any_region_and_spelling(found: str) -> None:
    assert matches("en", found)
    assert matches("EN", found)


@pytest.mark.parametrize(("asked", "found"), [("en", "eng"), ("en-GB", "en-US"), ("en-GB", "en"), ("en", "")])
def test_another_language_or_region_does_not_match(asked: str, found: str) -> None:
    assert not matches(asked, found)


def test_an_exact_match_wins_over_an_earlier_region() -> None:
    assert choose("en", ["de", "en-US", "EN"]) == "EN"
    assert choose("en", ["de", "en-US", "en-GB"]) == "en-US"
    assert choose("fr", ["de", "en-US"]) is None
