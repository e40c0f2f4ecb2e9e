"""Counts the steps of reading one file; the limit is the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

#: The largest known scripts need a fifth of it.
MOST_STEPS = 5_000_000
#: The steps of a setting, which is also checked.
SETTING_STEPS = 100


class TooManySteps(Exception):  # noqa: N818
    """Raised when reading a file exceeds its steps."""


_left = [inf]


@contextmanager
def limit_steps() -> Iterator[None]:
    """Count the steps of one file inside the ``with`` statement."""
    outer, _left[0] = _left[0], MOST_STEPS
    try:
        yield
    finally:
        _left[0] = outer


def count_steps(steps: int = 1) -> None:
    """Count steps of the current file. Raises TooManySteps."""
    _left[0] -= steps
    if _left[0] < 0:
        raise TooManySteps
