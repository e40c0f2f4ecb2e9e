"""Syntax errors of TOML texts: the parser's error as a clear message, at the place to fix."""

from __future__ import annotations

import re
from typing import NamedTuple

from npuprof.document.keys import format_short_value
from npuprof.document.secrets import hide_secrets
from npuprof.model import Finding, Place

_CONFLICT_MARKS = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
_WHY = "Nothing of the file can be used until it can be read."
_BLOCK_MARKS = ('"""', "'''")
_SEGMENT = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_HEADER = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\[\]]+?)[ \t]*\]")
_STATEMENT = re.compile(rf"[ \t]*({_SEGMENT}(?:[ \t]*\.[ \t]*{_SEGMENT})*)[ \t]*=")
#: Words that users write for TOML's booleans.
_WORDS = {
    "true": "true",
    "yes": "true",
    "on": "true",
    "false": "false",
    "no": "false",
    "off": "false",
}
_LAST_ASCII = 0x7F
_CURLY_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
#: Words that users write for a missing value, from other languages; quoted they would be strings.
_NOTHINGS = frozenset(("none", "null", "nil", "~", "undefined"))


class Fault(NamedTuple):
    """A syntax error: its message and its hint, its line and column (from 1)."""

    what: str
    hint: str
    line: int
    column: int


def build_syntax_finding(source: str, text: str, message: str) -> Finding:
    """Return the finding for an error of the TOML parser."""
    what, _, place = message.rpartition(" (at ")
    if match := re.fullmatch(r"line (\d+), column (\d+)\)", place):
        line, column, ended = int(match[1]), int(match[2]), False
    else:
        line, column, ended = text.count("\n") + 1, len(text.rpartition("\n")[2]) + 1, True
    lines = text.split("\n")
    if lines[line - 1].startswith(_CONFLICT_MARKS):
        why, hint = "A merge left both sides in the file.", "keep one side, and delete the marks"
        return Finding(
            "NP001",
            "not valid TOML: a merge conflict is not resolved",
            why,
            hint,
            where=Place(source, line, column),
        )
    fault = _find_fault(lines, what or message, line, column, ended)
    what, hint = (
        hide_secrets(source, told) for told in (f"not valid TOML: {fault.what}", fault.hint)
    )
    return Finding("NP001", what, _WHY, hint, where=Place(source, fault.line, fault.column))


def _find_fault(lines: list[str], message: str, line: int, column: int, ended: bool) -> Fault:
    """Return the fault for a parser error, with the place to fix."""
    if re.match(
        r"(Illegal|Found invalid) character '\\n'|Unterminated string|Expected (\"'\"|'\"')$",
        message,
    ):
        return _find_open_string(lines, line)
    if message.startswith(("Expected \"'''\"", 'Expected \'"""\'')):
        return _find_open_block(lines)
    told = f"{message[:1].lower()}{message[1:]}"
    if (
        (char := lines[line - 1][column - 1 : column])
        and not char.isprintable()
        and ord(char) > _LAST_ASCII
    ):
        return Fault(
            f"U+{ord(char):04X} looks like a blank and is none",
            "write a blank in its place, or delete it",
            line,
            column,
        )
    if message.startswith(("Cannot overwrite a value", "Duplicate inline table key")):
        found = _find_repeated_key(lines, line)
        return found or Fault(
            "a key is set twice",
            "a key can occur only once in its table: remove one of them",
            line,
            column,
        )
    if message.startswith("Cannot declare"):
        return _find_repeated_table(lines, line) or Fault(
            told, "write each [table] once, with all its keys below it", line, column
        )
    if message.startswith("Invalid value"):
        before, said = lines[line - 1][: column - 1], lines[line - 1].partition("#")[0]
        if ended and ("=" not in said or before.count("[") > before.count("]")):
            return Fault(*_SAYINGS["Unclosed array"], line, column)
        if not before.strip() and _STATEMENT.match(said):
            return Fault(*_SAYINGS["Unclosed array"], *_find_open_list(lines, line))
        return Fault(*_describe_bare_value(lines[line - 1], column), line, column)
    if message.startswith("Expected newline or end of document"):
        return _describe_rest(lines[line - 1], line, column)
    if message.startswith("Expected '=' after a key"):
        colon = re.match(r"[ \t]*[\w.-]+[ \t]*:", lines[line - 1])
        hint = (
            "write key = value: TOML has no colon there"
            if colon
            else "write key = value; a table is written [table]"
        )
        if table := re.fullmatch(r"([\w.-]+)[ \t]*:[ \t\r]*", lines[line - 1]):
            hint = f"write [{table[1]}], and key = value below it"
        if blanks := re.match(r"[ \t]*([\w-]+(?:[ \t]+[\w-]+)+)[ \t]*=", lines[line - 1]):
            hint = (
                f"write {'_'.join(blanks[1].split())} = ...; a key with blanks in it needs quotes"
            )
        return Fault("a key without a value", hint, line, column)
    before = lines[line - 1][: column - 1]
    if message.startswith("Invalid statement") and re.match(r"[ \t]*[{}\"]", lines[line - 1]):
        return Fault(
            "neither a key nor a [table]; it looks like JSON",
            "write [options], and key = value below it",
            line,
            column,
        )
    if "inline table" in message or (
        message.startswith("Invalid") and before.count("{") > before.count("}")
    ):
        hint = "write { a = 1, b = 2 } on one line, or a [table] of its own"
        return Fault("a table in braces is not closed on its line", hint, line, column)
    for beginning, saying in _SAYINGS.items():
        if message.startswith(beginning):
            return Fault(*saying, line, column)
    hint = "correct the line; strings need quotes, and a key can occur only once in its table"
    return Fault(f"the text ends too early: {told}" if ended else told, hint, line, column)


def _describe_rest(text: str, line: int, column: int) -> Fault:
    """Return the fault for text that follows a value on its line."""
    rest = text[column - 1 :].strip()
    number = re.search(r"=[ \t]*([-+]?[0-9][0-9_]*(?:\.[0-9]+)?)[ \t]*$", text[: column - 1])
    if not rest:
        return Fault(
            "the line ends with a lone carriage return", "end lines with a line feed", line, column
        )
    if rest in (",", ";"):
        return Fault(
            f"{format_short_value(rest)} follows the value", f"take the {rest} out", line, column
        )
    if number and number[1].lstrip("+-") == "0" and (digits := re.match(r"[0-9]+", rest)):
        return Fault("a number begins with 0", f"write {int(digits[0])}", line, number.start(1) + 1)
    if number and re.fullmatch("[A-Za-z%]+", rest):
        what = f"{text[number.start(1) :].strip()} is no value"
        return Fault(
            what,
            f"write {number[1]}, in the unit of the option; text needs quotes",
            line,
            number.start(1) + 1,
        )
    hint = "write one key = value on a line; text needs quotes"
    return Fault(f"{format_short_value(rest)} follows the value", hint, line, column)


_SAYINGS = {
    "Unclosed array": (
        "a list is not closed, or lacks a comma",
        "separate the elements with commas, and end the list with ]",
    ),
    "Unescaped '\\'": (
        "a backslash that escapes nothing",
        "double each backslash, or use single quotes, in which it is literal",
    ),
    "Invalid statement": (
        "neither a key nor a [table]",
        "write key = value; a comment begins with #",
    ),
    "Invalid initial character": (
        "neither a key nor a [table]",
        "write key = value; a comment begins with #",
    ),
    "Cannot mutate immutable namespace": (
        "a table in braces is complete, and takes no more keys",
        "write the key between the braces, or the table as [table]",
    ),
    "Expected ']'": ("the name of a table is not closed", "write [table], or [table.below]"),
}


def _find_open_string(lines: list[str], line: int) -> Fault:
    """Return the start of a string that is not closed on its line."""
    if sum(text.count(mark) for text in lines for mark in _BLOCK_MARKS) % 2:
        return _find_open_block(lines)
    line -= line > 1 and not lines[line - 1].strip()  # the parser stopped after the end of the line
    quote, place, skipped = "", -1, False
    for index, char in enumerate(lines[line - 1]):
        if skipped:
            skipped = False
        elif quote:
            skipped = char == "\\" and quote == '"'
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote, place = char, index
        elif char == "#":
            break
    hint = (
        f"end it with {quote or 'its quote'} on the same "
        "line, or use three quotes for a multi-line string"
    )
    return Fault(
        "a string is not closed", hint, line, place + 1 if quote else len(lines[line - 1]) + 1
    )


def _find_open_list(lines: list[str], line: int) -> tuple[int, int]:
    """Return the start of the list that a line continues: the last statement above it
    that opens one.
    """
    for number in range(line - 1, 0, -1):
        if (match := _STATEMENT.match(lines[number - 1])) and (
            place := lines[number - 1].find("[", match.end())
        ) >= 0:
            return number, place + 1
    return line, 1


def _find_open_block(lines: list[str]) -> Fault:
    """Return the start of the multi-line string that is never closed: the last three quotes."""
    marks = [
        (number, match)
        for number, text in enumerate(lines, 1)
        for match in re.finditer("|".join(_BLOCK_MARKS), text)
    ]
    line, match = marks[-1]
    return Fault(
        "a string of several lines is not closed",
        f"end it with {match[0]}",
        line,
        match.start() + 1,
    )


def _find_repeated_key(lines: list[str], line: int) -> Fault | None:
    """Return the key that a line repeats, with the line that sets it first."""
    match = _STATEMENT.match(lines[line - 1])
    if match is None:
        return None
    table, first = "", 0
    for number, text in enumerate(lines[: line - 1], 1):
        if header := _HEADER.match(text):
            table, first = header[1], 0
        elif (
            not first
            and (other := _STATEMENT.match(text))
            and _normalize_key(other[1]) == _normalize_key(match[1])
        ):
            first = number
    if not first:
        return None
    where = f" in [{table}]" if table else ""
    what = f"{format_short_value(match[1])} is set twice{where}, first in line {first}"
    return Fault(what, "keep one of the two lines", line, match.start(1) + 1)


def _find_repeated_table(lines: list[str], line: int) -> Fault | None:
    """Return the table that a line repeats, with the line that defines it first."""
    match = _HEADER.match(lines[line - 1])
    if match is None:
        return None
    for number, text in enumerate(lines[: line - 1], 1):
        if (other := _HEADER.match(text)) and _normalize_key(other[1]) == _normalize_key(match[1]):
            hint = f"move its keys into the table of line {number}"
            hint += "; each override is written [[override]]" if match[1] == "override" else ""
            return Fault(
                f"[{match[1]}] is defined twice, first in line {number}",
                hint,
                line,
                match.start(1) + 1,
            )
    return None


def _normalize_key(text: str) -> str:
    return re.sub(r"[\s\"']", "", text)


def _say_how_to_leave_out(before: str) -> str:
    """Return how to leave a value out, depending on the text before it on its line."""
    if "=" not in before or before.count("[") > before.count("]"):
        return "omit it from the list"
    return "omit the key; to remove a parent's value, list its name in profile.unset"


def _describe_bare_value(text: str, column: int) -> tuple[str, str]:
    """Return the message and hint for an invalid bare value, with the value to write."""
    rest = text[column - 1 :]
    if not rest.split("#")[0].strip():
        return (
            "a key without a value",
            'write one after the =: a number, true, false, or "text" in quotes',
        )
    word = re.split(r"[\s,\]}#]", rest, maxsplit=1)[0] or rest[0]
    what = f"{format_short_value(word)} is no value"
    if word.lower() in _WORDS:
        number = {"true": 1, "false": 0}[_WORDS[word.lower()]]
        return what, f"write {_WORDS[word.lower()]}, or {number} where the option takes a number"
    if word.lower() in _NOTHINGS:
        return f"{what}: TOML has no null value", _say_how_to_leave_out(text[: column - 1])
    if word[0] in _CURLY_QUOTES:
        straight = format_short_value(rest.split("#")[0].strip().strip(_CURLY_QUOTES))
        return f"{what}: its quotes are not straight ones", f"write {straight}"
    if re.fullmatch(r"[A-Za-z_./~$-][^\"']*", word):
        return what, f"text needs quotes: {format_short_value(word)}"
    return what, 'write a number, true, false, or "text" in quotes'
