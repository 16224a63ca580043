"""How the translations that are scored come about."""

from pathlib import Path

from dragoman.evaluate.heldout import HeldOut
from dragoman.evaluate.system import DecodingOptions, find
from dragoman.export.export import export
from tests.decode.models import SENTENCES, make_run

FEW = HeldOut("few", SENTENCES[:3], [SENTENCES[:3]])


def test_a_model_is_scored_in_the_precision_it_would_be_used_in(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    export(run, "ctranslate2", tmp_path / "int8", "int8")
    assert find(run, FEW, DecodingOptions()).made.startswith("ctranslate2, float32, ")
    assert find(tmp_path / "int8", FEW, DecodingOptions()).made.startswith("ctranslate2, int8")
    assert find(tmp_path / "int8", FEW, DecodingOptions(precision="float32")).made.startswith(
        "ctranslate2, float32, "
    )
