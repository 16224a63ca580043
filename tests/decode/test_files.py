"""decode/files.py: what is translated without a model's help."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.decode.engine import Options, Translation
from dragoman.decode.files import Task, from_stream, to_files
from dragoman.errors import DataError, UsageError
from tests.facts import raising


class Echo:
    name, precision = "echo", "float32"

    def __init__(self, languages: tuple[str, str] | None = None):
        self.languages = languages

    def translate(self, texts: Sequence[str], options: Options) -> list[list[Translation]]:
        return [[Translation(text, 0.0)] for text in texts]


def test_an_endless_line_on_standard_input_is_refused_before_it_fills_the_memory() -> None:
    zeros = os.open("/dev/zero", os.O_RDONLY)
    try:
        with raising(DataError, "standard input:1"):
            from_stream(Echo(), zeros, io.BytesIO(), Options(), as_json=False)
    finally:
        os.close(zeros)


XLIFF_1 = '<xliff version="1.2"><file source-language="en" target-language="{}"><body/></file></xliff>'
XLIFF_2 = '<xliff version="2.0" srcLang="en" trgLang="{}"><file/></xliff>'
PO = 'msgid ""\nmsgstr "Language: {}\\n"\n'


@pytest.mark.parametrize(("name", "content"), [("a.xlf", XLIFF_1), ("b.xliff", XLIFF_2), ("c.po", PO)])
def test_a_file_for_another_language_than_the_models_is_refused_and_not_written(
    tmp_path: Path, name: str, content: str
) -> None:
    source, out = tmp_path / name, tmp_path / "out"
    for language in ("de", "de-AT", ""):
        source.write_text(content.format(language))
        to_files(
            Echo(("en", "de")),
            Task([source], out / (language or "none"), Options()),
            out / (language or "none"),
        )
    source.write_text(content.format("it"))
    with raising(UsageError, name, "it", "de"):
        to_files(Echo(("en", "de")), Task([source], out / "it", Options()), out / "it")
    assert not (out / "it").exists()
    to_files(Echo(None), Task([source], out / "any", Options()), out / "any")
