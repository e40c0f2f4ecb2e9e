"""Whether going from one text of a profile to another can change one setting, told from the lines that differ.

A long history holds thousands of versions of a file, and most of them have nothing to do with the value that is
looked for. Only the plainest differences are judged here: the same keys on the same lines, other scalars of the
same kind. Everything else is for the real parser.
"""

from __future__ import annotations

import re
from itertools import compress, count
from operator import ne
from typing import Any

from npuprof.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_PLAIN = re.compile(
    rb"""[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*(?:(true|false)|([+-]?(?:0|[1-9][0-9]{0,17}))|"([ !#-\[\]-~]*)")[ \t]*(?:#[\t -~]*)?\r?"""
)
_REMARK = re.compile(rb"[ \t]*(?:#[\t -~]*)?\r?")

#: Keys that decide more than their own value.
STRUCTURAL = frozenset(b"extends scenario unset locked match product cann target options env estimator atc append override profile".split())


class Difference(Record):
    """What two texts that differ plainly say of one key: nothing (``line`` is 0), or another scalar on a line."""

    line: int = 0
    old: Any = None
    new: Any = None


NO_DIFFERENCE = Difference()


def compile_header_pattern(name: bytes) -> re.Pattern[bytes]:
    """Return what finds a table header that names a key."""
    return re.compile(rb"^[ \t]*\[[^\n]*" + re.escape(name), re.MULTILINE)


def compare_key_lines(old: bytes, new: bytes, name: bytes, header: re.Pattern[bytes], apart: Collection[bytes]) -> Difference | None:
    """Return what changes for a key called ``name`` from ``old`` to ``new``, or None where only a parser can tell.

    ``new`` must be a valid profile; ``header`` is ``headers(name)``. ``apart`` are more keys whose change may have consequences elsewhere.
    """
    left, right = old.split(b"\n"), new.split(b"\n")
    if len(left) != len(right) or b"\\" in new or b'"""' in new or b"'''" in new:
        return None
    if name in new and header.search(new):
        return None  # the key is a table of its own: its lines have other names
    found = NO_DIFFERENCE
    for number in compress(count(1), map(ne, left, right)):
        was, now = left[number - 1], right[number - 1]
        if _REMARK.fullmatch(was) and _REMARK.fullmatch(now):
            continue
        before, after = _PLAIN.fullmatch(was), _PLAIN.fullmatch(now)
        if before is None or after is None or before.lastindex != after.lastindex:
            return None
        key = before[1]
        if key != after[1] or key in STRUCTURAL or key in apart:
            return None
        if key == name:
            if found is not NO_DIFFERENCE:
                return None
            found = Difference(number, _parse_plain_scalar(before), _parse_plain_scalar(after))
    return found


def _parse_plain_scalar(match: re.Match[bytes]) -> Any:
    if match.lastindex == 2:
        return match[2] == b"true"
    return int(match[3]) if match.lastindex == 3 else match[4].decode()
