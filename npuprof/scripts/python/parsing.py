"""Parses any bytes to a syntax tree; errors are recorded, never raised."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from npuprof.model import Finding, Place, Record
from npuprof.system import decode_safely

#: Longer scripts are data; their trees would take a hundred times their size.
LARGEST_SCRIPT = 4_000_000

# Statements of Python 2. Possessive blanks avoid quadratic backtracking.
_PRINT = re.compile(
    r"^(?P<before>\s*+(?:(?:else|try|finally)\s*+:|(?:if|elif|for|while|with|except)\b.*?:)?\s*+)"
    r"print\b(?!\s*\()(?!\s*=).*$"
)
_EXCEPT = re.compile(r"^(?P<before>\s*+except\s++.+?),\s*+(?P<name>[A-Za-z_]\w*+)\s*+:")
_BLANK = r"[ \t\f\r]"
_PYTHON2 = re.compile(
    rf"^{_BLANK}*+(?:print{_BLANK}++(?:[^\s(=]|$)|print$"
    rf"|except{_BLANK}++.+?,{_BLANK}*+[A-Za-z_]\w*+{_BLANK}*+:)",
    re.MULTILINE,
)


class Misfit(Record):
    """Why bytes are not a script: message and hint, and the line, 0 for the whole file."""

    message: str
    hint: str
    line: int = 0


class Script:
    """A Python text and its tree; ``tree`` is None if it cannot be parsed."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.problems: list[Finding] = []
        self.tree: ast.Module | None = None
        self.index: Any = None  #: the ``NodeIndex`` of its tree
        self.text = ""
        self.is_python2 = False
        self._lines: list[str] = []
        self._line, self._bytes, self._passed = 0, b"", (0, 0)
        text = self._decode_bytes(data)
        if text is None:
            return
        self.text = text
        self._parse_text()

    @property
    def lines(self) -> list[str]:
        """Its lines, which few files need."""
        if not self._lines:
            # str.splitlines() also splits at form feeds and others, where Python counts no line
            self._lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return self._lines

    def add_script_problem(
        self,
        what: str,
        why: str,
        hint: str,
        line: int = 0,
        column: int = 0,
        severity: str = "warning",
    ) -> None:
        """Record a fault of the file itself."""
        self.problems.append(
            Finding(
                "NP801", what, why, hint, where=Place(self.path, line, column), severity=severity
            )
        )

    def column(self, line: int, offset: int) -> int:
        """Return the column, from 1, of a byte offset in a line."""
        if line != self._line:
            text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
            self._line = line
            self._bytes = b"" if text.isascii() else text.encode()
            self._passed = (0, 0)
        if not self._bytes:
            return offset + 1
        # each byte is scanned once, from left to right
        start, characters = self._passed if self._passed[0] <= offset else (0, 0)
        characters += len(decode_safely(self._bytes[start:offset]))
        self._passed = offset, characters
        return characters + 1

    def _decode_bytes(self, data: bytes) -> str | None:
        if misfit := find_misfit(data):
            why = "Python cannot read it, so nothing in it can run."
            self.add_script_problem(misfit.message, why, misfit.hint, misfit.line)
            return None
        try:
            return data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
        except (SyntaxError, UnicodeError, LookupError) as error:
            # LookupError: the declared codec is unknown, or is none for text
            line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
            what = f"the file cannot be decoded: {error}"
            why = "Python rejects it; it was read as Latin-1."
            self.add_script_problem(what, why, "save it as UTF-8", line)
        return data.decode("latin-1")

    def _parse_text(self) -> None:
        try:
            self.tree = parse_python(self.text)
        except (SyntaxError, ValueError) as error:
            if self._parse_python2():
                return
            line = getattr(error, "lineno", 0) or 0
            column = max(getattr(error, "offset", 0) or 0, 0)
            # Python appends "(<unknown>, line 3)" for a text without a file
            message, _, _ = str(getattr(error, "msg", error)).partition(" (<unknown>")
            what = f"the file is not Python: {message}"
            why = "Nothing in it was read."
            self.add_script_problem(what, why, "correct it there", line, column)
        except (RecursionError, MemoryError):
            what = "the file is nested too deeply to be read"
            self.add_script_problem(what, "Python itself gives up on it.", "flatten it")

    def _parse_python2(self) -> bool:
        """Parse Python 2 as Python 3, rewritten in place so that line numbers stay the same."""
        is_python2 = bool(_PYTHON2.search(self.text))
        if not is_python2 and "\t" not in self.text:
            return False
        lines = []
        for written in self.lines:
            # Python 2 expands a tab to the next multiple of eight columns
            line = written.expandtabs(8)
            line = _PRINT.sub(_silence_print, line)
            line = _EXCEPT.sub(r"\g<before> as \g<name>:", line)
            lines.append(line)
        try:
            self.tree = parse_python("\n".join(lines) + "\n")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        self.is_python2 = is_python2
        what = "the file is Python 2" if is_python2 else "the file mixes tabs and blanks"
        why = "Python 3 rejects it; it was read as far as its shape allows."
        self.add_script_problem(what, why, "port it, or omit it", severity="info")
        return True


def find_misfit(data: bytes) -> Misfit | None:
    """Return why bytes are not a script; None for a script."""
    if len(data) > LARGEST_SCRIPT:
        return Misfit(
            f"the file is not read: {len(data) / 1e6:.1f} MB are too much for a script",
            "name the script that sets the options",
        )
    has_zero = b"\0" in data
    # UTF-16 text without ASCII characters may have no zero byte
    if not has_zero and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    line = data.count(b"\n", 0, data.find(b"\0")) + 1 if has_zero else 0
    what = "the file is binary, UTF-16 or UTF-32"
    return Misfit(what, "name the script itself, or save it as UTF-8", line)


def _silence_print(match: re.Match[str]) -> str:
    """Return ``pass`` for a print statement; the line itself if it continues on the next."""
    line = match[0]
    opened = sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
    # without this line, the next ones would be no statement
    is_continued = opened != 0 or line.rstrip().endswith("\\")
    return line if is_continued else f"{match['before']}pass"


def parse_python(text: str) -> ast.Module:
    """Return the tree of a text, without Python's warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def iterate_comments(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the comments of a Python text, up to the first error of the tokenizer.

    Python 2 and mixed tabs are such errors.
    """
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token
