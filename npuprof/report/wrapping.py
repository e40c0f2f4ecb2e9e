"""Where a line may end: between words, and between the characters of scripts that are written without blanks."""

from __future__ import annotations

import re

from npuprof.report.text import measure_width
from npuprof.system.patterns import lazy_pattern

#: Characters between any two of which a line may end: Chinese and Japanese ones. Korean has words.
_FREE = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\u3105-\u312f\u3190-\u31ff"
    "\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U00020000-\U0003fffd"
)
#: Marks that begin no line, and those that end none.
_CLOSING = (
    "\u2014\u2019\u201d\u2026\u3001\u3002\u3009\u300b\u300d\u300f\u3011\u3015\u30fb\u30fc"
    "\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d"
)
_OPENING = "\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\uff08\uff3b\uff5b"
_PIECE = lazy_pattern(
    rf"\s*(?:[{_OPENING}(\[{{]*[{_FREE}][{_CLOSING})\]}}.,;:!?%]*|[{_OPENING}]*(?:(?![{_FREE}{_OPENING}])\S)+|[{_OPENING}]+)"
)
_PART = lazy_pattern(r"[^\s/_.,;:=+-]+[/_.,;:=+-]*|[/_.,;:=+-]+")


def split_pieces(text: str) -> list[str]:
    """Return the pieces of a text that a line may end behind, each with the blanks before it."""
    return re.findall(r"\s*\S+", text) if text.isascii() else _PIECE.findall(text)


def split_words(text: str) -> list[str]:
    """Return the pieces of a text without blanks."""
    return text.split() if text.isascii() else [piece.lstrip() for piece in _PIECE.findall(text)]


def split_parts(text: str) -> list[str]:
    """Return the pieces of a word that is too long for a line: the parts of names and values, ended by a sign."""
    return [part for piece in split_words(text) for part in _PART.findall(piece)]


def wrap_words(text: str, width: int, indent: str = "") -> list[str]:
    """Return prose as lines of at most so many columns, each indented, where its words allow that; blanks count as one."""
    lines: list[str] = []
    current, used = indent, measure_width(indent)
    for piece in split_pieces(" ".join(text.split())):
        size = measure_width(piece)
        if used + size > width and current != indent:
            lines.append(current)
            piece = piece.lstrip()
            current, used, size = indent, measure_width(indent), measure_width(piece)
        current, used = current + piece, used + size
    return [*lines, current] if current != indent else lines
