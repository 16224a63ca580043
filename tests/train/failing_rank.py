"""`dragoman WORDS` as a rank, where rank 1 fails in its third step: `python -m tests.train.failing_rank`."""

from __future__ import annotations

from typing import Any

from dragoman.cli import main
from dragoman.errors import DragomanError
from dragoman.train.step import Stepper

update = Stepper.update


def failing_update(self: Stepper, *arguments: Any, **named: Any) -> Any:
    if self._world.rank == 1 and self._state.step == 2:
        raise DragomanError("rank 1 found something")
    return update(self, *arguments, **named)


if __name__ == "__main__":
    Stepper.update = failing_update  # type: ignore[method-assign]
    main()
