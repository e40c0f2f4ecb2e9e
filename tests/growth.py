"""How the work of a function grows with its input: in calls, which are the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile


def count_calls(function: Callable[[], object]) -> int:
    """Return how many functions are called, Python's own included."""
    function()  # what is kept for the next time is there from here on
    profile = Profile()
    profile.runcall(function)
    return sum(entry.callcount for entry in profile.getstats())


def measure_growth(function: Callable[[int], Callable[[], object]], size: int, times: int = 4) -> float:
    """Return how many times the work grows, in relation to the input, when that is ``times`` as long: 1.0 is linear."""
    return count_calls(function(size * times)) / count_calls(function(size)) / times
