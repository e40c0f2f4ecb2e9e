"""The comments of TOML texts as a multiset, and which of them a merge has to keep."""

from __future__ import annotations

from collections import Counter

from npuprof.system.patterns import lazy_pattern

_COMMENT = lazy_pattern(
    r'''"""(?:[^\\]|\\[\s\S])*?"{3,5}|\'\'\'[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|(#[^\n]*)''',
)


def collect_comments(text: str) -> Counter[str]:
    """Return the comments of valid TOML, or of a part of it that starts and ends outside a string, each as often as it stands there."""
    return Counter(match[1].rstrip() for match in _COMMENT.finditer(text) if match[1] and match[1].strip("# \t\r"))


def count_needed_comments(base: str, ours: str, theirs: str) -> Counter[str]:
    """Return the comments that a merge has to keep: those of either side that the other one did not take away."""
    below, mine, rival = (collect_comments(text) for text in (base, ours, theirs))
    needed: Counter[str] = Counter()
    for comment in mine | rival:
        before, here, there = below[comment], mine[comment], rival[comment]
        needed[comment] = max(here, there) if min(here, there) >= before else max(0, here + there - before)
    return +needed


def count_allowed_comments(base: str, ours: str, theirs: str) -> Counter[str]:
    """Return how often a comment may stand in a merge: as often as both sides leave it, and what each of them added."""
    below, mine, rival = (collect_comments(text) for text in (base, ours, theirs))
    return Counter({comment: max(0, mine[comment] + rival[comment] - below[comment]) for comment in below | mine | rival})
