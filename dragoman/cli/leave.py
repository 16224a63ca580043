"""The end of a process that used torch."""

import os
import sys
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """At once: threads of torch's stores now and then abort a process while Python takes itself down."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a terminal that was closed meanwhile
            stream.flush()
    os._exit(code)
