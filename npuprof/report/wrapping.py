"""Line wrapping: break opportunities, cited lines of files, the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.report.text import measure_width
from npuprof.system import lazy_pattern

#: Characters between which a line may break: Chinese and Japanese. Korean has words.
_FREE = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u9fff\uf900-\ufaff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U00020000-\U0003fffd"
#: Punctuation that may not begin a line, and that may not end one.
_CLOSING = (
    "\u2014\u2019\u201d\u2026\u3001\u3002\u3009\u300b\u300d\u300f\u3011\u3015\u30fb\u30fc"
    "\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d"
)
_OPENING = "\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\uff08\uff3b\uff5b"
_PIECE = lazy_pattern(
    rf"\s*(?:[{_OPENING}(\[{{]*[{_FREE}][{_CLOSING})\]}}.,;:!?%]*|[{_OPENING}]*(?:(?![{_FREE}{_OPENING}])\S)+|[{_OPENING}]+)"
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
_CARET = lazy_pattern(r"(\s+\| (?:\033\[[0-9;]*m)?)( *)(\^.*)")


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
    """Return a text whose lines are at most ``width`` columns wide where words allow that, those
    that go on indented.
    """
    lines = text.split("\n")
    wrapped: list[str] = []
    for place, line in enumerate(lines):
        plain = _ANSI.sub("", line)
        if measure_width(plain) <= width:
            wrapped.append(line)
        elif not _CITED.match(plain):  # the columns of a cited line are those of its file
            wrapped += _wrap_line(line, plain, width)
        elif place + 1 < len(lines):
            line, lines[place + 1] = fit_excerpt(line, lines[place + 1], width)
            wrapped.append(line)
        else:
            wrapped.append(line)
    return "\n".join(wrapped)


def _wrap_line(line: str, plain: str, width: int) -> list[str]:
    label = _LABEL.match(plain)
    own = len(plain) - len(plain.lstrip())
    indent = measure_width(label[0]) if label else own if own == 4 else own + 4
    indent = min(indent, width // 2)
    lines, current, used = [], "", 0
    for word in split_pieces(line):
        size = measure_width(_ANSI.sub("", word))
        if current and used + size > width:
            lines.append(current)
            word = word.lstrip()
            current, used = " " * indent + word, indent + measure_width(_ANSI.sub("", word))
        else:
            current, used = current + word, used + size
    return [*lines, current]


def fit_excerpt(line: str, below: str, width: int) -> tuple[str, str]:
    """Return a cited line and the one below it as so many columns hold them, the caret still under
    what it points at.

    Both are as they were if the line below has no caret, or characters are not one column wide.
    """
    head, caret = _CITED.match(line), _CARET.fullmatch(below)
    if head is None or caret is None or not line.isascii():
        return line, below
    before, blanks, sign = caret.groups()
    text, room = line[head.end() :], max(width - head.end(), _LEAST_ROOM)
    first = 0 if len(blanks) + 1 < room - len(_MORE) else len(blanks) - room // 2
    shown = (_MORE + text[first + len(_MORE) :] if first else text)[:room]
    shown = shown[: -len(_MORE)] + _MORE if first + room < len(text) else shown
    return head[0] + shown, before + blanks[first:] + sign


def fit_columns(rows: Sequence[Sequence[str]], room: int, fixed: int) -> list[int]:
    """Return the widths of columns that have so much room together.

    All but the first ``fixed`` shrink if it is too little.

    No word is broken if there is room for all of them, below the first row if possible, and no part
    of a word if there is room for those.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max((measure_width(cell) for cell in column), default=0) for column in columns]
    left, wanted = room - sum(widths[:fixed]), widths[fixed:]
    if sum(wanted) <= left:
        return widths
    for split_first, split in (
        (split_words, split_words),
        (split_parts, split_words),
        (split_parts, split_parts),
    ):
        pieces = [
            [*split_first(first), *(piece for cell in cells for piece in split(cell))]
            for first, *cells in columns[fixed:]
        ]
        least = [max(map(measure_width, words), default=1) for words in pieces]
        if sum(least) <= left:
            break
    else:
        share = max(left // max(len(wanted), 1), 1)
        least = [min(width, share) for width in wanted]
    return [*widths[:fixed], *_share_room(left, least, wanted)]


def _share_room(room: int, least: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Return the width of each column: its minimum, and a share of the rest."""
    spare, missing = max(room - sum(least), 0), sum(wanted) - sum(least)
    return [
        low + spare * (high - low) // missing if missing else low
        for low, high in zip(least, wanted, strict=True)
    ]


def wrap_cell(text: str, width: int) -> list[str]:
    """Return the lines of a cell: broken between words, in long words after punctuation, else
    anywhere.
    """
    if measure_width(text) <= width:
        return [text]
    lines, current = [], ""
    for word in text.split(" "):
        gap = " " if current else ""
        for part in [word] if measure_width(word) <= width else split_parts(word):
            if current and measure_width(current) + len(gap) + measure_width(part) > width:
                lines.append(current)
                current, gap = "", ""
            current, gap = f"{current}{gap}{part}", ""
            while len(current) > 1 and measure_width(current) > width:
                cut = next(
                    (
                        end
                        for end in range(len(current) - 1, 1, -1)
                        if measure_width(current[:end]) <= width
                    ),
                    1,
                )
                lines.append(current[:cut])
                current = current[cut:]
    return [*lines, current]
