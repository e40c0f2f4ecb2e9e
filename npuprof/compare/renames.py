"""Detection of renamed presets between two states of a store, by content."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress

from npuprof.model import TYPE_CHECKING, NpuprofError
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from npuprof.compare.sides import WorkTree
    from npuprof.store.gitstore.revisions import Revision

_LIKENESS = 0.5  # the minimum share of common lines for a rename
#: The maximum number of file pairs compared line by line; beyond it, only equal files are renames.
_MOST_COMPARED = 40_000
#: Lines common to many presets: they do not indicate a rename.
_COMMONPLACE = re.compile(
    rb"""\[.*\]|(?:profile\.)?["']?(?:extends|scenario|abstract|cann|products|owner)["']?\s*=.*"""
)


def match_renamed_presets(
    old: Revision | WorkTree, new: Revision | WorkTree, gone: set[str], come: set[str]
) -> dict[str, str]:
    """Return the likely former name of each new preset: equal text first, then most common lines.

    Lines common to many presets do not count: a rename needs matching content.
    """
    if not (gone and come):
        return {}
    before = _count_lines(old, gone)
    after = _count_lines(new, come)
    former = _match_equal_files(before, after)
    # exact matches first: similar files must not take their former names
    taken = set(former.values())
    departed = {was: _strip_commonplace(lines) for was, lines in before.items() if was not in taken}
    arrived = {
        name: _strip_commonplace(lines) for name, lines in after.items() if name not in former
    }
    if len(departed) * len(arrived) > _MOST_COMPARED:
        return former
    candidates = []
    for was, lines in departed.items():
        for name, others in arrived.items():
            total = lines.total() + others.total()
            common = 2 * (lines & others).total() / total if total else 0
            if common >= _LIKENESS:
                # Most common lines first, then presets that only moved to another folder.
                rank = (-common, _last_segment(was) != _last_segment(name))
                candidates.append((rank, was, name))
    for _, was, name in sorted(candidates):
        if name not in former and was not in taken:
            former[name] = was
            taken.add(was)
    return former


def _last_segment(name: str) -> str:
    return name.rpartition("/")[2]


def _match_equal_files(
    before: dict[str, Counter[bytes]], after: dict[str, Counter[bytes]]
) -> dict[str, str]:
    """Return the new names of files with equal lines.

    Equal last segments match first, the rest in order.
    """
    known = group_pairs(
        (frozenset(before[was].items()), was) for was in sorted(before) if before[was]
    )
    former: dict[str, str] = {}
    for same_segment in (True, False):
        for name in sorted(after.keys() - former.keys()):
            candidates = known.get(frozenset(after[name].items()), [])
            for was in candidates:
                if not same_segment or _last_segment(was) == _last_segment(name):
                    candidates.remove(was)  # each former name is used once
                    former[name] = was
                    break
    return former


def _strip_commonplace(lines: Counter[bytes]) -> Counter[bytes]:
    return Counter(
        {line: number for line, number in lines.items() if not _COMMONPLACE.fullmatch(line)}
    )


def _count_lines(side: Revision | WorkTree, names: set[str]) -> dict[str, Counter[bytes]]:
    """Return the line counts of files, without surrounding blanks and empty lines.

    Empty for an unreadable file.
    """
    side.load_texts(names)
    counts: dict[str, Counter[bytes]] = {name: Counter() for name in names}
    for name, lines in counts.items():
        with suppress(NpuprofError):
            lines.update(
                line.strip() for line in side.read_profile_text(name).splitlines() if line.strip()
            )
    return counts
