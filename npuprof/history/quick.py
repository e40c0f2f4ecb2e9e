"""Changes between two texts of a profile, found from the lines that differ.

A long history has thousands of versions of a file, and most of them differ from the next one in a value or two.
Only the plainest differences are judged here: the same keys on the same lines, other scalars of the same kind.
Everything else is for the real parser.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Collection
from itertools import compress, count
from operator import ne
from typing import NamedTuple

from npuprof.document import Document
from npuprof.document.profile import MATCH_KEYS
from npuprof.model import Path
from npuprof.system.patterns import lazy_pattern

#: A plain value on one line.
PlainScalar = bool | int | str
#: A line, from 1, that has another scalar of the same kind in the new text than in the old one, under a key that did not move.
PlainEdit = tuple[int, re.Match[bytes], re.Match[bytes]]

_PLAIN = lazy_pattern(
    rb"""[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*(?:(true|false)|([+-]?(?:0|[1-9][0-9]{0,17}))|"([ !#-\[\]-~]*)")[ \t]*(?:#[\t -~]*)?\r?"""
)
_REMARK = lazy_pattern(rb"[ \t]*(?:#[\t -~]*)?\r?")

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
        """Return what changes for the key from ``old`` to ``new``, or None if only a parser can decide.

        ``new`` must be a valid profile. ``reworked`` are the names of settings whose values some step adds to or
        takes from, so that a change may have consequences elsewhere.
        """
        edits = find_plain_edits(old, new)
        if edits is None or (self._name in new and self._header.search(new)):
            return None  # (where the key is a table of its own, its lines have other names)
        change = UNCHANGED
        for line, was, now in edits:
            key = was[1]
            if key in _DECIDING or key in reworked or (key == self._name and change is not UNCHANGED):
                return None
            if key == self._name:
                change = LineChange(line, _parse_plain_scalar(was), _parse_plain_scalar(now))
        return change


def find_plain_edits(old: bytes, new: bytes) -> list[PlainEdit] | None:
    """Return the statements that differ between two texts, of which one is valid TOML; None if only a parser can decide."""
    olds, news = old.split(b"\n"), new.split(b"\n")
    if len(olds) != len(news) or b"\\" in new or b'"""' in new or b"'''" in new:
        return None
    edits = []
    for number in compress(count(1), map(ne, olds, news)):
        was, now = olds[number - 1], news[number - 1]
        before, after = _PLAIN.fullmatch(was), _PLAIN.fullmatch(now)
        if before is None or after is None:
            if _REMARK.fullmatch(was) and _REMARK.fullmatch(now):
                continue
            return None
        if before.lastindex != after.lastindex or before[1] != after[1] or before.start(1) != after.start(1):
            return None
        edits.append((number, before, after))
    return edits


def derive_document(known: Document, now: bytes, then: bytes) -> Document | None:
    """Return the document of an earlier text of a file from that of a later one, None if only a parser can decide."""
    edits = find_plain_edits(then, now)
    if edits is None:
        return None
    values: dict[Path, PlainScalar] = {}
    for line, was, _ in edits:
        path = known.find_statement(line)
        if not path or path[-1] != was[1].decode():
            return None
        values[path] = _parse_plain_scalar(was)
    return known.derive(then.removeprefix(BOM_UTF8).decode(), values)


def _parse_plain_scalar(match: re.Match[bytes]) -> PlainScalar:
    if match.lastindex == 2:
        return match[2] == b"true"
    return int(match[3]) if match.lastindex == 3 else match[4].decode()
