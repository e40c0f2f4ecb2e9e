"""Whether going from one text of a profile to another can change one setting, told from the lines that differ.

A long history holds thousands of versions of a file, and most of them have nothing to do with the value that is
looked for. Only the plainest differences are judged here: the same keys on the same lines, other scalars of the
same kind. Everything else is for the real parser.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import compress, count
from operator import ne
from typing import NamedTuple

from npuprof.document.profile import MATCH_KEYS

#: A value that stands plainly on one line.
PlainScalar = bool | int | str

_PLAIN = re.compile(
    rb"""[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*(?:(true|false)|([+-]?(?:0|[1-9][0-9]{0,17}))|"([ !#-\[\]-~]*)")[ \t]*(?:#[\t -~]*)?\r?"""
)
_REMARK = re.compile(rb"[ \t]*(?:#[\t -~]*)?\r?")

#: Keys that decide more than their own value: which overrides take part.
_DECIDING = frozenset(key.encode() for key in MATCH_KEYS)


class LineChange(NamedTuple):
    """What two texts that differ plainly say of one key: nothing (``line`` is 0), or another scalar at the same place of a line."""

    line: int = 0
    old: PlainScalar = ""
    new: PlainScalar = ""


UNCHANGED = LineChange()


class KeyLines:
    """Judges lines for one key, by its plain name."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._header = re.compile(rb"^[ \t]*\[[^\n]*" + re.escape(self._name), re.MULTILINE)

    def compare(self, old: bytes, new: bytes, reworked: Collection[bytes]) -> LineChange | None:
        """Return what changes for the key from ``old`` to ``new``, or None where only a parser can tell.

        ``new`` must be a valid profile. ``reworked`` are the names of settings whose values some step adds to or
        takes from, so that a change may have consequences elsewhere.
        """
        left, right = old.split(b"\n"), new.split(b"\n")
        if len(left) != len(right) or b"\\" in new or b'"""' in new or b"'''" in new:
            return None
        if self._name in new and self._header.search(new):
            return None  # the key is a table of its own: its lines have other names
        found = UNCHANGED
        for number in compress(count(1), map(ne, left, right)):
            was, now = left[number - 1], right[number - 1]
            if _REMARK.fullmatch(was) and _REMARK.fullmatch(now):
                continue
            before, after = _PLAIN.fullmatch(was), _PLAIN.fullmatch(now)
            if before is None or after is None or before.lastindex != after.lastindex:
                return None
            key = before[1]
            if key != after[1] or key in _DECIDING or key in reworked:
                return None
            if key == self._name:
                if found is not UNCHANGED or before.start(1) != after.start(1):
                    return None
                found = LineChange(number, _parse_plain_scalar(before), _parse_plain_scalar(after))
        return found


def _parse_plain_scalar(match: re.Match[bytes]) -> PlainScalar:
    if match.lastindex == 2:
        return match[2] == b"true"
    return int(match[3]) if match.lastindex == 3 else match[4].decode()
