"""Counts the steps of reading one file; the limit is the same on every machine."""

from __future__ import annotations

#: The largest known scripts need a fifth of it.
MOST_STEPS = 5_000_000
#: The steps of a setting, which is also checked.
SETTING_STEPS = 100


class TooManySteps(Exception):  # noqa: N818
    """Raised when reading a file exceeds its steps."""


_left = [MOST_STEPS]


def begin_steps() -> None:
    """Start counting the steps of another file."""
    _left[0] = MOST_STEPS


def count_steps(steps: int = 1) -> None:
    """Count steps of the current file. Raises TooManySteps."""
    _left[0] -= steps
    if _left[0] < 0:
        raise TooManySteps
