"""Passwords on command lines that no name tells: behind a user (``-u user:password``), in flags of some programs, in pipes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from npuprof.runs.records import HIDDEN
from npuprof.runs.secretnames import is_random, is_secret


class _Program(NamedTuple):
    """A program, the flag that it has for a password, whether that may be a word of its own or must be part of the flag's."""

    name: re.Pattern[str]
    flag: str
    apart: bool


_PROGRAMS = (
    _Program(re.compile(r"(?:mysql|mariadb)[\w-]*|7z[ar]?"), "-p", False),
    _Program(re.compile(r"sshpass|mongo\w*|twine|login"), "-p", True),  # docker login, podman login
    _Program(re.compile(r"redis-cli"), "-a", True),
    _Program(re.compile(r"ldap\w+"), "-w", True),
    _Program(re.compile(r"curl"), "-b", True),
    _Program(re.compile(r"ssh-keygen"), "-N", True),
    _Program(re.compile(r"openssl"), "-k", True),
    _Program(re.compile(r"zip|unzip|ipmitool|sqlcmd|bcp"), "-P", True),
)
#: Programs whose users log in with ``-u``, and those whose users are of a system, with a group behind the colon.
_CLIENTS = re.compile(r"curl|https?|lftp|smbclient|rpcclient|net|svn|nc?ftp\w*|artifactory|jf")
_SYSTEMS = re.compile(r"docker|podman|nerdctl|buildah|kubectl|oc|chroot|chown|install|rsync|sudo|srun")
#: A flag that names a user, and what stands for it: in the same word, or alone.
_USER_FLAG = re.compile(r"-[uU]|--(?:proxy-?)?user(?:name)?|--login|--userpass")
_JOINED_USER = re.compile(r"(-[uU]|--(?:proxy-?)?user(?:name)?=|--login=|--userpass=)(.+)", re.DOTALL)
#: A user with a password; a path behind the colon is of a host, and numbers are those of a user and a group.
_USER = re.compile(r"([\"']?[\w.@+\\-]+([:%,]))(?![/\\])([^\s\"']+)([\"']?)")
_NUMBERS = re.compile(r"\d+:\d+")
_PLAIN = re.compile(r"[a-z_.-]+")
#: The words of a script for a shell, and what stands between its commands.
_PIECE = re.compile(r"\s+|[|;&()]+|[^\s|;&()]+")
#: Commands that read a password where nobody sees it, so that somebody else writes it.
_READER = re.compile(
    r"--pass(?:word|phrase)?-(?:stdin|fd)|--with-token|--stdin\b|\bsudo\s+(?:-\w+\s+)*-\w*S\b"
    r"|^\s*(?:sudo\s+)?(?:chpasswd|passwd|kinit|cryptsetup|su)\b"
)
_WRITERS = frozenset(("echo", "printf"))
#: Words of commands that keep something, behind which are its name and what it is.
_KEEPERS = frozenset(("set", "config", "--global", "--local", "--system"))


def hide_logins(words: Sequence[str]) -> list[str]:
    """Return words of a command line without passwords; in a word with blanks, which may be a script, those of the script."""
    hider = _Hider()
    return [_hide_in_script(word) if any(blank in word for blank in " \n\t") else hider.hide(word) for word in words]


def _hide_in_script(text: str) -> str:
    hider = _Hider()
    commands: list[list[str]] = [[]]
    for piece in _PIECE.findall(text):
        if piece[0] in "|;&()":
            hider = _Hider()
            commands += [[piece], []]
        else:
            commands[-1].append(piece if piece.isspace() else hider.hide(piece))
    for place, pieces in enumerate(commands):
        if _READER.search("".join(pieces)):
            _hide_written(commands[place - 2] if place > 1 and commands[place - 1] == ["|"] else [], pieces)
    return "".join(piece for pieces in commands for piece in pieces)


def _hide_written(writer: list[str], reader: list[str]) -> None:
    """Hide what a command writes for another that reads a password, and what stands behind ``<<<`` there."""
    words = [place for place, piece in enumerate(writer) if not piece.isspace()]
    if words and writer[words[0]] in _WRITERS:
        for place in words[1:]:
            writer[place] = _hide_word(writer[place])
    for place, piece in enumerate(reader):
        if piece.startswith("<<<"):
            last = place if piece != "<<<" else min(place + 2, len(reader) - 1)
            reader[last] = f"{'<<<' if last == place else ''}{_hide_word(reader[last].removeprefix('<<<'))}"


def _hide_word(word: str) -> str:
    """Return a word without what it says, in its quotes: flags, formats and variables stay."""
    plain = word.strip("\"'")
    return word if plain.startswith(("-", "$", "%")) or not plain else word.replace(plain, HIDDEN)


class _Hider:
    """Goes through the words of a command line, and knows what the last ones were."""

    def __init__(self) -> None:
        self._program: _Program | None = None
        self._client = self._system = self._logs_in = False
        self._before = self._earlier = ""

    def hide(self, word: str) -> str:
        """Return the next word without a password."""
        earlier, before = self._earlier, self._before
        self._earlier, self._before = before, word
        program = self._program
        if program is not None and program.apart and before == program.flag and not word.startswith("-"):
            self._program = None  # it has one, and may be followed by a command with flags of its own: sshpass -p PW ssh -p 22
            return HIDDEN
        if program is not None and word.startswith(program.flag) and word != program.flag:
            self._program = None
            return f"{program.flag}{HIDDEN}"
        if _USER_FLAG.fullmatch(before) or (self._client and before == "-a"):
            return self._hide_password(before, word)
        if (joined := _JOINED_USER.fullmatch(word)) is not None:
            return f"{joined[1]}{self._hide_password(joined[1], joined[2])}"
        if (earlier in _KEEPERS and is_secret(before, word)) or (self._logs_in and before == "password"):
            return _hide_word(word)
        if self._logs_in and is_random(word) and (before == "--relogin" or not before.startswith("-")):
            return HIDDEN
        name = os.path.basename(word.strip("\"'"))
        self._program = next((one for one in _PROGRAMS if one.name.fullmatch(name)), self._program)
        self._client = self._client or _CLIENTS.fullmatch(name) is not None
        self._system = self._system or _SYSTEMS.fullmatch(name) is not None
        self._logs_in = self._logs_in or name == "login"
        return word

    def _hide_password(self, flag: str, user: str) -> str:
        """Return a user without the password; what is behind the colon may be a group, or the second part of any other thing."""
        match = _USER.fullmatch(user)
        if match is None or _NUMBERS.fullmatch(user) or (match[2] == "," and not self._client):
            return user
        if not self._client:
            own = user.strip("\"'").partition(match[2])[::2]
            if self._system or own[0] == own[1] or (flag in ("-u", "-U") and all(map(_PLAIN.fullmatch, own))):
                return user
        return f"{match[1]}{HIDDEN}{match[4]}"
