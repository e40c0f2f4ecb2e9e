"""Known variables of a shell script: constants, and the script's folder in its usual idioms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from npuprof.scripts.script_records import HERE, VariableRead, find_position
from npuprof.scripts.shell_lexer import Command, Part, Word

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_READ = re.compile(r"(?<!\\)\$(?:\{[#!]?)?([A-Z][A-Z0-9_]+)\b")
_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
_GIVING = frozenset(("for", "select", "read", "getopts", "local", "mapfile", "unset"))
_DECLARING = frozenset(("export", "declare", "typeset", "readonly"))
_DEEPER = frozenset(("if", "case", "for", "while", "until", "select"))
_SELF = r'"?(?:\$0|\$\{0\}|\$BASH_SOURCE|\$\{BASH_SOURCE(?:\[0\])?\})"?'
_DIRNAME = (
    rf'\$\(dirname (?:-- )?(?:{_SELF}|"\$\((?:readlink -f|realpath) '
    rf'{_SELF}\)"|\$\((?:readlink -f|realpath) {_SELF}\))\)'
)
_FOLDER = re.compile(rf"(?:{_DIRNAME}|`dirname {_SELF}`|\$\{{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}})")
_CHANGED = re.compile(
    r"(?:\$\(|`)[ ]?cd (?:-P )?(?:-- "
    rf')?"?(?:(?P<folder>{_FOLDER.pattern})|\$(?:\{{(?P<long>\w+)\}}|(?P<short>\w+)))'
    r'(?P<rest>(?:/[\w.-]+)*)/?"?[ ]*(?:&?>[ ]*/dev/null(?:[ '
    r"]2>&1)?[ ]*)?(?:&&|;)[ ]*pwd(?:[ ]-P)?[ ]?(?:\)|`)"
)


def list_assignments(words: Iterable[Word]) -> Iterator[tuple[str, Word]]:
    """Yield the leading assignments of a command: each name, and its word."""
    for word in words:
        match = ASSIGNMENT.match(word.parts[0]) if isinstance(word.parts[0], str) else None
        if match is None:
            return
        yield match[1], word


def find_constants(commands: Sequence[Command]) -> dict[str, str]:
    """Return the variables with one value, assigned once outside any branch, from literals and
    earlier constants.
    """
    values: dict[str, list[Word | None]] = {}
    depth = 0
    for command in commands:
        first = command[0].keyword
        depth += (first in _DEEPER) - (first in ("fi", "esac", "done"))
        for word in command[1:] if first in _GIVING else ():
            values.setdefault(word.text.partition("=")[0], []).append(None)
        words = (
            [word for word in command if ASSIGNMENT.match(word.text)]
            if first in _DECLARING
            else command
        )
        for name, word in list_assignments(words):
            is_doubtful = (
                word.items or depth or command.join or not word.text.startswith(f"{name}=")
            )
            values.setdefault(name, []).append(None if is_doubtful else word.value)
    known: dict[str, str] = {}
    for name, assigned in values.items():  # in text order
        if (
            len(assigned) == 1
            and assigned[0] is not None
            and not (value := fill_word(assigned[0], known)).open_part
        ):
            known[name] = value.text
    return known


def list_reads(path: str, commands: Sequence[Command]) -> list[VariableRead]:
    """Return the first read of each variable in capitals that no sourced file names."""
    sourced = {
        name
        for text in {command.text for command in commands if command.files}
        for name in _NAME.findall(text)
    }
    reads = {}
    for command in (command for command in commands if not command.files):
        for word in (word for word in command if word.open_part or word.items):
            written = command.text[slice(*word.span)]
            for match in _READ.finditer(written):
                if match[1] not in reads and match[1] not in sourced:
                    line, column = find_position(written, match.start())
                    before = word.column - 1 if line == 1 else 0
                    reads[match[1]] = VariableRead(
                        path, word.line + line - 1, before + column, match[1]
                    )
    return list(reads.values())


def fill_word(word: Word, known: Mapping[str, str]) -> Word:
    """Return a word with known variables and the script's folder expanded."""
    if not word.open_part:
        return word
    return word.with_parts(
        *[part if isinstance(part, str) else _fill(part, known) for part in word.parts]
    )


def _fill(part: tuple[str], known: Mapping[str, str]) -> Part:
    if match := VARIABLE.fullmatch(part[0]):
        return known.get(match[1] or match[2], part)
    return _read_folder(part[0], known) or part


def _read_folder(text: str, known: Mapping[str, str]) -> str:
    """Return the folder of an expansion relative to the script, empty for any other expansion."""
    if _FOLDER.fullmatch(text):
        return f"{HERE}."
    match = _CHANGED.fullmatch(text)
    begin = (
        ""
        if match is None
        else f"{HERE}."
        if match["folder"]
        else known.get(match["long"] or match["short"], "")
    )
    return f"{begin}{match['rest']}" if match and begin.startswith(HERE) else ""
