"""What a record leaves out of command lines, variables and values, as it may log somebody in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.document.secrets import TOKEN_ANYWHERE, hide_credentials
from npuprof.runs.logins import hide_logins
from npuprof.runs.records import HIDDEN

#: What stands in the name of a variable, or of an argument, that logs somebody in; tokenizers and authors do not.
_MARK = (
    r"token(?!i)|passw|passphrase|secret|credential|(?:api|access|private|signing)[-_]?key|auth(?!or(?!iz))|cookie"
    r"|(?<=[-_])pwd|pwd(?=[-_])|(?<![a-z])(?:pw|creds?)(?![a-z])"
    r"|(?:(?<![\w.])(?<!\w-)|(?:db|user|admin|root|login|smtp|ftp|proxy|redis|mysql)[-_]?)pass(?![\w-])"  # a compiler has passes, too
)
_NAME = rf"(?=[\w.-]*?(?:{_MARK}))[\w.-]++"  # looked through once: words of a command line may be long
_SECRET = re.compile(_MARK, re.IGNORECASE)
_FLAG = re.compile(rf"--?{_NAME}", re.IGNORECASE)
_ASSIGNED = re.compile(rf"({_NAME})=(.+)", re.IGNORECASE | re.DOTALL)
#: The same within a longer text: a script for a shell, a header, JSON.
_VALUE = r"(?:bearer|basic|token|apikey|negotiate)\s+[^\s\"']+|\"[^\"]*\"?|'[^']*'?|[^\s\"';&|,})\]]+"
_INSIDE = re.compile(rf"(?<![\w.-])({_NAME})([\"']?\s*[=:]\s*|(?<=\w)\s+(?!-))({_VALUE})", re.IGNORECASE)
#: A header: all that stands in it, where it is a word of its own or in quotes.
_HEADER = re.compile(r"(-H\s*|--header=)?((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*).+", re.IGNORECASE | re.DOTALL)
_QUOTED_HEADER = re.compile(r"([\"'])((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)(?:(?!\1).)+", re.IGNORECASE | re.DOTALL)
#: How many tokens a model reads is no secret, nor which words it takes for one, nor what kind a password is of.
_COUNT = re.compile(r"[\d.,_]{1,9}|(?:[\[<][\w/|]{1,12}[\]>],?)+")
_KIND = re.compile(r"[-_](?:type|mode|method|len|length|size|dim|count)$", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return whether what a name stands for may log somebody in."""
    return _SECRET.search(name) is not None


def hide_address(text: str) -> str:
    """Return a text without what logs anybody in where it is an address."""
    return hide_credentials(text) if "://" in text else text


def hide_arguments(words: Sequence[str]) -> list[str]:
    """Return words of a command line without what logs anybody in."""
    return hide_logins([_hide_argument(word, before) for before, word in zip(["", *words], words, strict=False)])


def hide_text(text: str) -> str:
    """Return the text of a variable or a setting without what logs anybody in."""
    return hide_arguments([text])[0]


def _hide_argument(word: str, before: str) -> str:
    if (header := _HEADER.fullmatch(word)) is not None:
        return f"{header[1] or ''}{header[2]}{header[3]}{HIDDEN}"
    if _FLAG.fullmatch(before) and not word.startswith("-") and not _is_count(before, word):
        return HIDDEN
    if (match := _ASSIGNED.fullmatch(word)) is not None and not _is_count(match[1], match[2]):
        return f"{match[1]}={HIDDEN}"
    return hide_address(TOKEN_ANYWHERE.sub(HIDDEN, _INSIDE.sub(_hide_inside, _QUOTED_HEADER.sub(rf"\1\2\3{HIDDEN}", word))))


def _hide_inside(match: re.Match[str]) -> str:
    name, joint, value = match.groups()
    if (joint.isspace() and not name.startswith("-")) or value.startswith("$") or _is_count(name, value):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{name}{joint}{quote}{HIDDEN}{quote}"


def _is_count(name: str, value: str) -> bool:
    if _KIND.search(name):
        return True
    return re.search(r"token|pass(?!w|p)", name, re.IGNORECASE) is not None and _COUNT.fullmatch(value) is not None
