"""Findings beside a baseline: which are new, what of it is gone, and which files have other names now."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from npuprof.catalog import build_finding
from npuprof.commands.parts.baselines import NAME, Baseline, Mark, mark_finding
from npuprof.model import Finding, Place

#: How many of the files that could be meant are compared; all have the one mark that is rarest.
_CLOSEST = 16

#: A finding whatever the moved files are called: its code, its key, its message.
_Shape = tuple[str, str, str]


class Compared(NamedTuple):
    """The findings that a baseline has not, what it has as it is called now, and what of it is gone.

    ``moved`` are files that are gone, and those that have their findings now.
    """

    new: list[Finding]
    known: Counter[Mark]
    gone: Counter[Mark]
    moved: dict[str, str]


def compare_with_baseline(findings: Sequence[Finding], baseline: Baseline, is_judged: Callable[[Mark], bool]) -> Compared:
    """Return what is new among findings, what is known, and what is gone of those marks that were judged.

    A file that is there no longer is taken for the one that has its findings now, so that a rename makes nothing new.
    """
    left = Counter(baseline.known)
    unknown: list[tuple[Mark, Finding]] = []
    for finding in findings:
        mark = mark_finding(finding, baseline.file)
        if left[mark]:
            left[mark] -= 1
        else:
            unknown.append((mark, finding))
    left = +left
    known = Counter(baseline.known)
    moved: dict[str, str] = {}
    new = [finding for _, finding in unknown]
    if unknown and left:
        moved = _find_moved_files([mark for mark, _ in unknown], left, baseline)
        former = _match_moved_marks([mark for mark, _ in unknown], left, moved)
        new = [finding for (_, finding), old in zip(unknown, former, strict=True) if old is None]
        for (mark, _), old in zip(unknown, former, strict=True):
            if old is not None:
                left[old] -= 1
                known.subtract([old])
                known[mark] += 1
    gone = Counter({mark: count for mark, count in left.items() if count and is_judged(mark)})
    return Compared(new, +known - gone, gone, moved)


def _find_moved_files(unknown: Sequence[Mark], left: Counter[Mark], baseline: Baseline) -> dict[str, str]:
    """Return which files of a baseline are gone, and which other ones have their findings now: each at most one.

    ``unknown`` is what the baseline has not, ``left`` what of it was not found. A file that the baseline names is none of those.
    """
    folder = os.path.dirname(os.path.abspath(baseline.file))
    named = {mark.path for mark in baseline.known}
    missing = {path for path in {mark.path for mark in left} if path and not os.path.lexists(os.path.join(folder, path))}
    came = {mark.path for mark in unknown if mark.path} - named
    if not (missing and came):
        return {}
    names = {name for path in (*missing, *came) for name in _list_names(path)}
    before = _collect_shapes((mark for mark in left.elements() if mark.path in missing), names)
    after = _collect_shapes((mark for mark in unknown if mark.path in came), names)
    moved = _pair_equal(before, after)
    rest = {path: shapes for path, shapes in before.items() if path not in moved}
    taken = set(moved.values())
    return moved | _pair_alike(rest, {path: shapes for path, shapes in after.items() if path not in taken})


def _match_moved_marks(unknown: Sequence[Mark], left: Counter[Mark], moved: dict[str, str]) -> list[Mark | None]:
    """Return for each mark what it was called before files were moved, None where it is new; each of those that are left counts once."""
    if not moved:
        return [None] * len(unknown)
    names = {name for pair in moved.items() for path in pair for name in _list_names(path)}
    waiting: dict[tuple[str, _Shape], list[Mark]] = {}
    for mark in left.elements():
        waiting.setdefault((moved.get(mark.path, mark.path), _read_shape(mark, names)), []).append(mark)
    found: list[Mark | None] = []
    for mark in unknown:
        former = waiting.get((mark.path, _read_shape(mark, names)))
        found.append(former.pop() if former else None)
    return found


def _collect_shapes(marks: Iterable[Mark], names: set[str]) -> dict[str, Counter[_Shape]]:
    found: dict[str, Counter[_Shape]] = {}
    for mark in marks:
        found.setdefault(mark.path, Counter())[_read_shape(mark, names)] += 1
    return found


def _read_shape(mark: Mark, names: set[str]) -> _Shape:
    return mark.code, mark.key, NAME.sub(lambda match: "\0" if match[0] in names else match[0], mark.message)


def _list_names(path: str) -> list[str]:
    """Return what a file may be called in messages: by its path, and as a preset of a store in any of its folders."""
    parts = path.removesuffix(".toml").split("/")
    return [path, *("/".join(parts[first:]) for first in range(len(parts)))]


def _pair_equal(before: dict[str, Counter[_Shape]], after: dict[str, Counter[_Shape]]) -> dict[str, str]:
    """Return files that have the same findings, those first that are called alike in their folders."""
    same: dict[frozenset[tuple[_Shape, int]], tuple[list[str], list[str]]] = {}
    for side, files in enumerate((before, after)):
        for path in sorted(files):
            same.setdefault(frozenset(files[path].items()), ([], []))[side].append(path)
    moved: dict[str, str] = {}
    for olds, news in same.values():
        ends: dict[str, list[str]] = {}
        for new in news:
            ends.setdefault(os.path.basename(new), []).append(new)
        for old in olds:
            if alike := ends.get(os.path.basename(old)):
                moved[old] = alike.pop(0)
        taken = {moved[old] for old in olds if old in moved}
        others = (new for new in news if new not in taken)
        moved |= dict(zip((old for old in olds if old not in moved), others, strict=False))
    return moved


def _pair_alike(before: dict[str, Counter[_Shape]], after: dict[str, Counter[_Shape]]) -> dict[str, str]:
    """Return files that share findings, since what was moved was edited too: each with the one that it shares most with."""
    holders: dict[_Shape, dict[str, None]] = {}
    for old in sorted(before):
        for shape in before[old]:
            holders.setdefault(shape, {})[old] = None
    moved: dict[str, str] = {}
    for new in sorted(after):
        shared = sorted((len(held), shape) for shape in after[new] if (held := holders.get(shape)))
        if shared:
            near = list(islice(holders[shared[0][1]], _CLOSEST))
            best = max(near, key=lambda old: ((before[old] & after[new]).total(), os.path.basename(old) == os.path.basename(new)))
            moved[best] = new
            for shape in before[best]:
                del holders[shape][best]
    return moved


def build_gone_findings(gone: Counter[Mark], file: str) -> list[Finding]:
    """Return a note for everything in a baseline that is found no longer."""
    why, hint = "The baseline would hide it, should it come back.", f"take it out: --baseline {file} --write-baseline"
    return [
        build_finding(
            "NP707", f"{mark.path}: {mark.code} is in the baseline, and found no longer: {mark.message}", why, hint, where=Place(file)
        )
        for mark in sorted(gone)
    ]
