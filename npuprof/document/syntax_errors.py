"""Syntax errors of TOML texts: the parser's error as a clear message, at the place to fix."""

from __future__ import annotations

import re

from npuprof.document.keys import format_short_value
from npuprof.document.secrets import hide_secrets
from npuprof.model import Finding, Place, Record

_CONFLICT_MARKERS = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
_WHY = "Nothing of the file can be used until it can be read."
_BLOCK_QUOTES = ('"""', "'''")
_SEGMENT = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_HEADER = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\[\]]+?)[ \t]*\]")
#: The start of a line, up to a comment or a string that is not closed.
_CLOSED = re.compile(r"""\A(?:[^"'#]|"(?:[^"\\]|\\.)*+"|'[^']*')*+""")
_STATEMENT = re.compile(rf"[ \t]*({_SEGMENT}(?:[ \t]*\.[ \t]*{_SEGMENT})*)[ \t]*=")
#: What users write for TOML's booleans.
_BOOLEANS = {
    "true": "true",
    "yes": "true",
    "on": "true",
    "false": "false",
    "no": "false",
    "off": "false",
}
_LAST_ASCII = 0x7F
_CURLY_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
#: What users write for a missing value, from other languages; quoted they would be strings.
_NULLS = frozenset(("none", "null", "nil", "~", "undefined"))


class SyntaxFault(Record):
    """A syntax error: its message and its hint, its line and column (from 1)."""

    what: str
    hint: str
    line: int
    column: int


def build_syntax_finding(source: str, text: str, message: str) -> Finding:
    """Return the finding for an error of the TOML parser."""
    what, _, location = message.rpartition(" (at ")
    match = re.fullmatch(r"line (?P<line>\d+), column (?P<column>\d+)\)", location)
    if match:
        line = int(match["line"])
        column = int(match["column"])
    else:  # the parser reached the end of the text
        line = text.count("\n") + 1
        column = len(text.rpartition("\n")[2]) + 1
    lines = text.split("\n")
    # the parser's message would be about the marker's characters
    if lines[line - 1].startswith(_CONFLICT_MARKERS):
        what = "not valid TOML: a merge conflict is not resolved"
        why = "A merge left both sides in the file."
        hint = "keep one side, and delete the marks"
        return Finding("NP001", what, why, hint, where=Place(source, line, column))
    fault = _find_fault(lines, what or message, line, column, ended=match is None)
    # the message may quote a line with a password
    what = hide_secrets(source, f"not valid TOML: {fault.what}")
    hint = hide_secrets(source, fault.hint)
    return Finding("NP001", what, _WHY, hint, where=Place(source, fault.line, fault.column))


def _find_fault(lines: list[str], message: str, line: int, column: int, ended: bool) -> SyntaxFault:
    """Return the fault for a message of tomli, with the place to fix.

    ``ended`` is set if the text ends there.
    """
    if re.match(
        r"(Illegal|Found invalid) character '\\n'|Unterminated string|Expected (\"'\"|'\"')$",
        message,
    ):
        return _find_open_string(lines, line)
    if message.startswith(("Expected \"'''\"", 'Expected \'"""\'')):
        return _find_open_block(lines)
    text = lines[line - 1]
    char = text[column - 1 : column]
    # a no-break space, for example, as copied from a web page
    if char and not char.isprintable() and ord(char) > _LAST_ASCII:
        what = f"U+{ord(char):04X} looks like a blank and is none"
        return SyntaxFault(what, "write a blank in its place, or delete it", line, column)
    if message.startswith(("Cannot overwrite a value", "Duplicate inline table key")):
        hint = "a key can occur only once in its table: remove one of them"
        repeated = _find_repeated_key(lines, line)
        return repeated or SyntaxFault("a key is set twice", hint, line, column)
    lower_message = f"{message[:1].lower()}{message[1:]}"
    if message.startswith("Cannot declare"):
        hint = "write each [table] once, with all its keys below it"
        repeated = _find_repeated_table(lines, line)
        return repeated or SyntaxFault(lower_message, hint, line, column)
    if message.startswith("Invalid value"):
        return _find_value_fault(lines, line, column, ended)
    if message.startswith("Expected newline or end of document"):
        return _describe_rest(text, line, column)
    if message.startswith("Expected '=' after a key"):
        return SyntaxFault("a key without a value", _suggest_statement(text), line, column)
    if message.startswith("Invalid statement") and re.match(r"[ \t]*[{}\"]", text):
        what = "neither a key nor a [table]; it looks like JSON"
        return SyntaxFault(what, "write [options], and key = value below it", line, column)
    before = text[: column - 1]
    is_brace_open = before.count("{") > before.count("}")
    if "inline table" in message or (message.startswith("Invalid") and is_brace_open):
        hint = "write { a = 1, b = 2 } on one line, or a [table] of its own"
        return SyntaxFault("a table in braces is not closed on its line", hint, line, column)
    for beginning, (what, hint) in _EXPLANATIONS.items():
        if message.startswith(beginning):
            return SyntaxFault(what, hint, line, column)
    what = f"the text ends too early: {lower_message}" if ended else lower_message
    hint = "correct the line; strings need quotes, and a key can occur only once in its table"
    return SyntaxFault(what, hint, line, column)


def _find_value_fault(lines: list[str], line: int, column: int, ended: bool) -> SyntaxFault:
    """Return the fault for an invalid value: perhaps the list before it is not closed."""
    text = lines[line - 1]
    before = text[: column - 1]
    code = text.partition("#")[0]
    what, hint = _EXPLANATIONS["Unclosed array"]
    if ended and ("=" not in code or before.count("[") > before.count("]")):
        return SyntaxFault(what, hint, line, column)
    # the parser takes the next statement for an element of the list above it
    if not before.strip() and _STATEMENT.match(code):
        return SyntaxFault(what, hint, *_find_open_list(lines, line))
    return SyntaxFault(*_describe_bare_value(text, column), line, column)


def _suggest_statement(text: str) -> str:
    """Return the hint for a line with a key and no value."""
    if match := re.match(r"[ \t]*([\w-]+(?:[ \t]+[\w-]+)+)[ \t]*=", text):
        return f"write {'_'.join(match[1].split())} = ...; a key with blanks in it needs quotes"
    if match := re.fullmatch(r"([\w.-]+)[ \t]*:[ \t\r]*", text):
        return f"write [{match[1]}], and key = value below it"
    if re.match(r"[ \t]*[\w.-]+[ \t]*:", text):
        return "write key = value: TOML has no colon there"
    return "write key = value; a table is written [table]"


def _describe_rest(text: str, line: int, column: int) -> SyntaxFault:
    """Return the fault for text that follows a value on its line."""
    rest = text[column - 1 :].strip()
    if not rest:
        what = "the line ends with a lone carriage return"
        return SyntaxFault(what, "end lines with a line feed", line, column)
    what = f"{format_short_value(rest)} follows the value"
    if rest in (",", ";"):
        return SyntaxFault(what, f"take the {rest} out", line, column)
    number = re.search(r"=[ \t]*([-+]?[0-9][0-9_]*(?:\.[0-9]+)?)[ \t]*$", text[: column - 1])
    if number:
        start = number.start(1)
        digits = re.match(r"[0-9]+", rest)
        # the parser ends the number after the zero
        if digits and number[1].lstrip("+-") == "0":
            return SyntaxFault("a number begins with 0", f"write {int(digits[0])}", line, start + 1)
        if re.fullmatch("[A-Za-z%]+", rest):
            what = f"{text[start:].strip()} is no value"
            hint = f"write {number[1]}, in the unit of the option; text needs quotes"
            return SyntaxFault(what, hint, line, start + 1)
    hint = "write one key = value on a line; text needs quotes"
    return SyntaxFault(what, hint, line, column)


#: Message and hint by the beginning of tomli's message.
_EXPLANATIONS = {
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


def _find_open_string(lines: list[str], line: int) -> SyntaxFault:
    """Return the start of a string that is not closed on its line."""
    # an open multi-line string makes every later quote look wrong
    if sum(text.count(quotes) for text in lines for quotes in _BLOCK_QUOTES) % 2:
        return _find_open_block(lines)
    if line > 1 and not lines[line - 1].strip():
        line -= 1  # the parser stopped after the end of the line
    text = lines[line - 1]
    rest = _CLOSED.sub("", text)
    quote = rest[:1].strip("#")
    hint = (
        f"end it with {quote or 'its quote'} on the same "
        "line, or use three quotes for a multi-line string"
    )
    column = len(text) + 1 - (len(rest) if quote else 0)
    return SyntaxFault("a string is not closed", hint, line, column)


def _find_open_list(lines: list[str], line: int) -> tuple[int, int]:
    """Return line and column of the list that a line continues, opened by a statement above it."""
    for number in range(line - 1, 0, -1):
        text = lines[number - 1]
        match = _STATEMENT.match(text)
        index = text.find("[", match.end()) if match else -1
        if index >= 0:
            return number, index + 1
    return line, 1


def _find_open_block(lines: list[str]) -> SyntaxFault:
    """Return the start of the multi-line string that is never closed: the last three quotes."""
    fault = SyntaxFault("a string of several lines is not closed", "", 0, 0)
    for line, text in enumerate(lines, 1):
        for match in re.finditer("|".join(_BLOCK_QUOTES), text):
            hint = f"end it with {match[0]}"
            fault = fault._replace(hint=hint, line=line, column=match.start() + 1)
    return fault


def _find_repeated_key(lines: list[str], line: int) -> SyntaxFault | None:
    """Return the key that a line repeats, with the line that sets it first."""
    match = _STATEMENT.match(lines[line - 1])
    if match is None:
        return None
    key = _normalize_key(match[1])
    table = ""
    first = 0
    for number, text in enumerate(lines[: line - 1], 1):
        # a key may occur again in another table
        if header := _HEADER.match(text):
            table = header[1]
            first = 0
        elif not first:
            other = _STATEMENT.match(text)
            if other and _normalize_key(other[1]) == key:
                first = number
    if not first:
        return None
    where = f" in [{table}]" if table else ""
    what = f"{format_short_value(match[1])} is set twice{where}, first in line {first}"
    return SyntaxFault(what, "keep one of the two lines", line, match.start(1) + 1)


def _find_repeated_table(lines: list[str], line: int) -> SyntaxFault | None:
    """Return the table that a line repeats, with the line that defines it first."""
    match = _HEADER.match(lines[line - 1])
    if match is None:
        return None
    name = match[1]
    for number, text in enumerate(lines[: line - 1], 1):
        other = _HEADER.match(text)
        if other and _normalize_key(other[1]) == _normalize_key(name):
            what = f"[{name}] is defined twice, first in line {number}"
            hint = f"move its keys into the table of line {number}"
            if name == "override":
                hint += "; each override is written [[override]]"
            return SyntaxFault(what, hint, line, match.start(1) + 1)
    return None


def _normalize_key(text: str) -> str:
    return re.sub(r"[\s\"']", "", text)


def _suggest_omission(before: str) -> str:
    """Return how to leave a value out, depending on the text before it on its line."""
    if "=" not in before or before.count("[") > before.count("]"):
        return "omit it from the list"
    return "omit the key; to remove a parent's value, list its name in profile.unset"


def _describe_bare_value(text: str, column: int) -> tuple[str, str]:
    """Return the message and hint for an invalid bare value, with the value to write."""
    rest = text[column - 1 :]
    value = rest.split("#")[0].strip()
    if not value:
        hint = 'write one after the =: a number, true, false, or "text" in quotes'
        return "a key without a value", hint
    token = re.split(r"[\s,\]}#]", rest, maxsplit=1)[0] or rest[0]
    what = f"{format_short_value(token)} is no value"
    boolean = _BOOLEANS.get(token.lower())
    if boolean:
        number = 1 if boolean == "true" else 0
        return what, f"write {boolean}, or {number} where the option takes a number"
    if token.lower() in _NULLS:
        return f"{what}: TOML has no null value", _suggest_omission(text[: column - 1])
    if token[0] in _CURLY_QUOTES:
        straight = format_short_value(value.strip(_CURLY_QUOTES))
        return f"{what}: its quotes are not straight ones", f"write {straight}"
    if re.fullmatch(r"[A-Za-z_./~$-][^\"']*", token):
        return what, f"text needs quotes: {format_short_value(token)}"
    return what, 'write a number, true, false, or "text" in quotes'
