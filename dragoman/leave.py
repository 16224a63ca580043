"""The end of a process that used torch."""

import os
import sys
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """Exits without Python's shutdown.

    During it the threads of torch's stores sometimes abort, and NCCL waits for ranks that are gone.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the terminal may be closed by now
            stream.flush()
    os._exit(code)
