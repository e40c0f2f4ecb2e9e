"""What a terminal needs: lines of its width, the user's pager, how far long work is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

from npuprof.report.excerpts import fit_excerpt, is_cited_line
from npuprof.report.text import measure_width
from npuprof.report.wrapping import split_parts, split_pieces, split_words
from npuprof.system.patterns import lazy_pattern

Item = TypeVar("Item")
Tell = Callable[[str], None]

_ANSI = lazy_pattern(r"\033\[[0-9;]*m")
#: What stands before the text of a line that goes on: a label, a sign.
_LABEL = lazy_pattern(r"\s*(?:[a-z]+: +|[A-Za-z][A-Za-z ]{1,14}?  +|[-+~!*] )")
_FIRST_WORD = 1.0  # seconds before long work says how far it is


def wrap_lines(text: str, width: int) -> str:
    """Return a text whose lines are at most ``width`` columns wide where words allow that, those that go on indented."""
    lines = text.split("\n")
    wrapped: list[str] = []
    for place, line in enumerate(lines):
        plain = _ANSI.sub("", line)
        if measure_width(plain) <= width:
            wrapped.append(line)
        elif not is_cited_line(plain):
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


def fit_columns(rows: Sequence[Sequence[str]], room: int, fixed: int, whole: bool = False) -> list[int] | None:
    """Return the widths of columns that have so much room together; all but the first ``fixed`` give way where it is too little.

    No word is broken where there is room for all of them, and no part of a word where there is room for those; below the first row no
    word at all, where they are to stay ``whole``. None where that cannot be; if they need not, words are broken anywhere.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max((measure_width(cell) for cell in column), default=0) for column in columns]
    left = room - sum(widths[:fixed])
    if sum(widths[fixed:]) <= left:
        return widths
    wanted = widths[fixed:]
    for split_first, split in ((split_words, split_words), (split_parts, split_words if whole else split_parts)):
        pieces = [[*split_first(column[0]), *(word for cell in column[1:] for word in split(cell))] for column in columns[fixed:]]
        least = [max(map(measure_width, words), default=1) for words in pieces]
        if sum(least) <= left:
            break
    else:
        if whole:
            return None
        share = max(left // max(len(wanted), 1), 1)
        least = [min(width, share) for width in wanted]
    return [*widths[:fixed], *_share_room(left, least, wanted)]


def _share_room(room: int, least: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Return what each column gets of a room: what it needs at least, and a part of the rest."""
    spare, missing = max(room - sum(least), 0), sum(wanted) - sum(least)
    return [low + spare * (high - low) // missing if missing else low for low, high in zip(least, wanted, strict=True)]


def wrap_cell(text: str, width: int) -> list[str]:
    """Return the lines of a cell: it breaks between words, a word that is too wide behind a sign in it, and anywhere where it has none."""
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
                cut = next((end for end in range(len(current) - 1, 1, -1) if measure_width(current[:end]) <= width), 1)
                lines.append(current[:cut])
                current = current[cut:]
    return [*lines, current]


def find_width() -> int:
    """Return the columns of the terminal, ``$COLUMNS`` first."""
    return shutil.get_terminal_size().columns


def page_answer(pieces: Iterable[bytes], write: Callable[[Iterable[bytes]], None], at_once: bool = True) -> None:
    """Show an answer through the pager of the user, piece by piece as it comes; without one ``write`` it.

    ``$NPUPROF_PAGER`` names it, else ``$PAGER``, else it is ``less`` where that is there; ``cat`` or nothing is none. Where it is not
    meant ``at_once``, an answer that the screen holds is written: not every pager leaves by itself.
    """
    import shlex

    from npuprof.system import processes

    configured = os.environ.get("NPUPROF_PAGER", os.environ.get("PAGER"))
    words = shlex.split(configured) if configured is not None else [processes.find_program("less") or "cat"]
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        write(pieces)
        return
    if not at_once:
        begun, is_long = _read_screenful(pieces := iter(pieces))
        if not is_long:
            write(begun)
            return
        pieces = chain(begun, pieces)
    sys.stdout.flush()
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    with processes.start_user_command(words, stdin=processes.PIPE, env=environment) as pager:
        assert pager.stdin is not None
        try:
            for piece in pieces:
                pager.stdin.write(piece)
                pager.stdin.flush()
            pager.stdin.close()
        except (BrokenPipeError, KeyboardInterrupt):  # it was left before the end
            pass
        while True:
            try:
                pager.wait()
                break
            except KeyboardInterrupt:  # that is for the pager
                continue


def _read_screenful(pieces: Iterator[bytes]) -> tuple[list[bytes], bool]:
    """Return the pieces that fill the screen, and whether they do."""
    size = shutil.get_terminal_size()
    begun: list[bytes] = []
    lines = 0
    for piece in pieces:
        begun.append(piece)
        lines += sum(max(1, -(-len(line.decode(errors="replace")) // size.columns)) for line in piece.splitlines())
        if lines >= size.lines:
            return begun, True
    return begun, False


def track_items(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield items, and on a terminal say how many of them are done, once that takes long; ``what`` they are, in the plural."""
    if not sys.stderr.isatty():
        yield from items
        return
    with progress_line() as tell:
        for done, item in enumerate(items):
            tell(f"{done:,} of {len(items):,} {what}")
            yield item


@contextmanager
def progress_line() -> Iterator[Tell]:
    """Give a function that shows a text in the last line of the terminal, a few times a second; the line is gone at the end."""
    started = last_shown = time.monotonic()
    shown = False

    def tell(text: str) -> None:
        nonlocal last_shown, shown
        now = time.monotonic()
        if now - started > _FIRST_WORD and now - last_shown > 0.1:
            last_shown, shown = now, True
            sys.stderr.write(f"\r\033[Knpuprof: {text}")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
