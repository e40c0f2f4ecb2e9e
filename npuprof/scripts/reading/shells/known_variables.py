"""Known variables of a shell script: constants, and the script's folder in its usual idioms."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile

from npuprof.scripts.script_records import HERE, VariableRead, find_position
from npuprof.scripts.shell_lexer import Command, Word
from npuprof.scripts.steps import count_steps

ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)\+?=")
VARIABLE = re.compile(r"\$(?:(?P<plain>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})")
_READ = re.compile(r"\$(?<!\\\$)(?:\{[#!]?)?(?P<name>[A-Z][A-Z0-9_]+)\b")
_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
#: Commands that set the variables named by their arguments.
_SETTERS = frozenset(("for", "select", "read", "getopts", "local", "mapfile", "unset", "printf"))
DECLARING = frozenset(("export", "declare", "typeset", "readonly", "local"))
#: A variable that arithmetic changes.
_CHANGED = re.compile(r"\b\w++(?=\s*(?:\+\+|--|[-+*/%]?=(?!=)))|(?<=\+\+)\w+")
_OPENING = frozenset(("if", "case", "for", "while", "until", "select"))
#: Keywords before a command.
_LEADING = ("then", "do", "else", "{", "}")
_CLOSING = ("fi", "esac", "done")
#: The maximum length of a constant: each may contain others several times.
_LONGEST = 10_000
#: A product of whole numbers, in which divisions round.
_PRODUCT = re.compile(r"\$\(\(([\w\s${}*/]+)\)\)")
_FACTOR = re.compile(r"([*/])\s*\$?\{?(\w+)\}?\s*")
_NUMBER = re.compile(r"[1-9]\d{0,8}")
_SELF = re.compile(r"\$0|\$\{0\}|\$BASH_SOURCE|\$\{BASH_SOURCE(?:\[0\])?\}")
_FOLDER = re.compile(r"\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}")
#: A path from that of the script, by one of these commands.
_CALL = re.compile(
    r"(?:\$\(|`)[ ]*(?P<call>dirname|realpath|readlink -[fm]|cd(?: -P)?)(?: --)? +"
    r'"?(?P<inner>"?\$(?:\w+|\{[^}]+\}|\(.+\))"?|`.+`)(?P<rest>(?:/[\w.-]+)*)/?"?[ ]*'
    r"(?:(?:&?>[ ]*/dev/null(?:[ ]2>&1)?[ ]*)?(?:&&|;)[ ]*pwd(?:[ ]-P)?[ ]*)?(?:\)|`)"
)


def list_assignments(words: Iterable[Word]) -> Iterator[tuple[str, Word]]:
    """Yield the leading assignments of a command: each name, and its word."""
    for word in words:
        match = ASSIGNMENT.match(word.parts[0]) if isinstance(word.parts[0], str) else None
        if match is None:
            return
        yield match["name"], word


def list_changed(command: Command) -> list[str]:
    """Return the names of variables that a builtin or arithmetic changes, with other words."""
    first = next((word.keyword for word in command if word.keyword not in _LEADING), "")
    if first == "let" or len(command.shells) > 1:  # two parentheses begin an expression
        return _CHANGED.findall(" ".join(word.text for word in command))
    return [word.text.partition("=")[0] for word in command if first in _SETTERS]


def find_constants(commands: Sequence[Command]) -> dict[str, str]:
    """Return the variables with one value.

    They are assigned once outside any branch, from literals and earlier constants.
    """
    values: dict[str, list[Word | None]] = {}  # None for an assignment that is uncertain
    depth = 0
    for command in commands:
        first = command[0].keyword
        depth += (first in _OPENING) - (first in _CLOSING)
        for name in list_changed(command):
            values.setdefault(name, []).append(None)
        words: Iterable[Word] = dropwhile(lambda word: word.keyword in _LEADING, command)
        if first in DECLARING:
            words = [word for word in command if ASSIGNMENT.match(word.text)]
        for name, word in list_assignments(words):
            is_appended = not word.text.startswith(f"{name}=")
            is_nested = depth or len(command.shells) > 1  # two parentheses begin an expression
            is_uncertain = word.items or is_nested or command.join or is_appended
            values.setdefault(name, []).append(None if is_uncertain else word.value)
    known: dict[str, str] = {}
    for name, (value, *more) in values.items():  # in text order
        if value is None or more:
            continue
        filled = fill_word(value, known)
        if not filled.open_part and len(filled.text) <= _LONGEST:
            known[name] = filled.text
    return known


def list_reads(path: str, commands: Sequence[Command]) -> list[VariableRead]:
    """Return the first read of each variable in capitals that no sourced file names."""
    texts = {command.text for command in commands if command.files}
    sourced = {name for text in texts for name in _NAME.findall(text)}
    reads = {}
    for command in commands:
        if command.files:
            continue
        for word in (*command, *command.redirected):
            written = command.text[slice(*word.span)] if word.open_part or word.items else ""
            for match in _READ.finditer(written):
                name = match["name"]
                if name not in reads and name not in sourced:
                    line, column = find_position(written, match.start())
                    before = word.column - 1 if line == 1 else 0
                    reads[name] = VariableRead(path, word.line + line - 1, before + column, name)
    return list(reads.values())


def fill_word(word: Word, known: Mapping[str, str]) -> Word:
    """Return a word with known variables and the script's folder expanded."""
    if not word.open_part:
        return word
    parts = []
    for part in word.parts:
        value = None if isinstance(part, str) else find_expansion(part[0], known)
        parts.append(part if value is None else value)
    return word.with_parts(*parts)


def find_expansion(text: str, known: Mapping[str, str]) -> str | None:
    """Return the text of an expansion, None if it is unknown.

    That of the script's folder is relative to the script.
    """
    if match := VARIABLE.fullmatch(text):
        value = known.get(match["plain"] or match["braced"])
        count_steps(len(value or "") // 10)
        return value
    if match := _PRODUCT.fullmatch(text):
        return _multiply(f"*{match[1].strip()}", known)
    if _FOLDER.fullmatch(text):
        return f"{HERE}."
    if match := _CALL.fullmatch(text):
        inner = match["inner"].strip('"')
        path = f"{HERE}./-" if _SELF.fullmatch(inner) else find_expansion(inner, known) or ""
        if path.startswith(HERE):
            up = "/.." if match["call"] == "dirname" else ""
            return HERE + posixpath.normpath(path.removeprefix(HERE) + match["rest"] + up)
    return None


def _multiply(text: str, known: Mapping[str, str]) -> str | None:
    """Return the value of a product, whose first factor has its sign, too."""
    value = 1
    for sign, name in _FACTOR.findall(text):
        number = known.get(name, name)
        if not _NUMBER.fullmatch(number):
            return None
        value = value * int(number) if sign == "*" else value // int(number)
    is_whole = not _FACTOR.sub("", text)
    # a shell has no larger numbers
    return str(value) if is_whole and value < 2**63 else None
