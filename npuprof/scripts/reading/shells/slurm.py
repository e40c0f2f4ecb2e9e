"""``--export`` of Slurm: variables that ``sbatch`` and ``srun`` hand over, on the command line or in ``#SBATCH`` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuprof.scripts.reading.shells.words import Word, parse_shell_commands

#: Only lines before the first command count.
_HEAD = re.compile(r"(?:[ \t]*(?:#[^\n]*)?(?:\n|\Z))*+")
_DIRECTIVE = re.compile(r"^#SBATCH[ \t]+([^\n]+)", re.MULTILINE)
_NAME = re.compile(r"([A-Za-z_]\w*)=")


def find_directive_exports(text: str) -> Iterator[tuple[str, Word, Word]]:
    """Yield the variables of the ``#SBATCH`` lines of a script: name, where it stands, value."""
    head = _HEAD.match(text)
    line, counted = 1, 0
    for match in _DIRECTIVE.finditer(text, 0, head.end() if head else 0):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        for command in parse_shell_commands(match[1]):
            words = [word._replace(line=line, column=word.column + match.start(1) - match.start()) for word in command]
            yield from find_exports(words)


def find_exports(words: list[Word]) -> Iterator[tuple[str, Word, Word]]:
    """Yield the variables that the words after ``sbatch`` or ``srun`` export."""
    for place, word in enumerate(words):
        text = word.parts[0] if isinstance(word.parts[0], str) else ""
        if text.startswith("--export="):
            yield from _split_exports(word, len("--export="))
        elif text == "--export" and place + 1 < len(words):
            yield from _split_exports(words[place + 1], 0)


def find_limit(words: list[Word]) -> frozenset[str] | None:
    """Return the variables that ``srun`` hands over of those around it, None where these are all."""
    for place, word in enumerate(words):
        head, equals, given = word.text.partition("=")
        if head == "--export" and (equals or place + 1 < len(words)):
            items = (given if equals else words[place + 1].text).split(",")
            return None if {"ALL", "NIL"} & {*items} or "$" in "".join(items) else frozenset(items)
    return None


def _split_exports(word: Word, skipped: int) -> Iterator[tuple[str, Word, Word]]:
    """Yield the variables of one list: ``ALL,A=1,B=$X``."""
    item: list[str | tuple[str]] = []
    column = word.column + skipped
    start = column
    for part in (*word.cut_prefix(skipped).parts, ","):
        pieces: list[str | tuple[str]] = [*part.split(",")] if isinstance(part, str) else [part]
        for number, piece in enumerate(pieces):
            if number:
                yield from _read_item(word._replace(column=start, parts=tuple(item)))
                item, column = [], column + 1
                start = column
            item.append(piece)
            column += len(piece if isinstance(piece, str) else piece[0])


def _read_item(item: Word) -> Iterator[tuple[str, Word, Word]]:
    match = _NAME.match(item.parts[0]) if item.parts and isinstance(item.parts[0], str) else None
    if match:
        yield match[1], item, item.cut_prefix(match.end())
