"""What a record leaves out of command lines, variables and values, as it may log somebody in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.document.secrets import TOKEN_ANYWHERE, hide_credentials
from npuprof.runs.logins import hide_logins
from npuprof.runs.records import HIDDEN
from npuprof.runs.secretnames import SECRET_NAME, is_secret

_FLAG = re.compile(rf"--?{SECRET_NAME}", re.IGNORECASE)
_ASSIGNED = re.compile(rf"({SECRET_NAME})=(.+)", re.IGNORECASE | re.DOTALL)
#: The same within a longer text: a script for a shell, a header, JSON.
_VALUE = r"(?:bearer|basic|token|apikey|negotiate)\s+[^\s\"']+|\"[^\"]*\"?|'[^']*'?|(?![<>])[^\s\"';&|,})\]]+"
_INSIDE = re.compile(rf"(?<![\w.-])({SECRET_NAME})([\"']?\s*[=:]\s*|(?<=\w)\s+(?!-))({_VALUE})", re.IGNORECASE)
#: A header: all that stands in it, where it is a word of its own or in quotes.
_HEADER = re.compile(r"(-H\s*|--header=)?((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*).+", re.IGNORECASE | re.DOTALL)
_QUOTED_HEADER = re.compile(r"([\"'])((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)(?:(?!\1).)+", re.IGNORECASE | re.DOTALL)
#: A user with a password before a host, without a scheme: ``me:pw@host.example.org``; images and presets have an @ as well.
_HOST = r"\d{1,3}(?:\.\d{1,3}){3}|localhost|[A-Za-z][\w-]*(?:\.[\w-]+)*\.[A-Za-z]{2,}|[A-Za-z][\w.-]*(?=:)"
_AT_HOST = re.compile(rf"(?<![\w./:@+-])(?!mailto:|sip:)([A-Za-z_][\w.-]*:)(?!git@)[^\s'\"/@:][^\s'\"@]{{0,200}}@(?!sha\d)(?={_HOST})")


def hide_address(text: str) -> str:
    """Return a text without what logs anybody in where it is an address."""
    return hide_credentials(text) if "://" in text else _AT_HOST.sub(rf"\1{HIDDEN}@", text)


def hide_arguments(words: Sequence[str]) -> list[str]:
    """Return words of a command line without what logs anybody in."""
    return hide_logins([_hide_argument(word, before) for before, word in zip(["", *words], words, strict=False)])


def hide_text(text: str) -> str:
    """Return the text of a variable or a setting without what logs anybody in."""
    return hide_arguments([text])[0]


def _hide_argument(word: str, before: str) -> str:
    if (header := _HEADER.fullmatch(word)) is not None:
        return f"{header[1] or ''}{header[2]}{header[3]}{HIDDEN}"
    if _FLAG.fullmatch(before) and not word.startswith("-") and is_secret(before, word):
        return HIDDEN
    if (match := _ASSIGNED.fullmatch(word)) is not None and is_secret(match[1], match[2]):
        return f"{match[1]}={HIDDEN}"
    return hide_address(TOKEN_ANYWHERE.sub(HIDDEN, _INSIDE.sub(_hide_inside, _QUOTED_HEADER.sub(rf"\1\2\3{HIDDEN}", word))))


def _hide_inside(match: re.Match[str]) -> str:
    name, joint, value = match.groups()
    quote = value[0] if value[0] in "\"'" else ""
    is_tested = value.startswith("?") and match.string[: match.start()].endswith("${")
    if (joint.isspace() and not name.startswith("-")) or value.startswith("$") or is_tested or not is_secret(name, value.strip("\"'")):
        return match[0]
    return f"{name}{joint}{quote}{HIDDEN}{quote}"
