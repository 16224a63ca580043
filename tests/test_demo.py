"""The README shows the end of `make demo` in the form in which the demo prints it."""

from __future__ import annotations

import re
from pathlib import Path

from dragoman import demo
from dragoman.data.corpus import Corpus, Files
from dragoman.evaluate.heldout import HeldOut

README = Path(__file__).parents[1] / "README.md"
SENTENCES = ["A dog runs.", "A cat sleeps.", "The woman sings.", "The man reads.", "Anna laughs."] * 200


def form(line: str) -> str:
    """A line with its sentence and its numbers taken out."""
    label = re.match(r" *(?:source|translation|reference) ", line)
    return label[0].strip() if label else re.sub(r"[\d.,]+", "0", line.strip())


def test_the_readme_shows_the_end_of_the_demo_as_it_is_printed(tmp_path: Path) -> None:
    text = tmp_path / "train.txt"
    text.write_text("\n".join(SENTENCES))
    held_out = HeldOut("test", SENTENCES, [SENTENCES])
    corpus = Corpus("demo", "en", "de", (Files(text, text),))
    printed = [*demo._shown(held_out, SENTENCES), *demo._scores(held_out, SENTENCES, corpus)]
    forms = [form(line) for line in printed if line]
    quoted = re.findall(
        r"^ {4}(Held-out sentences.*?)^ {4}Run: ", README.read_text(), re.DOTALL | re.MULTILINE
    )
    wanted = [form(line) for line in quoted[0].splitlines() if line.strip(" .")]
    assert len(wanted) > 6
    assert wanted[:4] == forms[:4]
    assert wanted[4:] == forms[-len(wanted[4:]) :]
