"""Flags of ATC that count what another one names: shapes with open dimensions, nodes."""

from __future__ import annotations

from functools import cache

from npuprof import catalog
from npuprof.catalog import Flag
from npuprof.checks.view import Fault

_DIMENSIONS = {1: "the first dimension", 2: "height and width"}


@cache
def list_sized_pairs() -> tuple[tuple[str, str], ...]:
    """Return the flags that count something, each with the flag that names it."""
    flags = [flag for name in catalog.record_names("atc") if (flag := catalog.find_flag(name))]
    return tuple((flag.name, other) for flag in flags for other in (*flag.filled, flag.one_per) if other)


def find_size_fault(flag: Flag, text: str, other: Flag, named: str) -> Fault | None:
    """Return what is wrong with the texts of two flags, of which the first counts what the second names."""
    count = flag.filled.get(other.name)
    if count is not None:
        where = _DIMENSIONS[count]
        if "~" in named or _is_filled(named, count):
            return None
        what = f"--{flag.name} fills {where}, and --{other.name} has no -1 there, or one elsewhere"
        return Fault("NP382", what, "ATC puts each size where a -1 stands.", f"write -1 for {where} in --{other.name}, and nowhere else")
    parts = [part for part in named.split(other.separator) if part]
    count = len(text.split(flag.separator))
    if count == len(parts):
        return None
    why = "There is one for each, in the same order."
    return Fault("NP912", f"--{flag.name} is for {count}, and --{other.name} names {len(parts)}", why, f"write {len(parts)} of them")


def _is_filled(shapes: str, count: int) -> bool:
    """Return whether so many dimensions of shapes are open, the first where it is one, and no others."""
    opened = [
        [place for place, size in enumerate(sizes) if size == "-1"]
        for shape in shapes.split(";")
        if "-1" in (sizes := [size.strip() for size in shape.rpartition(":")[2].split(",")])
    ]
    return bool(opened) and all(places == [0] if count == 1 else len(places) == count for places in opened)
