"""Files that a shell script sources: those of its tree are read, others listed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from npuprof.model import Finding, Place
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.python.parsing import LARGEST_SCRIPT
from npuprof.scripts.reading.shells.known_variables import fill_word, find_constants
from npuprof.scripts.reading.variable_files import decode_text
from npuprof.scripts.script_records import HERE
from npuprof.scripts.shell_lexer import Command, Word, parse_shell_commands

#: The maximum nesting of sourced files.
_DEEPEST = 6
#: Where a text may source a file: the command is found first, then what may precede it, which is
#: faster.
MAY_SOURCE = re.compile(r"(?:s(?<![^\s;&|(]s)ource|\.(?<![^\s;&|(]\.))[ \t]+[^\s;&|=]")
#: What a text may source, in a comment, too, and words that only a lexer can read.
_SOURCED = re.compile(r"(?:s(?<![\w./-]s)ource|\.(?<![\w./-]\.))[ \t]+([^\s;&|]+)")
_COMPLEX = re.compile(r"PWD|[`(\\%']|\A[^\"]*\"(?:[^\"]*\"[^\"]*\")*[^\"]*\Z")
#: Assignments, but those of the current folder, and the variables that a value has.
_ASSIGNED = re.compile(r"\b(\w++)=[\"']?(?![$`(]+pwd)(\S*)")
_READ = re.compile(r"\$\{?([A-Za-z_]\w*)")
_BEFORE = frozenset(("then", "do", "else", "builtin", "command"))
#: The current folder, which is that of the script or one above it.
CURRENT_FOLDER = re.compile(r"\A(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)/")
#: Environment scripts of CANN, or of a Python installation, which contain no settings of the user.
VENDORS = re.compile(
    r"(?:^|/)(?:set_?env(?:\.bash|\.sh)|setvars\.sh|env_npu\.sh|bin/activate|conda\.sh"
    r"|\.bash_?(?:rc|profile)|\.profile|etc/profile)$"
)


class Sourcing:
    """The sourced files.

    ``unread`` are the texts and reasons of those that are not read, by file and line of the source
    command.
    """

    def __init__(self, path: str, modules: Modules) -> None:
        self.path = path
        self.unread: dict[tuple[str, int], tuple[str, str]] = {}
        self._modules = modules
        assert modules.locate_file is not None
        self._locate = modules.locate_file
        self._size = 0

    def expand_commands(self, commands: Sequence[Command]) -> list[Command]:
        """Return commands with sourced files expanded in place, each as a group."""
        expanded = list(commands)
        for _ in range(_DEEPEST):  # a file may define the variable that names the next one
            self.unread.clear()
            before, expanded = expanded, list(self._iterate_expanded(expanded))
            if len(expanded) == len(before):
                break
        return expanded

    def join_possible(self, text: str) -> str:
        """Return a text with those of all files that it may source, without parsing it.

        Empty if only parsing can tell.
        """
        texts = [text]
        for body in texts:  # also over those that are added
            for name in set(_SOURCED.findall(body)):
                if _COMPLEX.search(name):
                    return ""
                for file in self._locate(self.path, name.replace('"', ""), False):
                    sourced = decode_text(file, self._modules.read(file), []) or ""
                    texts += [sourced] if sourced not in texts else []
        joined = "\n".join(texts)
        words = [word for word in _SOURCED.findall(joined) if "$" in word]
        assigned = _ASSIGNED.findall(joined) if words else ()
        known = set[str]()
        for _ in range(_DEEPEST):  # constants may have others in them
            known.update(name for name, value in assigned if known.issuperset(_READ.findall(value)))
        return "" if any(known.issuperset(_READ.findall(word)) for word in words) else joined

    def _iterate_expanded(self, commands: list[Command]) -> Iterator[Command]:
        known = None
        has_moved = False
        for command in commands:
            start = next((at for at, word in enumerate(command) if word.keyword not in _BEFORE), 0)
            first = command[start].keyword
            # in parentheses, only the subshell moves
            has_moved |= first in ("cd", "pushd", "popd") and not command.shells
            body = None
            if first in ("source", ".") and len(command) > start + 1:
                if known is None and command[start + 1].open_part:
                    known = find_constants(commands)
                body = self._read_file(command, command[start + 1], known or {}, has_moved)
            if body is None:
                yield command
            else:
                yield command.copy_with([*command[:start], command[start].with_parts("{")])
                yield from body
                yield command.copy_with([command[start].with_parts("}")])

    def _read_file(
        self, command: Command, named: Word, known: Mapping[str, str], has_moved: bool
    ) -> list[Command] | None:
        """Return the commands of a sourced file, None if the file is uncertain."""
        file, reason = self._find_file(fill_word(named, known), has_moved)
        if file in (self.path, *command.files) or len(command.files) >= _DEEPEST:
            reason = "it takes itself in"
        body = None if reason else decode_text(file, self._modules.read(file), [])
        if body is not None and "BASH_SOURCE" in body:  # its own folder is not followed
            reason, body = "is not looked into", None
        self._size += len(body or "")
        if body is not None and self._size <= LARGEST_SCRIPT:
            source = next(word for word in command if word.keyword in ("source", "."))
            call = command.call or (command[0].line, source.column)
            inner = list(parse_shell_commands(body))
            for inner_command in inner:
                inner_command.files, inner_command.call = (*command.files, file), call
                inner_command.shells = (*command.shells, *inner_command.shells)
                for word in inner_command:
                    for each in (word, *word.items):
                        each.origin = file, call
            return inner
        if not VENDORS.search(named.text.rstrip("\"'")):
            where = command.file or self.path, named.line
            self.unread.setdefault(where, (named.text, reason or "cannot be read"))
        return None

    def _find_file(self, argument: Word, has_moved: bool) -> tuple[str, str]:
        """Return the file named by an argument, or why it is uncertain."""
        text = CURRENT_FOLDER.sub("", argument.text)

        if "$" in text or "`" in text:
            return "", f"depends on {argument.open_part}"
        if text.startswith("~"):
            return "", "is not looked into"
        is_fixed = text.startswith(HERE) or os.path.isabs(text)
        if has_moved and not is_fixed:
            return "", "depends on the folder that the script has gone to"
        files = self._locate(self.path, text.removeprefix(HERE), is_fixed)
        if len(files) > 1:
            several = " or ".join(files)
            return "", f"is {several}, as the script is started from one folder or another"
        return (files[0], "") if files else ("", "is not in the tree")

    def list_problems(self) -> list[Finding]:
        """Return a note about sourced files that are not read."""
        notes = {
            f"{name} (line {line}) {reason}": line
            for (file, line), (name, reason) in self.unread.items()
            if file == self.path
        }
        if not notes:
            return []
        line, *_ = notes.values()
        more = f"; and {len(notes) - 3} more" if len(notes) > 3 else ""
        what = f"not looked into what the script sources: {'; '.join([*notes][:3])}{more}"
        why = "Settings made there are not in any preset of this script."
        return [Finding("NP801", what, why, "", where=Place(self.path, line), severity="info")]
