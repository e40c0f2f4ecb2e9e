"""Which commands of a shell script never run: those of a function that nobody calls, and those behind its end."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.scripts.reading.words import Command

_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_NAME = re.compile(r"[\w.-]+")
_OPENERS = ("then", "do", "else")
_LOOPS = ("for", "while", "until", "select")


class Flow:
    """Where the commands of a script stand, one after the other; ``idle`` says why the one that was followed last never runs."""

    def __init__(self, text: str, commands: Sequence[Command]) -> None:
        self._text = text
        self._named = {
            name
            for command in commands
            for word in command[self._count_defining_words(command) :]
            for name in _NAME.findall(word.text)
        }  # fmt: skip
        self._bodies: list[str] = []  #: the functions and groups around a command; a group has no name
        self._defined = ""
        self._loops = 0
        self._end = 0
        self.idle = ""

    def follow_command(self, command: Command, has_branches: bool) -> None:
        """Go on to a command; ``has_branches`` where it runs under a condition."""
        count = self._count_defining_words(command)
        if count:
            self._defined = command[count - 1].text
        words = command[count:]
        while words and not words[0].quoted and words[0].text in _OPENERS:
            words = words[1:]
        first = words[0].text if words and not words[0].quoted else ""
        if first == "{":
            self._bodies.append(self._defined)
            self._defined = ""
        elif first == "}" and self._bodies:
            self._bodies.pop()
        self._loops += (first in _LOOPS) - (first == "done" and self._loops > 0)
        unused = next((name for name in self._bodies if name and name not in self._named), "")
        self.idle = f"{unused}() is called nowhere, so this never runs" if unused else ""
        if self._end and not self._bodies:
            self.idle = f"the script ends in line {self._end}, so this never runs"
        certain = not (has_branches or self._bodies or self._loops or command.join or command.parentheses or len(words) < len(command))
        if first == "exit" and certain and not self._end:
            self._end = command[0].line

    def _count_defining_words(self, command: Command) -> int:
        """Return with how many words a command begins that define a function."""
        if command[0].quoted:
            return 0
        if command[0].text == "function" and len(command) > 1:
            return 2
        return 1 if len(command) == 1 and _PARENTHESES.match(self._text, command[0].span[1]) else 0
