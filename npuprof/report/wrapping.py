"""Line wrapping: break opportunities, cited lines of files, the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.report.text import measure_width
from npuprof.system import lazy_pattern

#: Characters between which a line may break: Chinese and Japanese. Korean has words.
_FREE = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u9fff\uf900-\ufaff"
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U00020000-\U0003fffd"
)
#: Punctuation that may not begin a line, and that may not end one.
_CLOSING = (
    "\u2014\u2019\u201d\u2026\u3001\u3002\u3009\u300b\u300d\u300f\u3011\u3015\u30fb\u30fc"
    "\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d"
)
_OPENING = "\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\uff08\uff3b\uff5b"
_PIECE = lazy_pattern(
    rf"\s*(?:[{_OPENING}(\[{{]*[{_FREE}][{_CLOSING})\]}}.,;:!?%]*"
    rf"|[{_OPENING}]*(?:(?![{_FREE}{_OPENING}])\S)+|[{_OPENING}]+)"
)
_PART = lazy_pattern(r"[^\s/_.,;:=+-]+[/_.,;:=+-]*|[/_.,;:=+-]+")
_ANSI = lazy_pattern(r"\033\[[0-9;]*m")
#: The prefix of a line to wrap: a label, a sign.
_LABEL = lazy_pattern(r"\s*(?:[a-z]+: +|[A-Za-z][A-Za-z ]{1,14}?  +|[-+~!*] )")
#: Replaces the parts of a cited line that are not shown.
_MORE = "..."
#: The fewest columns of a cited line that are shown.
_LEAST_ROOM = 20
_CITED = lazy_pattern(r"\s*\d* \| ")
_CARET = lazy_pattern(r"(?P<head>\s+\| (?:\033\[[0-9;]*m)?)(?P<blanks> *)(?P<caret>\^.*)")


def split_pieces(text: str) -> list[str]:
    """Return the pieces of a text after which a line may break, each with the blanks before it."""
    return re.findall(r"\s*\S+", text) if text.isascii() else _PIECE.findall(text)


def split_words(text: str) -> list[str]:
    """Return the pieces of a text without blanks."""
    return [piece.lstrip() for piece in split_pieces(text)]


def split_parts(text: str) -> list[str]:
    """Return the pieces of a word that is too long for a line, split after punctuation."""
    return [part for piece in split_words(text) for part in _PART.findall(piece)]


def find_width() -> int:
    """Return the width of the terminal in columns, ``$COLUMNS`` first."""
    import shutil

    return shutil.get_terminal_size().columns


def wrap_lines(text: str, width: int) -> str:
    """Return a text wrapped to ``width`` columns if words allow that, later lines indented.

    A cited line of a file is cut, as its columns are those of the file.
    """
    lines = text.split("\n")
    wrapped = []
    for index, line in enumerate(lines):
        plain = _ANSI.sub("", line)
        if measure_width(plain) <= width:
            wrapped.append(line)
        elif not _CITED.match(plain):
            wrapped += _wrap_line(line, plain, width)
        elif index + 1 < len(lines):
            shown, lines[index + 1] = fit_excerpt(line, lines[index + 1], width)
            wrapped.append(shown)
        else:
            wrapped.append(line)
    return "\n".join(wrapped)


def _wrap_line(line: str, plain: str, width: int) -> list[str]:
    label = _LABEL.match(plain)
    if label:
        indent = measure_width(label[0])
    else:
        indent = len(plain) - len(plain.lstrip())
        if indent != 4:  # a line with four blanks continues another one already
            indent += 4
    indent = min(indent, width // 2)
    lines = []
    current = ""
    used = 0
    for word in split_pieces(line):
        size = measure_width(_ANSI.sub("", word))
        if current and used + size > width:
            lines.append(current)
            word = word.lstrip()
            current = " " * indent + word
            used = indent + measure_width(_ANSI.sub("", word))
        else:
            current, used = current + word, used + size
    return [*lines, current]


def fit_excerpt(line: str, below: str, width: int) -> tuple[str, str]:
    """Return a cited line and the one below it cut to a width, the caret still below its column.

    Both are as they were if the line below has no caret, or characters are not one column wide.
    """
    head = _CITED.match(line)
    pointer = _CARET.fullmatch(below)
    if head is None or pointer is None or not line.isascii():
        return line, below
    blanks = pointer["blanks"]
    text = line[head.end() :]
    room = max(width - head.end(), _LEAST_ROOM)
    # the first shown column: the start of the line if the caret fits, else the caret is centred
    first = 0 if len(blanks) + 1 < room - len(_MORE) else len(blanks) - room // 2
    shown = text[first : first + room]
    if first:
        shown = _MORE + shown[len(_MORE) :]
    if first + room < len(text):
        shown = shown[: -len(_MORE)] + _MORE
    return head[0] + shown, pointer["head"] + blanks[first:] + pointer["caret"]


def fit_columns(rows: Sequence[Sequence[str]], room: int, fixed: int) -> list[int]:
    """Return the widths of columns that have so much room together.

    All but the first ``fixed`` shrink if it is too little.

    No word is broken if there is room for all of them, below the first row if possible, and no part
    of a word if there is room for those.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max((measure_width(cell) for cell in column), default=0) for column in columns]
    fixed_widths = widths[:fixed]
    full_widths = widths[fixed:]
    remaining = room - sum(fixed_widths)
    if sum(full_widths) <= remaining:
        return widths
    least = _find_least_widths(columns[fixed:], remaining)
    if least is None:
        share = max(remaining // max(len(full_widths), 1), 1)
        least = [min(width, share) for width in full_widths]
    return [*fixed_widths, *_share_room(remaining, least, full_widths)]


def _find_least_widths(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Return the widths of the widest words, or else parts of words; None if they do not fit."""
    for split_first, split in (
        (split_words, split_words),
        (split_parts, split_words),
        (split_parts, split_parts),
    ):
        least = []
        for first, *cells in columns:
            pieces = split_first(first)
            for cell in cells:
                pieces += split(cell)
            least.append(max(map(measure_width, pieces), default=1))
        if sum(least) <= room:
            return least
    return None


def _share_room(room: int, least: Sequence[int], full: Sequence[int]) -> list[int]:
    """Return the width of each column: its minimum, and a share of the rest."""
    spare = max(room - sum(least), 0)
    missing = sum(full) - sum(least)
    if not missing:
        return list(least)
    return [low + spare * (high - low) // missing for low, high in zip(least, full, strict=True)]


def wrap_cell(text: str, width: int) -> list[str]:
    """Return the lines of a cell: broken between words, else after punctuation, else anywhere."""
    if measure_width(text) <= width:
        return [text]
    lines = []
    current = ""
    for word in text.split(" "):
        gap = " " if current else ""
        for part in [word] if measure_width(word) <= width else split_parts(word):
            if current and measure_width(current) + len(gap) + measure_width(part) > width:
                lines.append(current)
                current = ""
                gap = ""
            current = f"{current}{gap}{part}"
            gap = ""
            # one character stays, even if it is wider than the column
            while len(current) > 1 and measure_width(current) > width:
                cut = len(current) - 1
                while cut > 1 and measure_width(current[:cut]) > width:
                    cut -= 1
                lines.append(current[:cut])
                current = current[cut:]
    return [*lines, current]
