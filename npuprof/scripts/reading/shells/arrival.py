"""Variables that a shell script sets, but none of its programs gets."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import dropwhile, islice
from typing import NamedTuple

from npuprof import catalog
from npuprof.scripts.python.environ import is_of_ascend_family
from npuprof.scripts.reading.shells.known_variables import ASSIGNMENT
from npuprof.scripts.reading.shells.launcher_options import STARTERS
from npuprof.scripts.reading.shells.sourcing import VENDORS
from npuprof.scripts.script_records import (
    LOST,
    TAKEN_BACK,
    ScriptSetting,
)
from npuprof.scripts.shell_lexer import Command, Word, parse_shell_commands
from npuprof.scripts.steps import count_steps

PREFIXES = frozenset(("nohup", "time", "exec", "sudo", "env", "command", "builtin", "!"))
#: Commands that start no program for which a variable may be meant.
_INERT = re.compile(
    r":|\[\[?|awk|basename|break|cat|cd|chmod|chown|continue|cp|cut|date|declare|df"
    r"|dirname|echo|exit|export|false|grep|head|hostname|ifconfig|ip|kill|let|ln"
    r"|local|ls|mkdir|mv|nproc|npu-smi|pgrep|pkill|popd|printf|ps|pushd|pwd|read|readlink"
    r"|realpath|return|rm|sed|seq|set|shift|shopt|sleep|sort|tail|tar|tee|test"
    r"|touch|tr|true|typeset|ulimit|uniq|unset|wait|wc|which"
)
_LAUNCH = re.compile(
    r"(?:(?:timeout|nice|numactl|taskset|stdbuf) .*? )?(?:\S*/)?(?:(?:python[\d.]*|(?:ba)?sh)"
    rf"(?! -c| -m (?:pip|venv)| setup\.py)|{STARTERS}|atc(?:\.bin)?|[\w.-]+\.sh)(?: |$)"
)
_SUBSTITUTION = re.compile(r"(?:[$<>]\((?!\()|`)(.*).", re.DOTALL)
#: What follows an unquoted semicolon of a value: ``level1:ring``.
_REST = re.compile(r"(?:\w+=level\d|[\w-]+):[\w.-]+")
_READ = re.compile(r"(?<=\$)\w+|(?<=\$\{)\w+|\b\w++(?=\+=)")  # += appends
_USED = re.compile(r"\b\w++(?!=)")
_SET = re.compile(r"\b(?:(\w+)\+?=|for (\w+))")
_COMMENT = re.compile(r"^[ \t]*#.*", re.MULTILINE)


class Step(NamedTuple):
    """One command, its words after keywords, and what is around it.

    ``shells`` are the subshells, those of pipes and background jobs included. An ``is_certain``
    command is outside of everything.
    """

    command: Command
    words: Sequence[Word]
    shells: set[int]
    function: str
    is_looped: bool
    is_idle: bool
    is_certain: bool


def mark_lost(
    text: str,
    steps: Sequence[Step],
    settings: Sequence[ScriptSetting],
    unexported: Sequence[ScriptSetting],
) -> list[ScriptSetting]:
    """Return the settings of a script, with the reason if no program gets a variable.

    ``unexported`` ones are added if that is certain. The order of a setting is the number of its
    step, from 1. A file that starts no known program may be sourced, so that nothing is certain.
    """
    numbers = [number for number, setting in enumerate(settings) if _is_judged(setting)]
    if not numbers and not unexported:
        return list(settings)
    script = _Script(text, steps)
    marked = list(settings)
    following: dict[str, ScriptSetting] = {}
    for number in reversed(numbers):
        setting = settings[number]
        if reason := script.find_reason(setting, following.get(setting.name)):
            marked[number] = setting._replace(unused=f"{LOST}{reason}")
        following[setting.name] = setting
    return marked + [
        setting.with_value(value=None, reason=reason)._replace(unused=reason)
        for setting in unexported
        if script.is_unexported(setting)
        for reason in [f"{LOST}it is not exported; write export {setting.name} below it"]
    ]


def _is_judged(setting: ScriptSetting) -> bool:
    """Return whether a setting is a variable of the whole script, and meant for programs."""
    variable = catalog.find_variable(setting.name)
    if variable is None or not setting.order or setting.command or setting.location.call:
        return False
    # scripts use names such as RANK_ID for themselves
    is_own = variable.common_name or variable.freeze in ("launcher", "never")
    return setting.reason != TAKEN_BACK and (not is_own or is_of_ascend_family(setting.name))


class _Script:
    """The steps of a script, with those that start programs."""

    def __init__(self, text: str, steps: Sequence[Step]) -> None:
        self.text = text
        self.steps = steps
        #: numbers of the steps that may pass the environment on
        self.runs = [
            number
            for number, step in enumerate(steps, 1)
            if not step.is_idle and _starts_program(step.command, step.words)
        ]
        self.launches = [
            step
            for step in (steps[number - 1] for number in self.runs)
            if _LAUNCH.match(" ".join(word.text for word in _strip(step.words)[:20]))
        ]
        self.reads = frozenset(_READ.findall(text))
        # a sourced file may export variables
        self.is_sourcing = any(_sources(step.words) for step in steps)
        #: whether a command is named by a variable, which may be any function
        self.is_open = any(step.words and step.words[0].open_part for step in steps)

    @cached_property
    def uses(self) -> frozenset[str]:
        """The names in the script, except those of assignments and comments."""
        return frozenset(_USED.findall(_COMMENT.sub("", self.text)))

    def find_reason(self, setting: ScriptSetting, following: ScriptSetting | None) -> str:
        """Return why no program gets a variable, and the fix; empty if one may."""
        step = self.steps[setting.order - 1]
        if not self.launches:
            return ""
        if step.is_idle:
            called, _, _ = setting.unused.partition(",")
            return "" if self.is_open or not step.function else f"{called}; call it, or delete it"
        at = bisect_right(self.runs, setting.order)
        if step.shells:
            count_steps(len(self.runs) // 10)
            may_arrive = any(
                self.steps[number - 1].shells >= step.shells
                for number in islice(self.runs, 0 if step.is_looped else at, None)
            )
            return "" if may_arrive else "its subshell starts no program; set it outside"
        if step.function or step.is_looped or setting.unused or setting.name in self.reads:
            return ""
        if at == len(self.runs):
            last = self.launches[-1].command
            line, *_ = last.call or (last[0].line,)
            return f"nothing starts after it; set it before line {line}"
        if following is None or self.runs[at] <= following.order:
            return ""
        is_same = (setting.value, setting.reason) == (following.value, following.reason)
        is_certain = step.is_certain and self.steps[following.order - 1].is_certain
        if is_same or not is_certain:
            return ""
        return f"line {following.line} overwrites it before a program starts; delete one of them"

    def is_unexported(self, setting: ScriptSetting) -> bool:
        """Return whether the script only assigns a variable, and nothing else names it."""
        if self.is_sourcing or setting.unused or not self.launches or not _is_judged(setting):
            return False
        return setting.name not in self.uses


def explain_cut(text: str, argument: Word, rest: Sequence[Word], after: Sequence[Word]) -> str:
    """Return why an export in a script ends before its value does, empty if it does not.

    ``rest`` are its further arguments, ``after`` is the next command.
    """
    word, *others = rest or after or [argument]
    name = word.text
    if rest:
        is_name = (name.isupper() and name.isidentifier()) or name in _list_set_names(text)
        is_cut = not ("=" in name or is_name or word.open_part)
    else:
        is_cut = not others and word.line == argument.line and bool(_REST.fullmatch(name))
    value = " ".join([argument.value.text, *(word.text for word in rest or after)]).strip()
    meant = f'{argument.text.partition("=")[0]}="{value}"'
    return f"{LOST}the value ends before {name}; write {meant}" if is_cut else ""


@lru_cache(1)
def _list_set_names(text: str) -> frozenset[str]:
    """Return the names that a text assigns, and those of its loops."""
    return frozenset(name for pair in _SET.findall(text) for name in pair)


def _sources(words: Sequence[Word]) -> bool:
    """Return whether a command sources an unread file, except those of CANN."""
    files = words[1:2] if words and words[0].text in ("source", ".") else []
    return any(not VENDORS.search(file.text) for file in files)


def _starts_program(command: Command, words: Sequence[Word]) -> bool:
    """Return whether a command may pass the environment to a program of interest."""
    for word in (*command, *command.redirected):
        for part in word.parts if word.open_part else ():
            if not isinstance(part, str) and _substitutes_program(part[0]):
                return True
    words = _strip(words)
    if not words or words[0].text in ("source", "."):
        return _sources(words)
    return not _INERT.fullmatch(words[0].text)


@lru_cache(1000)  # files have many in common
def _substitutes_program(expansion: str) -> bool:
    match = _SUBSTITUTION.fullmatch(expansion)
    inner = parse_shell_commands(match[1]) if match else ()
    return any(_starts_program(command, command) for command in inner)


def _strip(words: Sequence[Word]) -> list[Word]:
    """Return words after assignments and prefixes."""
    return list(
        dropwhile(lambda word: word.keyword in PREFIXES or ASSIGNMENT.match(word.text), words)
    )
