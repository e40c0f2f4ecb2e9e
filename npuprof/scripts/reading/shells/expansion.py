"""Values of shell variables, and the words into which a shell splits them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from npuprof.model import Record
from npuprof.scripts.script_records import Branches, Position, find_position
from npuprof.scripts.shell_lexer import Origin, Part, Word
from npuprof.scripts.steps import count_steps

#: Runs of blanks and of other characters.
_RUN = re.compile(r"[ \t\n]+|[^ \t\n]+")


class Value(Record):
    """The words of a variable, which was set under conditions: items of an array, or of a text.

    A text may have blanks before the first or after the last word.
    """

    branches: Branches = ()
    words: Sequence[Word] = ()
    is_array: bool = False
    begins_blank: bool = False
    ends_blank: bool = False


#: Returns the value of the variable in an expansion, a text for another one, None if unknown.
Find = Callable[[str], Value | str | None]
#: A part of a word, and its position.
Piece = tuple[Part, Position]


def locate_parts(word: Word, written: str, at: int = 0) -> Iterator[Piece]:
    """Yield the parts of a word, with runs of blanks apart.

    ``written`` is its text in the file, in which the search begins at an offset; it may be empty.
    """
    for part in word.parts:
        for run in _RUN.findall(part) if isinstance(part, str) else part:
            if not run.isspace():
                # quotes and backslashes in the file are not in the word
                found = written.find(run, at)
                count_steps(1 if found >= 0 else len(written) // 100)
                at = found if found >= 0 else max(written.find(run[0], at), at)
            line, column = find_position(written, at) if written else (1, 1)
            column += word.column - 1 if line == 1 else 0
            yield run if isinstance(part, str) else (run,), (word.line + line - 1, column)
            at += 0 if run.isspace() else len(run)


def split_pieces(pieces: Iterable[Piece], find: Find, origin: Origin | None = None) -> Value:
    """Return the words into which a shell splits an unquoted text."""
    words: list[Word] = []
    begins_blank = is_open = False
    for part, position in pieces:
        value = find(part[0]) if isinstance(part, tuple) else part
        if isinstance(value, str):
            runs = _RUN.findall(value)
            fields = [Word(*position, (run,), origin=origin) for run in runs if not run.isspace()]
            is_blank = [run.isspace() for run in (runs[:1] + runs[-1:])] or [False, False]
            value = Value((), fields, False, *is_blank)
        elif value is None:
            value = Value((), [Word(*position, (part,), origin=origin)])
        begins_blank |= value.begins_blank and not words
        is_open &= not value.begins_blank
        for word in value.words:
            count_steps(1 + len(word.parts))
            if is_open:
                words[-1] = words[-1].with_parts(*_join(words[-1].parts, word.parts))
            else:
                words.append(word)
            is_open = False
        is_open = bool(words) and not value.ends_blank if value.words else is_open
    return Value((), words, False, begins_blank, bool(words) and not is_open)


def split_words(word: Word, source: str) -> Sequence[Word]:
    """Return the words in a quoted word of a text, as another shell splits it."""
    pieces = locate_parts(word, source[slice(*word.span)])
    return split_pieces(pieces, lambda expansion: None, word.origin).words


def _join(parts: tuple[Part, ...], more: tuple[Part, ...]) -> tuple[Part, ...]:
    if parts and more and isinstance(parts[-1], str) and isinstance(more[0], str):
        return (*parts[:-1], parts[-1] + more[0], *more[1:])
    return (*parts, *more)
