"""Real translations of a data set's held-out part, scored with signatures."""

from __future__ import annotations

from pydantic import BaseModel

from dragoman.config import Evaluate
from dragoman.data.store import DataSet
from dragoman.decode.translate import translate
from dragoman.errors import UsageError
from dragoman.measure.quality import Score, bleu, chrf
from dragoman.model import Transformer


class PartScores(BaseModel):
    """How a model does on a part of a data set."""

    part: str
    sentences: int
    bleu: Score
    chrf: Score
    translations: list[str]


def score_part(model: Transformer, data: DataSet, part: str, config: Evaluate) -> PartScores:
    if part not in data.parts or part == "train":
        held_out = ", ".join(name for name in data.parts if name != "train")
        raise UsageError(f"there is no held-out part {part}", path=data.path, hint=f"--part {held_out}")
    sources, references = data.parts[part].text("source"), data.parts[part].text("target")
    found = translate(model, data.tokenizer, sources, config)
    return PartScores(
        part=part,
        sentences=len(sources),
        bleu=bleu(found, references),
        chrf=chrf(found, references),
        translations=found,
    )
