"""Variables of a shell script that always hold the same text, and the words that one without quotes is taken apart into."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.scripts.reading.shells.words import UNSAFE, VARIABLE, Command, Word

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")


class Constants:
    """The variables of a script that get one literal value, in one place, outside any branch: ``values`` by their names."""

    def __init__(self, text: str, commands: Sequence[Command]) -> None:
        self._text = text
        self._given: dict[str, Word] = {}  #: the words that give them their values
        self.values = self._find_values(commands)

    def _find_values(self, commands: Sequence[Command]) -> dict[str, str]:
        """Return the variables of the script that get one value, outside any branch, made of literal texts and of others before it."""
        values: dict[str, list[Word | None]] = {}
        depth = 0
        for command in commands:
            words: list[Word] = command
            first = words[0].text if words and not words[0].quoted else ""
            depth += (first in ("if", "case", "for", "while", "until", "select")) - (first in ("fi", "esac", "done"))
            if first in ("for", "select", "read", "getopts", "local", "mapfile", "unset"):
                for word in words[1:]:
                    values.setdefault(word.text.partition("=")[0], []).append(None)
            if first in ("export", "declare", "typeset", "readonly"):
                words = words[1:]
            for word in words:
                match = ASSIGNMENT.match(word.parts[0]) if isinstance(word.parts[0], str) else None
                if not match:
                    if words is command:
                        break
                    continue
                self._given[match[1]] = word
                doubtful = word.items or depth or command.join or match[0].endswith("+=")
                values.setdefault(match[1], []).append(None if doubtful else word.cut_prefix(match.end()))
        known: dict[str, str] = {}
        for name, given in values.items():  # in the order of the text
            if len(given) == 1 and given[0] is not None and not (value := given[0].fill_variables(known)).open_part:
                known[name] = value.text
        return known

    def list_given(self, command: Command) -> dict[str, str]:
        """Return the variables that a command gives their values."""
        found = {}
        for word in command:
            match = ASSIGNMENT.match(word.parts[0]) if isinstance(word.parts[0], str) else None
            if match and match[1] in self.values:
                found[match[1]] = self.values[match[1]]
        return found

    def split_variable(self, word: Word) -> list[Word]:
        """Return the flags that a variable without quotes is taken apart into, at their places; nothing where that is not certain."""
        match = VARIABLE.fullmatch(word.text)
        name = (match[1] or match[2]) if match else ""
        if name not in self.values or not self.values[name].lstrip().startswith("--") or "IFS" in self._text:
            return []
        pieces, given = self.values[name].split(), self._given[name]
        if any(set(piece) & UNSAFE for piece in pieces):
            return []
        found: list[Word] = []
        at, end = given.span
        for piece in pieces:
            at = self._text.find(piece, at, end)
            if at < 0:
                return []
            line = given.line + self._text.count("\n", given.span[0], at)
            column = at - self._text.rfind("\n", 0, at)
            found.append(Word(line, column, (piece,), True, (at, at + len(piece))))
            at += len(piece)
        return found
