"""Environment variables that decide what is executed or loaded, and so are power over a process."""

from __future__ import annotations

from functools import cache

from npuprof.catalog import load_built_part


@cache
def find_power(name: str) -> str:
    """Return what a variable decides, an empty text for one that decides nothing of the kind."""
    exact, beginnings = load_built_part("powers")
    found: str = exact.get(name, "")
    return found or next((does for beginning, does in beginnings.items() if name.startswith(beginning)), "")
