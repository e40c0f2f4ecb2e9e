"""Passwords on command lines that no name tells: behind a user (``-u user:password``), and in flags that some programs have for them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from npuprof.runs.records import HIDDEN


class _Program(NamedTuple):
    """A program, the flag that it has for a password, whether that may be a word of its own or must be part of the flag's."""

    name: re.Pattern[str]
    flag: str
    apart: bool


_PROGRAMS = (
    _Program(re.compile(r"(?:mysql|mariadb)[\w-]*"), "-p", False),
    _Program(re.compile(r"sshpass|mongo\w*|login"), "-p", True),  # docker login, podman login
    _Program(re.compile(r"redis-cli"), "-a", True),
    _Program(re.compile(r"ldap\w+"), "-w", True),
    _Program(re.compile(r"curl"), "-b", True),
)
#: A flag that names a user, and what stands for it: in the same word, or alone.
_USER_FLAG = re.compile(r"-[uU]|--(?:proxy-?)?user(?:name)?|--login|--userpass")
_JOINED_USER = re.compile(r"(-[uU]|--(?:proxy-?)?user(?:name)?=|--login=|--userpass=)(.+)", re.DOTALL)
#: A user with a password; a path behind the colon is of a host, and numbers are those of a user and a group.
_USER = re.compile(r"([\"']?[\w.@+\\-]+[:%])(?![/\\])([^\s\"']+)([\"']?)")
_NUMBERS = re.compile(r"\d+:\d+")
#: The words of a script for a shell, and what stands between its commands.
_PIECE = re.compile(r"\s+|[|;&()]+|[^\s|;&()]+")


def hide_logins(words: Sequence[str]) -> list[str]:
    """Return words of a command line without passwords; in a word with blanks, which may be a script, those of the script."""
    hider = _Hider()
    return [_hide_in_script(word) if any(blank in word for blank in " \n\t") else hider.hide(word) for word in words]


def _hide_in_script(text: str) -> str:
    hider = _Hider()
    return "".join(piece if piece.isspace() else hider.hide(piece) for piece in _PIECE.findall(text))


class _Hider:
    """Goes through the words of a command line, and knows what the last ones were."""

    def __init__(self) -> None:
        self._program: _Program | None = None
        self._before = ""

    def hide(self, word: str) -> str:
        """Return the next word without a password."""
        before, self._before = self._before, word
        if word[:1] in "|;&()":
            self._program = None
            return word
        program = self._program
        if program is not None and program.apart and before == program.flag and not word.startswith("-"):
            self._program = None  # it has one, and may be followed by a command with flags of its own: sshpass -p PW ssh -p 22
            return HIDDEN
        if program is not None and word.startswith(program.flag) and word != program.flag:
            self._program = None
            return f"{program.flag}{HIDDEN}"
        if _USER_FLAG.fullmatch(before):
            return _hide_password(word)
        if (joined := _JOINED_USER.fullmatch(word)) is not None:
            return f"{joined[1]}{_hide_password(joined[2])}"
        name = os.path.basename(word.strip("\"'"))
        self._program = next((one for one in _PROGRAMS if one.name.fullmatch(name)), self._program)
        return word


def _hide_password(user: str) -> str:
    match = _USER.fullmatch(user)
    return user if match is None or _NUMBERS.fullmatch(user) else f"{match[1]}{HIDDEN}{match[3]}"
