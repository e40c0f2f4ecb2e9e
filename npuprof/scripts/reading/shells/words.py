"""Shell text to commands and words, by its quoting rules; nothing is expanded but what the file itself says once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from npuprof.model import Record
from npuprof.scripts.reading.shells.folders import read_folder

_HEREDOC = re.compile(r"<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([\w.-]+))")
#: What a shell does not take as it stands where a variable without quotes holds it.
UNSAFE = frozenset("*?[\\'\"")
VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
#: So deep commands are looked for in each other.
_DEEPEST = 3
#: Parentheses in each other that are told apart.
_MOST_SHELLS = 50
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "e": "\x1b"}


class Word(Record):
    """One word: ``parts`` are literal texts and, as one-tuples, what the shell would fill in.

    ``span`` is where it begins and ends in the text; ``items`` are the words of an array behind it: ``NAME=(...)``.
    """

    line: int
    column: int
    parts: tuple[str | tuple[str], ...]
    quoted: bool = False
    span: tuple[int, int] = (0, 0)
    items: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        """The word with the open parts as written."""
        return "".join(part if isinstance(part, str) else part[0] for part in self.parts)

    @property
    def open_part(self) -> str:
        """The first part that the shell would fill in, or nothing."""
        return next((part[0] for part in self.parts if not isinstance(part, str)), "")

    def fill_variables(self, known: dict[str, str], but: str = "") -> Word:
        """Return the word with variables filled in that have one value only, all of them ``but`` one."""
        parts: list[str | tuple[str]] = []
        for part in self.parts:
            match = VARIABLE.fullmatch(part[0]) if isinstance(part, tuple) else None
            if match and (name := match[1] or match[2]) in known and name != but:
                parts.append(known[name])
            elif isinstance(part, tuple) and (folder := read_folder(part[0], known)):
                parts.append(folder)
            else:
                parts.append(part)
        return self._replace(parts=tuple(parts))

    def cut_prefix(self, count: int) -> Word:
        """Return what follows the first ``count`` characters of a literal beginning."""
        head = self.parts[0] if self.parts else ""
        assert isinstance(head, str)
        return self._replace(parts=(head[count:], *self.parts[1:]))


class Command(list[Word]):
    """The words of one simple command; ``join`` is ``&&`` or ``||`` where that stands before it, ``parentheses`` are those around it.

    ``before`` and ``after`` are what parts it from its neighbours, nothing for the end of a line; ``shells`` are the numbers of the
    parentheses around it.
    """

    join = ""
    parentheses = 0
    before = ""
    after = ""
    shells: tuple[int, ...] = ()


def parse_shell_commands(text: str) -> Iterator[Command]:
    """Yield the simple commands of a script, words only; separators end a command, comments and heredocs are skipped.

    A conversion that runs for what it answers, ``OUT=$(atc ...)``, is a command too, behind the one that takes the answer.
    """
    yield from _parse_commands(_WordReader(text), 0)


def _parse_commands(reader: _WordReader, depth: int) -> Iterator[Command]:
    while not reader.is_done:
        command = reader.parse_command()
        inner, reader.inner = reader.inner, []
        if command:
            yield command
        for begin, end, line, start in inner if depth < _DEEPEST else ():
            for one in _parse_commands(_WordReader(reader.text[:end], begin, line, start), depth + 1):
                if any(word.text.rpartition("/")[2] == "atc" for word in one):
                    one.join = one.join or ("&&" if command.join else "")
                    yield one


class _WordReader:
    def __init__(self, text: str, at: int = 0, line: int = 1, start: int = 0) -> None:
        self.text = text
        self.at = at
        self.line = line
        self.start = start
        self.inner: list[tuple[int, int, int, int]] = []  #: what else runs: from where to where, the line, and where that begins
        self.waiting: list[str] = []
        self.join = ""
        self.parted = ""
        self.parentheses = 0
        self.shells: tuple[int, ...] = ()
        self.opened = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.text)

    def parse_command(self) -> Command:
        words = Command()
        text, size = self.text, len(self.text)
        while self.at < size:
            char = text[self.at]
            if char in " \t\r":
                self.at += 1
            elif text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = text.index("\n", self.at)
                self._pass_newline()
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = size if end < 0 else end
            elif char == "\n":
                self._pass_newline()
                self._skip_heredocs()
                if words:
                    self.join = self.parted = ""
                return words
            elif text.startswith("<<", self.at) and not text.startswith("<<<", self.at) and (match := _HEREDOC.match(text, self.at)):
                self.waiting.append(match[1] or match[2] or match[3])
                self.at = match.end()
            elif char == "(" and words and words[-1].span[1] == self.at and words[-1].text.endswith("=") and not words[-1].quoted:
                words[-1] = words[-1]._replace(items=self._parse_array())
            elif text.startswith("&>", self.at):
                self.at += 2
            elif char in ";&|()":
                self.join = char * 2 if char in "&|" and text.startswith(char * 2, self.at) else ""
                words.after = self.parted = self.join or char
                self.at += len(self.parted)
                self._count_parentheses(char)
                return words
            elif char in "<>":
                self.at += 3 if text.startswith("<<<", self.at) else 2 if text[self.at + 1 : self.at + 2] in ("&", "|") else 1
            else:
                if not words:
                    words.join, words.parentheses, words.before, words.shells = self.join, self.parentheses, self.parted, self.shells
                words.append(self._parse_word())
        return words

    def _count_parentheses(self, char: str) -> None:
        if char == "(":
            self.opened += 1
            self.parentheses += 1
            if self.parentheses <= _MOST_SHELLS:
                self.shells = (*self.shells, self.opened)
        elif char == ")":
            if self.parentheses <= _MOST_SHELLS:
                self.shells = self.shells[:-1]
            self.parentheses = max(0, self.parentheses - 1)

    def _parse_array(self) -> tuple[Word, ...]:
        self.at += 1
        items: list[Word] = []
        while not self.is_done and self.text[self.at] != ")":
            if self.text[self.at] in " \t\r":
                self.at += 1
            elif self.text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = self.text.index("\n", self.at)
                self._pass_newline()
            elif self.text[self.at] == "\n":
                self._pass_newline()
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at] in ";&|(<>":  # no array that a shell would take
                self.at += 1
            else:
                items.append(self._parse_word())
        self.at += 1
        return tuple(items)

    def _pass_newline(self) -> None:
        self.at += 1
        self.line += 1
        self.start = self.at

    def _skip_heredocs(self) -> None:
        for mark in self.waiting:
            while not self.is_done:
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at = end if end >= 0 else len(self.text)
                if end >= 0:
                    self._pass_newline()
                if line.strip() == mark:
                    break
        self.waiting = []

    def _parse_word(self) -> Word:
        line, column, first = self.line, self.at - self.start + 1, self.at
        parts: list[str | tuple[str]] = []
        quoted = False
        text, size = self.text, len(self.text)
        add_piece = parts.append  # joined at the end: added to each other they would be copied every time

        while self.at < size:
            char = text[self.at]
            if char in " \t\r\n;&|()<>":
                break
            if char == "'":
                quoted = True
                end = text.find("'", self.at + 1)
                end = size if end < 0 else end
                add_piece(text[self.at + 1 : end])
                self._move_to(end + 1)
            elif char == '"':
                quoted = True
                self._parse_double_quotes(add_piece, parts)
            elif text.startswith("$'", self.at):
                quoted = True
                self._parse_ansi_quotes(add_piece)
            elif char == "\\":
                if text[self.at + 1 : self.at + 2] == "\n":
                    self._move_to(self.at + 2)
                else:
                    add_piece(text[self.at + 1 : self.at + 2])
                    self.at += 2
            elif char in "$`" and (end := self._find_expansion_end(self.at)) > self.at + 1:
                parts.append((text[self.at : end],))
                self._note_inner(end)
                self._move_to(end)
            else:
                begin = self.at
                self.at += 1
                while self.at < size and text[self.at] not in " \t\r\n;&|()<>'\"\\$`":
                    self.at += 1
                add_piece(text[begin : self.at])
        return Word(line, column, _join_pieces(parts) or ("",), quoted, (first, self.at))

    def _note_inner(self, end: int) -> None:
        """Take note of commands that run here for what they answer, where one of them may be a conversion."""
        mark = 1 if self.text[self.at] == "`" else 2
        runs = mark == 1 or (self.text.startswith("$(", self.at) and not self.text.startswith("$((", self.at))
        if runs and self.text.find("atc", self.at, end) >= 0:
            self.inner.append((self.at + mark, end - 1, self.line, self.start))

    def _move_to(self, to: int) -> None:
        passed = self.text.count("\n", self.at, to)
        if passed:
            self.line += passed
            self.start = self.text.rfind("\n", 0, to) + 1
        self.at = min(to, len(self.text))

    def _parse_double_quotes(self, add: object, parts: list[str | tuple[str]]) -> None:
        assert callable(add)
        self.at += 1
        text, size = self.text, len(self.text)
        add("")
        while self.at < size and text[self.at] != '"':
            char = text[self.at]
            if char == "\\" and text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                follower = text[self.at + 1]
                add("" if follower == "\n" else follower)
                self._move_to(self.at + 2)
            elif char in "$`" and (end := self._find_expansion_end(self.at)) > self.at + 1:
                parts.append((text[self.at : end],))
                self._note_inner(end)
                self._move_to(end)
            else:
                begin = self.at
                end = begin + 1
                while end < size and text[end] not in '"\\$`':
                    end += 1
                add(text[begin:end])
                self._move_to(end)
        self.at += 1

    def _parse_ansi_quotes(self, add: object) -> None:
        assert callable(add)
        self.at += 2
        text = self.text
        while not self.is_done and text[self.at] != "'":
            if text[self.at] == "\\":
                follower = text[self.at + 1 : self.at + 2]
                if match := re.compile(r"x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})").match(text, self.at + 1):
                    code = int(match[1] or match[2] or match[3], 16)
                    add(chr(code) if code < 0x110000 else "?")
                    self.at = match.end()
                    continue
                add(_ANSI.get(follower, f"\\{follower}"))
                self._move_to(self.at + 2)
            else:
                add(text[self.at])
                self._move_to(self.at + 1)
        self.at += 1

    def _find_expansion_end(self, at: int) -> int:
        """Return where the expansion that begins at ``at`` ends; ``at + 1`` where it is a plain character."""
        text, size = self.text, len(self.text)
        if text[at] == "`":
            end = text.find("`", at + 1)
            return size if end < 0 else end + 1
        follower = text[at + 1 : at + 2]
        if follower in ("(", "{"):
            return self._find_closing(at + 1, follower, ")" if follower == "(" else "}")
        match = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])").match(text, at)
        return match.end() if match else at + 1

    def _find_closing(self, at: int, opening: str, closing: str) -> int:
        text, size, depth = self.text, len(self.text), 0
        while at < size:
            char = text[at]
            if char == "\\":
                at += 1
            elif char == "'" and opening == "(":
                end = text.find("'", at + 1)
                at = size if end < 0 else end
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if not depth:
                    return at + 1
            at += 1
        return size


def _join_pieces(parts: list[str | tuple[str]]) -> tuple[str | tuple[str], ...]:
    """Return parts with the literal ones that follow each other made one."""
    if len(parts) < 2:
        return tuple(parts)
    groups = groupby(parts, lambda part: isinstance(part, str))
    joined: list[str | tuple[str]] = []
    for literal, group in groups:
        if literal:
            joined.append("".join(map(str, group)))
        else:
            joined += group
    return tuple(joined)
