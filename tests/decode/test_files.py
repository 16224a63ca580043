"""decode/files.py: what is translated without a model's help."""

import io
import os
from collections.abc import Sequence

from dragoman.decode.engine import Options, Translation
from dragoman.decode.files import from_stream
from dragoman.errors import DataError
from tests.facts import raising


class Echo:
    name, languages, precision = "echo", None, "float32"

    def translate(self, texts: Sequence[str], options: Options) -> list[list[Translation]]:
        return [[Translation(text, 0.0)] for text in texts]


def test_an_endless_line_on_standard_input_is_refused_before_it_fills_the_memory() -> None:
    zeros = os.open("/dev/zero", os.O_RDONLY)
    try:
        with raising(DataError, "standard input:1"):
            from_stream(Echo(), zeros, io.BytesIO(), Options(), as_json=False)
    finally:
        os.close(zeros)
