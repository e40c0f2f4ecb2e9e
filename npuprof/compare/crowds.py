"""More names than there is room for: as many as fit, all others counted by folder, and room that lists share fairly."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare.spans import count_fitting, format_listed_span, join_fitting, measure_listed

#: Characters of the words between names and folders: "and 1,800 more: ".
_WORDS = 24


def share_room(wanted: Sequence[int], room: int) -> list[int]:
    """Return how much of a room each of several gets: all that it wants where that is little, else as much as the others."""
    shares = [0] * len(wanted)
    for place, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[index] = min(wanted[index], max(room, 0) // (len(wanted) - place))
        room -= shares[index]
    return shares


def format_crowd(names: Sequence[str], room: int) -> str:
    """Return names as code spans; where not all have room, as many as have, and the others by folder: `` `jobs/*` (412)``."""
    shown = list(map(format_listed_span, names))
    if measure_listed(shown) <= room:
        return ", ".join(shown)
    folders = _count_folders(names, room // 2)
    fitting = count_fitting(shown, room - min(measure_listed(folders), room // 2) - _WORDS)
    if not fitting:
        return join_fitting(_count_folders(names, room), room, "folder")
    counted = join_fitting(_count_folders(names[fitting:], room // 2), room // 2, "folder")
    return f"{', '.join(shown[:fitting])} and {len(names) - fitting} more: {counted}"


def _count_folders(names: Sequence[str], room: int) -> list[str]:
    """Return the folders of names, each with how many it has: the deepest that have room together, or the ones on top."""
    folders = [name.split("/")[:-1] for name in names]
    counted: list[str] = []
    for depth in range(max(map(len, folders), default=0), 0, -1):
        numbers: dict[str, int] = {}
        for parts in folders:
            glob = "/".join([*parts[:depth], "*"])
            numbers[glob] = numbers.get(glob, 0) + 1
        counted = [f"{format_listed_span(glob)} ({number})" for glob, number in numbers.items()]
        if measure_listed(counted) <= room:
            break
    return counted or [f"{format_listed_span('*')} ({len(names)})"]
