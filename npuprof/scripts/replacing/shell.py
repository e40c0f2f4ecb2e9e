"""Exports of a shell script that a block can stand for: lines of assignments, with nothing between them that could see a difference."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.scripts.draft import Draft
from npuprof.scripts.reading.shells.lexer import Command, Word, parse_shell_commands
from npuprof.scripts.replacing.cuts import Edit, Lines, Stand, build_refusal
from npuprof.scripts.replacing.python import list_left

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_SUBSHELL = re.compile(rb"^[ \t]*\((?!\()", re.MULTILINE)
_OPENING, _CLOSING = ("if", "for", "while", "until", "case", "select", "{"), ("fi", "done", "esac", "}")
#: Commands that neither start a program nor read what a script has exported, nor end anything.
_QUIET = frozenset(
    (
        ":", "[", "[[", "]]", "awk", "basename", "cat", "cd", "chmod", "chown", "cp", "cut", "date", "declare", "dirname", "done", "echo",
        "elif", "esac", "export", "false", "fi", "for", "getopts", "grep", "hash", "head", "hostname", "if", "in", "let", "local", "ls",
        "mapfile", "mkdir", "mv", "nproc", "popd", "printf", "ps", "pushd", "pwd", "read", "readonly", "rm", "sed", "select", "seq", "set",
        "shift", "shopt", "sleep", "sort", "tail", "tee", "test", "touch", "tr", "true", "type", "typeset", "ulimit", "umask", "unset",
        "until", "wc", "which", "while", "{", "}", "!",
    )
)  # fmt: skip
#: Commands that list what is set where they are given no name.
_LISTING = frozenset({"declare", "export", "readonly", "set", "typeset"})
#: What may stand before a command.
_LEADING = frozenset({"if", "elif", "while", "until", "then", "do", "else", "!", "{"})
_SUBSTITUTION = re.compile(r"\$\((?!\()(.*)\)|`(.*)`", re.DOTALL)


class _Placed:
    """A command with what it stands in."""

    def __init__(self, command: Command, around: tuple[int, ...]) -> None:
        self.command = command
        self.line = command[0].line
        self.around = around
        words = command[1:] if command[0].text == "export" and not command[0].quoted else command
        self.names = [match[1] for word in words if (match := _match_assignment(word.parts))]
        self.is_plain = len(self.names) == len(words) and bool(words) and not command.join


def plan_exports(path: str, data: bytes, draft: Draft, shell: str, has_flags: bool = False) -> Stand:
    """Return the block for the exports of a script, which are no more than [env] where the preset also ``has_flags`` for ATC.

    Raises NpuprofError (NP830) where that cannot be proven right.
    """
    lines = Lines(data)
    if _SUBSHELL.search(data):
        raise build_refusal(path, "the script has subshells", "What is exported in one ends with it, and that is not followed.")
    placed = _place_commands(data.decode(errors="surrogateescape"))
    carried: dict[int, list[str]] = {}
    for one in draft.carried:
        carried.setdefault(one.line, []).append(one.name)
    units = [_find_unit(path, lines, placed, line, names) for line, names in sorted(carried.items())]
    first, last = units[0], units[-1]
    gone = {name for names in carried.values() for name in names}
    mention = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(gone)))})\b")
    cut = {unit.line for unit in units}
    for unit in units:
        if unit.around != first.around:
            what = f"the line that sets {unit.names[0]} cannot be taken out"
            raise build_refusal(path, what, f"It does not always run together with line {first.line}.", unit.line)
    for between in placed:
        if first.line < between.line < last.line and between.line not in cut and (why := _find_noise(between, mention)):
            why = f"Line {between.line} stands between them: {why}."
            raise build_refusal(path, "the exports cannot become one block", why, between.line)
    edits: list[Edit] = [lines.build_cut(unit.line, unit.line, _find_comment(lines.lines[unit.line - 1])) for unit in units]
    facts = {"target": "env", "shell": shell, **({"sections": "env"} if has_flags else {})}
    return Stand(lines.starts[first.line - 1], lines.find_indent(first.line), facts, tuple(edits), list_left(draft))


def _place_commands(text: str) -> list[_Placed]:
    found: list[_Placed] = []
    around: list[int] = []
    for number, command in enumerate(parse_shell_commands(text)):
        first = command[0].text if not command[0].quoted else ""
        if first in _CLOSING and around:
            around.pop()
        found.append(_Placed(command, tuple(around)))
        if first in _OPENING or (first in ("do", "then", "else") and len(command) > 1 and command[1].text in _OPENING):
            around.append(number)
    return found


def _find_unit(path: str, lines: Lines, placed: list[_Placed], line: int, names: list[str]) -> _Placed:
    """Return the command that makes settings of one line. Raises NpuprofError where it does more."""
    here = [one for one in placed if one.line <= line <= max(word.line for word in one.command)]
    what = f"the line that sets {names[0]} cannot be taken out"
    alone = list(parse_shell_commands(lines.lines[line - 1].decode(errors="surrogateescape") + "\n"))
    if len(here) != 1 or len(alone) != 1 or [word.parts for word in alone[0]] != [word.parts for word in here[0].command]:
        raise build_refusal(path, what, "It shares its line with other commands, or goes on in the next.", line)
    if not here[0].is_plain:
        raise build_refusal(path, what, "It is no plain export: it holds for one command, or does more.", line)
    if set(here[0].names) != set(names):
        other = next(name for name in here[0].names if name not in names)
        raise build_refusal(path, what, f"It sets {other} too, which is not in the preset.", line)
    return here[0]


def _find_noise(one: _Placed, mention: re.Pattern[str]) -> str:
    """Return why exports cannot move over a command, empty where they can."""
    if any(mention.search(word.text) for word in one.command) and not _only_marks(one.command):
        return "it reads or sets one of the variables"
    if not one.is_plain and (loud := _find_loud_word(one.command)):
        return f"it runs {loud}"
    if not all(_is_quiet_part(part) for word in one.command for part in word.parts if not isinstance(part, str)):
        return "it runs a command"
    return ""


def _find_loud_word(command: Sequence[Word]) -> str:
    """Return the first word of a command that may start a program, or read what is exported; empty for others."""
    words = list(command)
    while words and words[0].text in _LEADING and not words[0].quoted:
        del words[0]
    while words and _match_assignment(words[0].parts):
        del words[0]
    if not words:
        return ""
    name, given = words[0].text, [word.text for word in words[1:]]
    lists = name in _LISTING and (not given or "-p" in given or given[0][:1] in (">", "<"))
    return name if words[0].quoted or name not in _QUIET or lists else ""


def _only_marks(command: Command) -> bool:
    """Return whether a command does no more than mark variables for export: the block has done that for those it sets."""
    return command[0].text == "export" and all(word.text.isidentifier() for word in command[1:])


def _is_quiet_part(part: tuple[str]) -> bool:
    """Return whether what a shell puts in starts nothing that could read what is exported."""
    (text,) = part
    if "$(" not in text and "`" not in text:
        return True
    inner = _SUBSTITUTION.fullmatch(text)
    if inner is None:
        return False
    commands = list(parse_shell_commands(f"{inner[1] or inner[2]}\n"))
    return all(
        not _find_loud_word(command) and all(_is_quiet_part(one) for word in command for one in word.parts if not isinstance(one, str))
        for command in commands
    )


def _match_assignment(parts: tuple[str | tuple[str], ...]) -> re.Match[str] | None:
    return _ASSIGNMENT.match(parts[0]) if parts and isinstance(parts[0], str) else None


def _find_comment(line: bytes) -> list[bytes]:
    """Return the comment at the end of a line of assignments."""
    found = re.search(rb"(?<=[ \t])#.*$", line.rstrip(b"\r"))
    while found and len(list(parse_shell_commands(line[: found.start()].decode(errors="surrogateescape") + "\n"))) != 1:
        found = re.compile(rb"(?<=[ \t])#.*$").search(line, found.end())
    return [found[0]] if found and not _is_inside_quotes(line[: found.start()]) else []


def _is_inside_quotes(head: bytes) -> bool:
    return head.count(b"'") % 2 == 1 or head.count(b'"') % 2 == 1
