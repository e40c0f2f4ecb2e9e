"""Line wrapping: break opportunities, cited lines of files."""

from __future__ import annotations

import re

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
    words = split_pieces(line)
    if max(map(len, words), default=0) > width - indent:
        words = [part for word in words for part in re.findall(r"[^/]*/+|[^/]+", word)]
    for word in words:
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
