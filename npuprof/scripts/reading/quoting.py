"""Words by the quoting rules of those who read them: each of them is a row of pieces, tried in turn."""

from __future__ import annotations

import re
from collections.abc import Callable

from npuprof.scripts.reading.variables import Parts

#: What one stretch of a word looks like, and what it says; what its reader would fill in is a one-tuple.
Piece = tuple[re.Pattern[str], Callable[[re.Match[str]], str | tuple[str]]]


def read_word(text: str, at: int, pieces: tuple[Piece, ...]) -> tuple[Parts, int]:
    """Return the word that begins at a place, and where it ends; nothing where none begins."""
    parts: list[str | tuple[str]] = []
    size = len(text)
    while at < size:
        for pattern, build in pieces:
            match = pattern.match(text, at)
            if match and match.end() > at:
                parts.append(build(match))
                at = match.end()
                break
        else:
            break
    return tuple(parts), at


def _keep(match: re.Match[str]) -> str:
    return match[1]


def _leave_open(match: re.Match[str]) -> tuple[str]:
    return (match[0],)


def _unescape(pattern: str, table: dict[str, str] | None = None) -> Callable[[re.Match[str]], str]:
    """Return what takes the escapes of a pattern back, whose first group is what is escaped."""
    escape = re.compile(pattern, re.DOTALL)
    known = table or {}
    return lambda match: escape.sub(lambda found: known.get(found[1], found[1]), match[1])


def _piece(pattern: str, build: Callable[[re.Match[str]], str | tuple[str]]) -> Piece:
    return re.compile(pattern, re.DOTALL), build


_RAW_QUOTES = _piece(r"'([^']*+)'", _keep)
_BACKSLASH = _piece(r"\\(?!\n)(.)", _keep)
_JOINED_LINES = _piece(r"\\\n", lambda match: "")
_NAME = r"[A-Za-z_]\w*+"
_DOLLAR = _piece(rf"\$(?:{_NAME}|\{{[^}}\n]*+\}}|\([^)\n]*+\))", _leave_open)

#: ``ENV`` of a Dockerfile; a backslash keeps what follows it from being filled in.
DOCKER: tuple[Piece, ...] = (
    _RAW_QUOTES,
    _piece(r'"((?:[^"\\$]|\\.)*+)"', _unescape(r'\\(["\\$])')),
    _piece(r'"(?:[^"\\]|\\.)*+"', _leave_open),
    _BACKSLASH,
    _DOLLAR,
    _piece(r"([^\s'\"\\$]++)", _keep),
)
#: A file of variables that systemd reads: quotes as in a shell, and nothing is filled in.
UNIT_FILE: tuple[Piece, ...] = (
    _RAW_QUOTES,
    _piece(r'"((?:[^"\\]|\\.)*+)"', _unescape(r'\\(["\\`$]|\n)', {"\n": ""})),
    _JOINED_LINES,
    _BACKSLASH,
    _piece(r"([^\n'\"\\]++)", _keep),
)
_DOTENV_CHARS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
#: A file of variables as python-dotenv reads it.
DOTENV: tuple[Piece, ...] = (
    _piece(r"'((?:[^'\\]|\\.)*+)'", _unescape(r"\\([\\'])")),
    _piece(r'"((?:[^"\\]|\\.)*+)"', _unescape(r"""\\([\\'"abfnrtv])""", _DOTENV_CHARS)),
)
