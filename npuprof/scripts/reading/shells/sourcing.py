"""Files that a shell script takes in as lines of its own: ``source FILE``, ``. FILE``.

The text is put together as the shell reads it, with a table that leads back from its lines to the files. A file is taken in only where
it is certain which one is meant, and it lies in the tree; the others are told by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from npuprof.model import Finding, Place, Record
from npuprof.scripts.reading.found import HERE, Followed, FoundSetting, Site
from npuprof.scripts.reading.modules import LocateFile
from npuprof.scripts.reading.shells.constants import Constants
from npuprof.scripts.reading.shells.folders import move_folders
from npuprof.scripts.reading.shells.words import Command, Word, parse_shell_commands
from npuprof.scripts.reading.source import LARGEST_SCRIPT
from npuprof.scripts.reading.variables import decode_text

#: Files take in others, so many deep.
_DEEPEST = 6
_MAY_SOURCE = re.compile(rb"(?:^|[\s;&|(])(?:source|\.)[ \t]+[^\s;&|=]", re.MULTILINE)
_BEFORE = frozenset(("then", "do", "else", "builtin", "command"))
_TESTS = frozenset(("[", "[[", "test"))
_EXISTS = frozenset(("-f", "-e", "-r", "-s"))
_START = re.compile(r"(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)/")
_RETURN = re.compile(r"\breturn\b")
#: Scripts that prepare a shell for CANN, or for an installation of Python: they choose no setting.
_VENDORS = re.compile(
    r"(?:^|/)(?:set_?env(?:\.bash|\.sh)|setvars\.sh|env_npu\.sh|bin/activate|conda\.sh|\.bash_?(?:rc|profile)|\.profile|etc/profile)$"
)

Read = Callable[[str], bytes]


class _Line(Record):
    """Where a line of the text is from: the file, its line, how far it is shifted; ``call`` is where the script takes the file in."""

    file: str
    line: int
    shift: int = 0
    call: tuple[int, int] | tuple[()] = ()
    inside: tuple[str, ...] = ()


class _Taken(Record):
    """One command that takes a file in: its first and last word, the file if it is certain, why not otherwise."""

    first: Word
    last: Word
    file: str
    reason: str
    shown: str
    test: tuple[int, int] | tuple[()] = ()


class Joined:
    """The text of a script with those that it takes in; ``left`` are the lines of those that are not, what they name, and why."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.left: dict[tuple[str, int], tuple[str, str]] = {}
        self._lines = [_Line(path, number) for number in range(1, text.count("\n") + 2)]

    @property
    def has_others(self) -> bool:
        """Whether there are lines of other files."""
        return any(line.call for line in self._lines)

    def find_own_place(self, line: int, column: int) -> tuple[int, int] | tuple[()]:
        """Return where in the script itself a place of the text is, nothing for one in another file."""
        own = self._lines[line - 1]
        return () if own.call else (own.line, max(1, column + own.shift))

    def place_settings(
        self, found: Iterable[FoundSetting], sites: Iterable[Site]
    ) -> tuple[tuple[FoundSetting, ...], tuple[Site, ...], tuple[Followed, ...]]:
        """Return settings and configurations at their places in the files, and which lines of other files are followed."""
        placed = []
        followed: dict[tuple[str, int], Followed] = {}
        for one in found:
            own = self._lines[one.line - 1]
            placed.append(one._replace(file=own.file, line=own.line, column=max(1, one.column + own.shift), call=own.call))
            if own.call:
                followed[own.file, own.line] = Followed(own.file, own.line, own.line, "")
        moved = []
        for site in sites:
            own = self._lines[site.line - 1]
            line, column = own.call or (own.line, max(1, site.column + own.shift))
            moved.append(site._replace(line=line, column=column))
        return tuple(placed), tuple(moved), tuple(followed.values())

    def name_line(self, line: int) -> str:
        """Return how a line of the text is called."""
        own = self._lines[line - 1]
        return f"line {own.line} of {own.file}" if own.call else f"line {own.line}"

    def take_in(self, locate: LocateFile, read: Read) -> None:
        """Take in what the text names, and what that names."""
        for _ in range(_DEEPEST):
            self.left.clear()  # what a file that is taken in says may tell where another one lies
            taken = [one for one in self._find_taken(locate) if not self._note_left(one)]
            changed = [self._replace(one, read) for one in reversed(taken)]
            if not any(changed):
                return

    def _note_left(self, one: _Taken) -> bool:
        own = self._lines[one.first.line - 1]
        if one.file and one.file not in (own.inside or (self.path,)) and len(own.inside) <= _DEEPEST:
            return False
        if _VENDORS.search(one.shown.rstrip("\"'")):
            return True
        reason = one.reason or "it takes itself in"
        self.left.setdefault((own.file, own.line), (one.shown, reason))
        return True

    def _find_taken(self, locate: LocateFile) -> Iterable[_Taken]:
        commands = list(parse_shell_commands(self.text))
        known = Constants(self.text, commands).values
        folder = ""  #: where the script has gone to, nothing while it is where it was started
        for at, command in enumerate(commands):
            words = command
            while words and not words[0].quoted and words[0].text in _BEFORE:
                words = Command(words[1:])
            first = words[0].text if words and not words[0].quoted else ""
            if first in ("cd", "pushd", "popd") and not command.parentheses:
                gone = words[1].fill_variables(known) if first == "cd" and len(words) > 1 else None
                folder = gone.text if gone and not gone.open_part and gone.text.startswith(HERE) and not command.join else "?"
            if first not in ("source", ".") or len(words) < 2:
                continue
            file, reason = self._find_file(words, known, folder, locate)
            test = _find_test(commands, at, words[1]) if file else ()
            yield _Taken(words[0], words[-1], file, reason, words[1].text, test)

    def _find_file(self, words: Command, known: dict[str, str], folder: str, locate: LocateFile) -> tuple[str, str]:
        """Return the file that a command takes in, and why none where it is not certain."""
        own = self._lines[words[0].line - 1]
        word = words[1].fill_variables(known)
        text = word.text
        if match := _START.match(text):
            word = word._replace(parts=(text[match.end() :],)) if "$" not in text[match.end() :] else word
            text = word.text
        if word.open_part:
            return "", f"depends on {word.open_part}"
        if text.startswith("~") or "<<" in self.text[words[0].span[0] : self._find_line_end(words[-1].span[1])]:
            return "", "is not looked into"
        if text.startswith(HERE):
            found = locate(self.path, text.removeprefix(HERE), True)
        elif os.path.isabs(text):
            found = locate(self.path, text, True)
        elif folder == "?":
            return "", "depends on the folder that the script has gone to"
        elif folder:
            found = locate(self.path, f"{folder.removeprefix(HERE)}/{text}", True)
        else:
            found = locate(self.path, text, False)
        if len(found) > 1:
            return "", f"is {' or '.join(found)}, as the script is started from one folder or another"
        if found and found[0] == own.file:
            return found[0], "it takes itself in"
        return (found[0], "") if found else ("", "is not in the tree")

    def _find_line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return end if end >= 0 else len(self.text)

    def _replace(self, one: _Taken, read: Read) -> bool:
        """Put a file in the place of the command that takes it in."""
        own, last = self._lines[one.first.line - 1], self._lines[one.last.line - 1]
        body = decode_text(one.file, read(one.file), [])
        if body is None or len(body) + len(self.text) > LARGEST_SCRIPT or not _is_whole(body):
            self.left.setdefault((own.file, own.line), (one.shown, "cannot be read"))
            return False
        beside = os.path.relpath(os.path.dirname(one.file) or ".", os.path.dirname(self.path) or ".")
        body = move_folders(body, beside).rstrip("\n")
        call = own.call or (own.line, max(1, one.first.column + own.shift))
        inside = (*(own.inside or (self.path,)), one.file)
        name = re.sub(r"[^\w.-]", "_", os.path.basename(one.file))
        lines = [_Line(one.file, number, 0, call, inside) for number in range(1, body.count("\n") + 2)]
        opening, closing = ["{"], ["}"]
        if _RETURN.search(body):  # ends the file, not the script
            opening, closing = ["{", f"{name}() {{"], ["}", name, "}"]
        begin, end = one.first.span[0], one.last.span[1]
        head = self.text[:begin]
        if one.test:
            head = f"{head[: one.test[0]]}:{' ' * (one.test[1] - one.test[0] - 1)}{head[one.test[1] :]}"
        column = end - self.text.rfind("\n", 0, end) - 1
        self.text = "\n".join((head, *opening, body, *closing)) + self.text[end:]
        around = [own._replace(shift=0)] * len(opening)
        behind = [own._replace(shift=0)] * (len(closing) - 1) + [last._replace(shift=last.shift + column - 1)]
        self._lines[one.first.line - 1 : one.last.line] = [
            *self._lines[one.first.line - 1 : one.first.line], *around, *lines, *behind
        ]  # fmt: skip
        return True

    def list_problems(self) -> list[Finding]:
        """Return a remark on the files that the script takes in and that were not looked into."""
        told = [f"{shown} (line {line}) {reason}" for (file, line), (shown, reason) in self.left.items() if file == self.path]
        if not told:
            return []
        line = next(line for file, line in self.left if file == self.path)
        what = f"not looked into what the script sources: {'; '.join(told[:3])}{f'; and {len(told) - 3} more' if len(told) > 3 else ''}"
        why = "What is set there is in no preset of this script."
        return [Finding("NP801", what, why, "", where=Place(self.path, line), severity="info")]


def may_source(data: bytes) -> bool:
    """Return whether a text can take another one in."""
    return _MAY_SOURCE.search(data) is not None


def _find_test(commands: list[Command], at: int, named: Word) -> tuple[int, int] | tuple[()]:
    """Return from where to where a test stands that asks only whether the file is there which is taken in behind it."""
    command, before = commands[at], commands[at - 1] if at else Command()
    is_first = command[0].text == "then"
    if at > 1 and [word.text for word in before] == ["then"]:
        before, is_first = commands[at - 2], True
    words = before[1:] if before and before[0].text == "if" else before
    chained = command.join == "&&" and not before.join and words is before
    opened = is_first and words is not before
    if not (chained or opened) or len(words) < 3 or words[0].text not in _TESTS or words[1].text not in _EXISTS:
        return ()
    rest = [word.text for word in words[3:]]
    return (words[0].span[0], words[-1].span[1]) if words[2].text == named.text and rest in ([], ["]"], ["]]"]) else ()


def _is_whole(body: str) -> bool:
    """Return whether a text ends where it ends: no quote and no heredoc is left open."""
    commands = list(parse_shell_commands(f"{body}\n}}"))
    last = commands[-1][-1]
    return last.text == "}" and last.line == body.count("\n") + 2
