"""How the work of npuprof grows with its input, counted, so the same on every machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from cProfile import Profile
from pathlib import Path


def count_calls(function: Callable[[], object]) -> int:
    """Return how many functions are called, Python's own included."""
    function()  # fills caches, which would make the first call longer
    profile = Profile()
    profile.runcall(function)
    return sum(entry.callcount for entry in profile.getstats())


def measure_growth(
    function: Callable[[int], Callable[[], object]], size: int, times: int = 4
) -> float:
    """Return the growth of the calls relative to that of the input: 1.0 is linear."""
    return count_calls(function(size * times)) / count_calls(function(size)) / times


def measure_copying_growth(
    build_arguments: Callable[[int], Sequence[str | Path]], size: int, times: int = 4
) -> float:
    """Return the growth of all work, which includes characters copied or searched by C code.

    1.0 is linear. The commands run in a process of their own (``metered.py``).
    """
    small, large = (list(map(str, build_arguments(length))) for length in (size, size * times))
    script = Path(__file__).with_name("metered.py")
    done = subprocess.run(
        [sys.executable, script, json.dumps([small, small, large, large])],
        stdout=subprocess.PIPE,
        check=True,
    )
    _, small_work, _, large_work = json.loads(done.stdout)  # the first run of each fills caches
    return float(large_work / small_work / times)
