"""Which commands of a shell script never run, or to no effect: in functions that nobody calls, behind the end, in processes that end."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.shells.spans import Spans
from npuprof.scripts.reading.shells.words import Command

_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_NAME = re.compile(r"[\w.-]+")
_OPENERS = ("then", "do", "else")
_LOOPS = ("for", "while", "until", "select")


class Flow:
    """Where the commands of a script stand, one after the other; ``idle`` says why the one that was followed last never runs."""

    def __init__(self, text: str, commands: Sequence[Command], name_line: Callable[[int], str] = "line {}".format) -> None:
        self._name_line = name_line
        self._text = text
        self._named = {
            name
            for command in commands
            for word in command[self._count_defining_words(command) :]
            for name in _NAME.findall(word.text)
        }  # fmt: skip
        self._spans = Spans(commands, self._count_defining_words)
        self._commands = commands
        self._at = -1
        self._last_named: dict[str, int] = {}
        self._places: list[tuple[int, str]] = []  #: for each setting the number of its command, and the function around it
        self._bodies: list[str] = []  #: the functions and groups around a command; a group has no name
        self._left: list[int] = []  #: for each of them the line where it may be left, 0 for none
        self._defined = ""
        self._loops = 0
        self._end = 0
        self.idle = ""

    def follow_command(self, command: Command, has_branches: bool) -> None:
        """Go on to a command; ``has_branches`` where it runs under a condition."""
        self._at += 1
        count = self._count_defining_words(command)
        if count:
            self._defined = command[count - 1].text
        words = command[count:]
        while words and not words[0].quoted and words[0].text in _OPENERS:
            words = words[1:]
        first = words[0].text if words and not words[0].quoted else ""
        if first == "{":
            self._bodies.append(self._defined)
            self._left.append(0)
            self._defined = ""
        elif first == "}" and self._bodies:
            self._bodies.pop()
            self._left.pop()
        self._loops += (first in _LOOPS) - (first == "done" and self._loops > 0)
        unused = next((name for name in self._bodies if name and name not in self._named), "")
        self.idle = f"{unused}() is called nowhere, so this never runs" if unused else ""
        if self._end and not self._bodies:
            self.idle = f"the script ends in {self._name_line(self._end)}, so this never runs"
        elif self._at in self._spans.lost:
            self.idle = "it is gone with a process of its own, in which nothing is started"
        if first == "return" and self.function:
            self._left[max(at for at, name in enumerate(self._bodies) if name)] = command[0].line
        certain = not (has_branches or self._bodies or self._loops or command.join or command.parentheses or len(words) < len(command))
        if first == "exit" and certain and not self._end:
            self._end = command[0].line

    @property
    def is_doubtful_loop(self) -> bool:
        """Whether the command begins a loop that may have no turn."""
        return self._at in self._spans.doubtful

    @property
    def doubt(self) -> tuple[int, str]:
        """The line where the function around the command may have been left before, with what that asks; 0 where it may not."""
        line = next((line for line in reversed(self._left) if line), 0)
        return line, f"{self.function}() is not left in {self._name_line(line)}" if line else ""

    @property
    def function(self) -> str:
        """The function around the command, empty for none."""
        return next((name for name in reversed(self._bodies) if name), "")

    def note_settings(self, count: int) -> None:
        """Take note of where the settings stand that were found up to here."""
        self._places += [(self._at, self.function)] * (count - len(self._places))

    def settle_order(self, found: list[FoundSetting]) -> list[FoundSetting]:
        """Return settings with those unsettled that a function and the rest of the script make in another order than they stand."""
        by_name: dict[str, list[int]] = {}
        for at, one in enumerate(found):
            if one.surface == "env" and not (one.reason or one.unused):
                by_name.setdefault(one.name, []).append(at)
        for places in by_name.values():
            outer = [at for at in places if not self._places[at][1]]
            if not outer or len(outer) == len(places):
                continue
            last = outer[-1]
            before = next((at for at in reversed(outer) if found[at].value != found[last].value), None)
            for at in places:
                rival = last if found[at].value != found[last].value else before
                function = self._places[at][1]
                if function and rival is not None and self._places[at][0] < self._places[rival][0] < self._find_last_call(function):
                    here, there = self._name_line(found[at].line), self._name_line(found[rival].line)
                    why = f"depends on the order: {function}() sets it in {here}, and is called after {there}"
                    for place in (at, *outer):
                        found[place] = found[place]._replace(value=None, kind="", reason=why)
                    break
        return found

    def _find_last_call(self, name: str) -> int:
        if not self._last_named:
            self._last_named = {word.text: at for at, command in enumerate(self._commands) for word in command}
        return self._last_named.get(name, -1)

    def _count_defining_words(self, command: Command) -> int:
        """Return with how many words a command begins that define a function."""
        if command[0].quoted:
            return 0
        if command[0].text == "function" and len(command) > 1:
            return 2
        return 1 if len(command) == 1 and _PARENTHESES.match(self._text, command[0].span[1]) else 0
