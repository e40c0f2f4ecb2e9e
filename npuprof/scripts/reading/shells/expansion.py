"""Values of shell variables, and the words into which a shell splits them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from npuprof.scripts.script_records import Branches, find_position
from npuprof.scripts.shell_lexer import Word
from npuprof.scripts.steps import count_steps

#: Runs of blanks and of other characters.
_RUN = re.compile(r"[ \t\n]+|[^ \t\n]+")
#: The run that stands for all blanks between two others.
BLANK = Word(0, 0, (" ",))


class Value(NamedTuple):
    """The value of a variable: items of an array, or the runs of a text, blanks apart.

    It was set under conditions, and counts in its subshells only.
    """

    words: list[Word]
    is_array: bool
    branches: Branches
    shells: set[int]


def list_runs(word: Word, written: str = "", at: int = 0) -> list[Word]:
    """Return the runs of a text, each where it is.

    ``written`` is the text in the file, in which the search begins at an offset.
    """
    runs = []
    for part in word.parts:
        for run in _RUN.findall(part) if isinstance(part, str) else part:
            if run.isspace():
                runs.append(BLANK)
                continue
            # quotes and most backslashes in the file are not in the word
            found = written.find(run, at)
            if '"' in run and found < 0:
                found = written.find(run.replace('"', '\\"'), at)
            count_steps(1 if found >= 0 else 1 + len(written) // 100)
            at = max(at, found)
            line, column = find_position(written, at) if "\n" in written else (1, at + 1)
            column += word.column - 1 if line == 1 else 0
            new = run if isinstance(part, str) else (run,)
            runs.append(Word(word.line + line - 1, column, (new,), origin=word.origin))
            at += len(run) if found >= 0 else 0
    return runs


def join_runs(runs: Iterable[Word]) -> list[Word]:
    """Return the words into which a shell splits an unquoted text.

    One that stands only for empty variables is empty: a shell omits it.
    """
    words = []
    for is_blank, (first, *others) in groupby(runs, lambda run: run.text.isspace()):
        if not is_blank:
            count_steps(1 + len(others))
            more = [part for run in others for part in run.parts]
            words.append(first.with_parts(*first.parts, *more) if more else first)
    return words


def split_words(word: Word, source: str) -> list[Word]:
    """Return the words in a quoted word of a text, as another shell splits it."""
    return join_runs(list_runs(word, source[slice(*word.span)]))
