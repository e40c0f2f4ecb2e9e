"""A line of a file with a caret below it: of a line that is too wide, the part around the caret."""

from __future__ import annotations

from npuprof.report.text import measure_width
from npuprof.system.patterns import lazy_pattern

#: What stands for the parts of a line that are not shown.
_MORE = "..."
#: The fewest columns of a line that are worth to be shown.
_LEAST_ROOM = 20
_CITED = lazy_pattern(r"\s*\d* \| ")
_CARET = lazy_pattern(r"(\s+\| (?:\033\[[0-9;]*m)?)( *)(\^.*)")


def is_cited_line(plain: str) -> bool:
    """Return whether a line cites a file, or stands below one that does: its columns are those of the file."""
    return _CITED.match(plain) is not None


def fit_excerpt(line: str, below: str, width: int) -> tuple[str, str]:
    """Return a cited line and the one below it as so many columns hold them, the caret still under what it points at.

    Both are as they were where the line below has no caret.
    """
    head, caret = _CITED.match(line), _CARET.fullmatch(below)
    if head is None or caret is None:
        return line, below
    before, blanks, sign = caret.groups()
    room = max(width - head.end(), _LEAST_ROOM)
    first = 0 if len(blanks) + 1 < room - len(_MORE) else len(blanks) - room // 2
    opening = _MORE if first else ""
    text, skipped = _drop_columns(line[head.end() :], first + len(opening))
    if measure_width(text) > room - len(opening):
        text = _take_columns(text, room - len(opening) - len(_MORE)) + _MORE
    skipped -= len(opening)
    return head[0] + opening + text, before + blanks[skipped:] + sign


def _drop_columns(text: str, columns: int) -> tuple[str, int]:
    """Return a text without its first columns, and how many they were: no character is cut in two."""
    used = 0
    for place, char in enumerate(text):
        if used >= columns and measure_width(char):
            return text[place:], used
        used += measure_width(char)
    return "", used


def _take_columns(text: str, columns: int) -> str:
    """Return the beginning of a text that so many columns hold."""
    used = 0
    for place, char in enumerate(text):
        used += measure_width(char)
        if used > columns:
            return text[:place]
    return text
