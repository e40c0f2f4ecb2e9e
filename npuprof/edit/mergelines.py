"""Three-way merge of lines that are comments for the most part: what one side did is taken, what both wrote anew stands in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npuprof.edit.sequences import find_differing_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: A run of the base that a side changed, what it became, and whether theirs did it.
    Change = tuple[int, int, list[str], bool]


def merge_lines(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the merged lines as ours would have them, and as theirs would: they differ where both changed one place differently."""
    base = _add_common_lines(base, ours, theirs)
    mine: list[str] = []
    rival: list[str] = []
    done = 0
    for group in _group_changes(base, ours, theirs):
        first, last = min(change[0] for change in group), max(change[1] for change in group)
        both = [_apply_changes(base, first, last, [change for change in group if change[3] is side]) for side in (False, True)]
        if first == last:
            both = [[*both[0], *(line for line in both[1] if not line.strip() or line not in both[0])]] * 2
        elif not any(change[2] for change in group) or len({change[3] for change in group}) == 1:
            both = [_apply_changes(base, first, last, group)] * 2
        mine += [*base[done:first], *both[0]]
        rival += [*base[done:first], *both[1]]
        done = last
    return [*mine, *base[done:]], [*rival, *base[done:]]


def _add_common_lines(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Sequence[str]:
    """Return the base with what both sides have and it has not, so that no line comes in twice, at two places."""
    common: list[str] = []
    done = 0
    for first, last, _, _ in find_differing_runs(ours, theirs):
        common += ours[done:first]
        done = last
    common += ours[done:]
    lines: list[str] = []
    done = 0
    for first, last, start, end in find_differing_runs(base, common):
        lines += [*base[done:first], *(line for line in common[start:end] if line.strip()), *base[first:last]]
        done = last
    return [*lines, *base[done:]]


def _group_changes(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[list[Change]]:
    """Yield the changes of both sides in order, those together that meet."""
    changes: list[Change] = []
    for side, lines in enumerate((ours, theirs)):
        changes += [(first, last, list(lines[start:end]), bool(side)) for first, last, start, end in find_differing_runs(base, lines)]
    group: list[Change] = []
    for change in sorted(changes, key=lambda change: change[:2]):
        if group and not _do_changes_meet(group, change):
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _do_changes_meet(group: list[Change], change: Change) -> bool:
    """Return whether a change touches those before it; what is only put before or behind a place that changed does not."""
    first, last = group[0][0], max(member[1] for member in group)
    if change[0] == change[1] or first == last:
        return change[0] < last or (change[0] == last == first == change[1])
    return change[0] <= last


def _apply_changes(base: Sequence[str], first: int, last: int, changes: list[Change]) -> list[str]:
    """Return a run of the base with changes made."""
    found: list[str] = []
    for start, end, lines, _ in sorted(changes, key=lambda change: change[:2]):
        found += [*base[first:start], *lines]
        first = max(first, end)
    return [*found, *base[first:last]]
