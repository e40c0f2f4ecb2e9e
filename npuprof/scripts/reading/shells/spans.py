"""Parts of a shell script that have a process of their own, and loops that may have no turn.

What is exported in ``( ... )``, in a pipe or in the background is gone with it, unless something is started there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from npuprof.scripts.reading.shells.words import Command, Word

_OPENERS = ("then", "do", "else")
_CLOSING = {"if": "fi", "case": "esac", "{": "}", "for": "done", "while": "done", "until": "done", "select": "done"}
_LOOPS = ("for", "while", "until", "select")
_LIST = re.compile(r"\{[^{}]*(?:\.\.|,)[^{}]*\}")
#: Commands that start nothing which could read a variable of Ascend.
STARTING_NOTHING = frozenset(
    (
        "", ":", ".", "[", "[[", "]]", "alias", "awk", "basename", "break", "builtin", "cat", "cd", "chmod", "chown", "continue",
        "cp", "cut", "date", "declare", "dirname", "done", "echo", "elif", "esac", "exit", "export", "false", "fi", "find", "for",
        "function", "getopts", "grep", "hash", "head", "hostname", "if", "in", "kill", "let", "local", "ls", "mapfile", "mkdir",
        "mv", "nproc", "popd", "printf", "ps", "pushd", "pwd", "read", "readonly", "return", "rm", "sed", "select", "seq", "set",
        "shift", "shopt", "sleep", "sort", "tail", "tee", "test", "touch", "tr", "trap", "true", "type", "typeset", "ulimit",
        "umask", "unset", "until", "wait", "wc", "which", "while", "{", "}",
    )
)  # fmt: skip
#: What may stand before the name of a program.
_BEFORE = frozenset(
    ("!", "builtin", "command", "do", "elif", "else", "env", "exec", "if", "nohup", "sudo", "then", "time", "until", "while")
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def starts_something(words: Sequence[Word]) -> bool:
    """Return whether a command is none of those that surely start nothing which could read the environment."""
    at = 0
    while at < len(words) and (words[at].text in _BEFORE or _ASSIGNMENT.match(words[at].text)):
        at += 1
    return at < len(words) and words[at].text not in STARTING_NOTHING and not words[at].text.isdigit()  # exec 2>/dev/null


class Spans:
    """For commands by their number: whether they are lost with their process, and the loops that may have no turn."""

    def __init__(self, commands: Sequence[Command], count_defining_words: Callable[[Command], int]) -> None:
        self.lost: set[int] = set()
        self.doubtful: set[int] = set()  #: where such loops begin
        self._starting = [
            not (count := count_defining_words(command)) and starts_something(command[count:]) for command in commands
        ]  # fmt: skip
        for begin, end in _find_own_processes(commands, count_defining_words):
            last = max((at for at in range(begin, end + 1) if self._starting[at]), default=begin - 1)
            self.lost.update(range(last + 1, end + 1))
        for begin, end in _find_compounds(commands, count_defining_words):
            words = _strip_openers(commands[begin])
            if words[0].text in _LOOPS and _may_be_idle(words) and not any(self._starting[begin + 1 : end]):
                self.doubtful.add(begin)


def _strip_openers(words: Sequence[Word]) -> Sequence[Word]:
    while words and not words[0].quoted and words[0].text in _OPENERS:
        words = words[1:]
    return words


def _may_be_idle(words: Sequence[Word]) -> bool:
    """Return whether a loop may have no turn at all."""
    if words[0].text in ("while", "until"):
        return [word.text for word in words[1:]] not in (["true"], [":"]) or words[0].text == "until"
    if len(words) < 3:  # for ((...)), and over what the script is given
        return len(words) == 2
    return not any(any(isinstance(part, str) and part for part in word.parts) or word.text.startswith(("$(", "`")) for word in words[3:])


def _find_compounds(commands: Sequence[Command], count_defining_words: Callable[[Command], int]) -> list[tuple[int, int]]:
    """Return where loops, tests and groups begin and end, by the numbers of their commands."""
    found: list[tuple[int, int]] = []
    waiting: list[tuple[str, int]] = []
    for at, command in enumerate(commands):
        words = _strip_openers(command[count_defining_words(command) :])
        first = words[0].text if words and not words[0].quoted else ""
        if first in _CLOSING:
            waiting.append((_CLOSING[first], at))
        elif waiting and first == waiting[-1][0]:
            found.append((waiting.pop()[1], at))
    return found


def _find_own_processes(commands: Sequence[Command], count_defining_words: Callable[[Command], int]) -> list[tuple[int, int]]:
    found = [(at, at) for at, command in enumerate(commands) if command.before == "|" or command.after in ("|", "&")]
    found += [
        (begin, end)
        for begin, end in _find_compounds(commands, count_defining_words)
        if commands[begin].before == "|" or commands[end].after in ("|", "&")
    ]
    shells: dict[int, tuple[int, int]] = {}
    for at, command in enumerate(commands):
        for number in command.shells:
            shells[number] = shells.get(number, (at, at))[0], at
    return [*found, *shells.values()]
