"""How the work of a function grows with its input: in calls, which are the same on
every machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from cProfile import Profile


def count_calls(function: Callable[[], object]) -> int:
    """Return how many functions are called, Python's own included."""
    function()  # what is kept for the next time is there from here on
    profile = Profile()
    profile.runcall(function)
    return sum(entry.callcount for entry in profile.getstats())


def measure_growth(
    function: Callable[[int], Callable[[], object]], size: int, times: int = 4
) -> float:
    """Return how many times the work grows, in relation to the input, when that is ``times`` as
    long: 1.0 is linear.
    """
    return count_calls(function(size * times)) / count_calls(function(size)) / times


def measure_time_growth(
    function: Callable[[int], Callable[[], object]], size: int, times: int = 4
) -> float:
    """Return the same of the processor's time, for work within one call.

    The best of three, which what else runs disturbs least.
    """

    def measure(call: Callable[[], object]) -> float:
        taken = []
        for _ in range(3):
            before = time.process_time()
            call()
            taken.append(time.process_time() - before)
        return min(taken)

    return measure(function(size * times)) / measure(function(size)) / times
