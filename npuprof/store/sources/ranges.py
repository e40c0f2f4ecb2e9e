"""Ranges of versions, as ``rev`` of a source and ``requires`` name them: ``^2.1``, ``~2.1.3``, ``>=2.0,<3``, ``2``, ``*``."""

from __future__ import annotations

import re
from typing import NamedTuple

from npuprof.store.versions import VersionText, parse_version_text
from npuprof.system.patterns import lazy_pattern

_BOUND = lazy_pattern(r"\s*(\^|~|>=|<=|==|=|>|<|)\s*v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]+))?\s*", re.ASCII)


class Bound(NamedTuple):
    """One condition of a range: an operator, and the parts of the version that are written."""

    operator: str
    parts: tuple[int, ...]
    pre: str = ""

    @property
    def text(self) -> VersionText:
        """The version with what is not written as zeros."""
        major, minor, patch = (*self.parts, 0, 0)[:3]
        return VersionText((major, minor, patch), self.pre)

    def list_turns(self) -> list[VersionText]:
        """Return versions at and right after which it may begin or cease to hold."""
        ends = [self.text.number, self._end().number]
        return [VersionText(number) for major, minor, patch in ends for number in ((major, minor, patch), (major, minor, patch + 1))]

    def _end(self) -> VersionText:
        """Return the first version that the bound no longer means, where it means a span."""
        major, minor, patch = self.text.number
        count = len(self.parts)
        if self.operator == "^":
            if major or count == 1:
                return VersionText((major + 1, 0, 0))
            return VersionText((0, minor + 1, 0)) if minor or count == 2 else VersionText((0, 0, patch + 1))
        count = min(count, 2) if self.operator == "~" else count
        return VersionText((major + 1, 0, 0)) if count == 1 else VersionText((major, minor + 1, 0))

    def accepts(self, version: VersionText) -> bool:
        """Return whether a version meets the condition."""
        order, here = version.order, self.text.order
        is_whole = len(self.parts) == 3
        if self.operator in ("^", "~") or (self.operator in ("", "=", "==") and not is_whole):
            return here <= order < self._end().order
        if self.operator in (">", "<=") and not is_whole:  # beyond, or up to, all that begin like it
            return (order >= self._end().order) == (self.operator == ">")
        return {
            "": order == here, "=": order == here, "==": order == here,
            ">=": order >= here, "<=": order <= here, ">": order > here, "<": order < here,
        }[self.operator]  # fmt: skip


class VersionRange(NamedTuple):
    """A range of versions: all of its bounds hold; without any, every version is meant."""

    bounds: tuple[Bound, ...] = ()

    def accepts(self, version: VersionText) -> bool:
        """Return whether a version is meant. A pre-release only is where a bound names one of the same number."""
        if version.pre and not any(bound.pre and bound.text.number == version.number for bound in self.bounds):
            return False
        return all(bound.accepts(version) for bound in self.bounds)

    @property
    def is_fixed(self) -> bool:
        """Whether one whole number is all that it means."""
        return any(bound.operator in ("", "=", "==") and len(bound.parts) == 3 for bound in self.bounds)


def find_excluded_version(before: VersionRange, after: VersionRange) -> VersionText | None:
    """Return a version that a range means and another does not, None where there is none; pre-releases aside."""
    turns = [VersionText((0, 0, 0)), *(turn for bound in (*before.bounds, *after.bounds) for turn in bound.list_turns())]
    return next((version for version in turns if before.accepts(version) and not after.accepts(version)), None)


def parse_version_range(text: str) -> VersionRange | None:
    """Return the range that a text writes; None where it writes none, and can only be a revision."""
    if text.strip() == "*":
        return VersionRange()
    bounds: list[Bound] = []
    for part in text.split(","):
        match = _BOUND.fullmatch(part)
        if match is None:
            return None
        parts = tuple(int(number) for number in match.groups()[1:4] if number is not None)
        written = f"{'.'.join(map(str, (*parts, 0, 0)[:3]))}-{match[5]}"
        if match[5] and (len(parts) < 3 or parse_version_text(written) is None):
            return None
        bounds.append(Bound(match[1], parts, match[5] or ""))
    return VersionRange(tuple(bounds))
