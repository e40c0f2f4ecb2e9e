"""``--export`` of Slurm: variables that ``sbatch`` and ``srun`` give a job, on the command line or in ``#SBATCH`` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from npuprof.scripts.shell_lexer import Command, Word

_DIRECTIVE = re.compile(r"^#SBATCH[ \t][^\n]*?--export(?:=|[ \t]+)([^\s\"']+)", re.MULTILINE)
_VARIABLE = re.compile(r"(?:(?<=^)|(?<=,))([A-Za-z_]\w*)=([^,]*)")


def find_directive_exports(text: str, commands: Sequence[Command]) -> Iterator[tuple[str, Word, Word]]:
    """Yield the variables of the ``#SBATCH`` lines before the first command: name, where it stands, value."""
    end = commands[0][0].span[0] if commands else len(text)
    for match in _DIRECTIVE.finditer(text, 0, end):
        column = match.start(1) - match.start() + 1
        yield from _split_list(match[1], text.count("\n", 0, match.start()) + 1, column)


def find_exports(words: Sequence[Word]) -> Iterator[tuple[str, Word, Word]]:
    """Yield the variables that the words behind ``sbatch`` or ``srun`` export."""
    for place, word in enumerate(words):
        head, equals, text = word.text.partition("=")
        if head == "--export" and (equals or place + 1 < len(words)):
            listed = word if equals else words[place + 1]
            text = text or listed.text
            yield from _split_list(text, listed.line, listed.column + len(listed.text) - len(text))


def _split_list(text: str, line: int, column: int) -> Iterator[tuple[str, Word, Word]]:
    for match in _VARIABLE.finditer(text):
        word = Word(line, column + match.start(), (match[0],))
        yield match[1], word, word._replace(parts=((match[2],),) if set(match[2]) & {"$", "`"} else (match[2],))
