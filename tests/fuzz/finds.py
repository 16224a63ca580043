"""Inputs that once were finds, each by its entrance: as bytes, or by number where they are long.

A number means the same input for as long as the entrance's seeds and the mutator stay as they are.
"""

from __future__ import annotations

FINDS: tuple[tuple[str, int | bytes], ...] = ()
