"""Variables that launchers give to what they start: ``--export`` of Slurm, in ``#SBATCH`` lines too, ``-e`` of docker, ``-x`` of mpirun."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from npuprof.scripts.reading.shells.constants import list_assignments
from npuprof.scripts.shell_lexer import Command, Word

#: Launchers, with the flags that take a variable each; ``--export`` takes a list of them.
LAUNCHERS = {
    **dict.fromkeys(("sbatch", "srun"), ("--export",)),
    **dict.fromkeys(("docker", "podman", "nerdctl"), ("-e", "--env")),
    **dict.fromkeys(("mpirun", "mpiexec"), ("-x",)),
}

_DIRECTIVE = re.compile(r"^#SBATCH[ \t][^\n]*?--export(?:=|[ \t]+)([^\s\"']+)", re.MULTILINE)
_VARIABLE = re.compile(r"(?:(?<=^)|(?<=,))([A-Za-z_]\w*)=([^,]*)")


def find_directive_exports(text: str, commands: Sequence[Command]) -> Iterator[tuple[str, Word, Word]]:
    """Yield the variables of the ``#SBATCH`` lines before the first command: name, where it stands, value."""
    end = commands[0][0].span[0] if commands else len(text)
    for match in _DIRECTIVE.finditer(text, 0, end):
        column = match.start(1) - match.start() + 1
        yield from _split_list(match[1], text.count("\n", 0, match.start()) + 1, column)


def find_given(launcher: str, words: Sequence[Word]) -> Iterator[tuple[str, Word, Word]]:
    """Yield the variables that the words behind a launcher give."""
    for place, word in enumerate(words):
        flag, equals, _ = word.text.partition("=")
        if flag not in LAUNCHERS[launcher] or not (equals or place + 1 < len(words)):
            continue
        begin = len(flag) + 1
        given = word.cut_prefix(begin)._replace(column=word.column + begin) if equals else words[place + 1]
        if flag == "--export":
            yield from _split_list(given.text, given.line, given.column)
        else:
            yield from ((name, given, given.cut_prefix(len(name) + 1)) for name, _ in list_assignments([given]))


def _split_list(text: str, line: int, column: int) -> Iterator[tuple[str, Word, Word]]:
    for match in _VARIABLE.finditer(text):
        word = Word(line, column + match.start(), (match[0],))
        yield match[1], word, word._replace(parts=((match[2],),) if set(match[2]) & {"$", "`"} else (match[2],))
