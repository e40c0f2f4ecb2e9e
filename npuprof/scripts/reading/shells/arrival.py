"""Variables that a shell script sets, but none of its programs gets."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import dropwhile

from npuprof import catalog
from npuprof.model import Record
from npuprof.scripts.python.environ import is_of_ascend_family
from npuprof.scripts.reading.shells.known_variables import ASSIGNMENT
from npuprof.scripts.reading.shells.sourcing import VENDORS
from npuprof.scripts.script_records import (
    LOST,
    NEVER_CALLED,
    TAKEN_BACK,
    Branches,
    ScriptSetting,
    are_exclusive,
)
from npuprof.scripts.shell_lexer import Command, Word, parse_shell_commands

PREFIXES = frozenset(("nohup", "time", "exec", "sudo", "env", "command", "builtin", "!"))
#: Programs that run another program after their own arguments.
WRAPPERS = frozenset(("timeout", "nice", "numactl", "taskset", "stdbuf"))
#: Commands that start no program for which a variable may be meant.
_INERT = re.compile(
    r":|\[\[?|alias|awk|basename|break|cat|cd|chmod|chown|continue|cp|cut|date|declare|df"
    r"|dirname|du|echo|exit|export|false|free|getopts|grep|head|hostname|ifconfig|ip|kill|let|ln"
    r"|local|ls|lscpu|mkdir|mv|nproc|npu-smi|pgrep|pkill|popd|printf|ps|pushd|pwd|read|readlink"
    r"|readonly|realpath|return|rm|sed|seq|set|shift|shopt|sleep|sort|sysctl|tail|tar|tee|test"
    r"|touch|tr|true|type|typeset|ulimit|umask|uniq|unset|unzip|wait|wc|which"
)
_LAUNCH = re.compile(
    r"python[\d.]*|torchrun|accelerate|deepspeed|msrun|mpi(?:run|exec).*|horovodrun|vllm|srun"
    r"|llamafactory-cli|mindie\w*|atc(?:\.bin)?|(?:ba)?sh|[\w.-]+\.sh"
)
_SUBSTITUTION = re.compile(r"(?:[$<>]\((?!\()|`)(.*).", re.DOTALL)
#: What follows an unquoted semicolon of a value: ``level1:ring``.
_REST = re.compile(r"(?:\w+=level\d|[\w-]+):[\w.-]+")
_COMMENT = re.compile(r"^\s*#.*", re.MULTILINE)


class Step(Record):
    """One command, its words after keywords, and what is around it.

    ``shells`` are the subshells, those of pipes and background jobs included. An ``is_certain``
    command is outside of everything.
    """

    command: Command
    words: Sequence[Word]
    branches: Branches
    shells: set[int]
    function: str
    is_looped: bool
    is_idle: bool
    is_certain: bool


def name_program(word: Word) -> str:
    """Return the name of a program without its folder."""
    return word.text.rpartition("/")[2]


def mark_lost(
    text: str,
    steps: Sequence[Step],
    settings: Sequence[ScriptSetting],
    unexported: Sequence[ScriptSetting],
) -> list[ScriptSetting]:
    """Return the settings of a script, with the reason if no program gets a variable.

    ``unexported`` ones are added if that is certain. The order of a setting is the number of its
    step, from 1. In a file that starts no known program, which others may source, only broken
    values count.
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
        for reason in [f"{LOST}it is not exported; write export {setting.name}=…"]
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
        self.text = _COMMENT.sub("", text)
        self.lines = text.split("\n")
        self.steps = steps
        #: numbers of the steps that may pass the environment on; a trap runs at the end
        self.runs = [
            number
            for number, step in enumerate(steps, 1)
            if not step.is_idle and _starts_program(step.command, step.words)
        ]
        if "trap " in self.text:
            self.runs.append(len(steps) + 1)
        self.launches = [step for step in steps if not step.is_idle and _is_launch(step.words)]
        #: whether a command is named by a variable, which may be any function
        self.is_open = any(step.words and step.words[0].open_part for step in steps)

    def find_reason(self, setting: ScriptSetting, following: ScriptSetting | None) -> str:
        """Return why no program gets a variable as written, and the fix; empty if one may."""
        step = self.steps[setting.order - 1]
        if rest := self._find_rest(step, setting):
            return f"the value ends before {rest}; write it in quotes"
        if not self.launches:
            return ""
        if setting.unused.endswith(NEVER_CALLED):
            called = setting.unused.removesuffix(NEVER_CALLED)
            return "" if self.is_open else f"{called}; call it, or delete it"
        after = self.runs[bisect_right(self.runs, setting.order) :]
        if step.shells:
            runs = self.runs if step.is_looped else after
            may_arrive = any(
                number > len(self.steps) or self.steps[number - 1].shells >= step.shells
                for number in runs
            )
            return "" if may_arrive else "its subshell starts no program; set it outside"
        if step.function or setting.unused:
            return ""
        if not after and not step.is_looped and not self._is_read(setting, len(self.lines)):
            before = [
                launch
                for launch in self.launches
                if not are_exclusive(step.branches, launch.branches)
            ]
            if not before:
                return ""
            last = before[-1].command
            line, *_ = last.call or (last[0].line,)
            return f"nothing starts after it; set it before line {line}"
        if following is None or not step.is_certain:
            return ""
        is_between = after and after[0] <= following.order
        is_same = (setting.value, setting.reason) == (following.value, following.reason)
        is_used = is_same or is_between or self._is_read(setting, following.line)
        if is_used or not self.steps[following.order - 1].is_certain:
            return ""
        return f"line {following.line} overwrites it before a program starts; delete one of them"

    def _find_rest(self, step: Step, setting: ScriptSetting) -> str:
        """Return the word after an export that was meant as a part of its value."""
        at = [(word.line, word.column) for word in step.words]
        position = setting.line, setting.column
        if position not in at or step.words[0].text not in ("export", "declare"):
            return ""
        words = list(step.words[at.index(position) + 1 :])
        following = self.steps[setting.order : setting.order + 1]
        if not words and following:
            words = list(following[0].command)
            is_rest = len(words) == 1 and words[0].line == setting.line
            return words[0].text if is_rest and _REST.fullmatch(words[0].text) else ""
        name = words[0].text if words else ""
        is_name = name.isupper() and name.isidentifier()
        if not name or "=" in name or is_name or words[0].open_part:
            return ""
        is_set = re.search(rf"\b(?:{re.escape(name)}\+?=|for {re.escape(name)}\b)", self.text)
        return "" if is_set else name

    def _is_read(self, setting: ScriptSetting, last: int) -> bool:
        """Return whether the script reads a variable from its line to another one."""
        lines = "\n".join(self.lines[setting.line - 1 : last])
        return re.search(rf"\$\{{?{setting.name}\b", lines) is not None

    def is_unexported(self, setting: ScriptSetting) -> bool:
        """Return whether the script only assigns a variable, and nothing else names it."""
        # a sourced file may export it
        is_sourcing = any(step.words and _sources(step.words) for step in self.steps)
        if is_sourcing or setting.unused or not self.launches or not _is_judged(setting):
            return False
        return not re.search(rf"\b{setting.name}\b(?!=)", self.text)


def _sources(words: Sequence[Word]) -> bool:
    """Return whether a command sources an unread file, except those of CANN."""
    files = words[1:2] if words[0].text in ("source", ".") else []
    return any(not VENDORS.search(file.text) for file in files)


def _starts_program(command: Command, words: Sequence[Word]) -> bool:
    """Return whether a command may pass the environment to a program of interest."""
    for word in (*command, *command.redirected):
        for part in word.parts:
            match = None if isinstance(part, str) else _SUBSTITUTION.fullmatch(part[0])
            inner = parse_shell_commands(match[1]) if match else ()
            if any(_starts_program(command, command) for command in inner):
                return True
    words = _strip(words)
    if not words or words[0].text in ("source", "."):
        return bool(words) and _sources(words)
    return not _INERT.fullmatch(name_program(words[0]))


def _is_launch(words: Sequence[Word]) -> bool:
    words = _strip(words)
    if not words or any(word.text in ("-c", "pip") for word in words[1:3]):
        return False
    is_wrapped = name_program(words[0]) in WRAPPERS
    return any(_LAUNCH.fullmatch(name_program(word)) for word in words[: None if is_wrapped else 1])


def _strip(words: Sequence[Word]) -> list[Word]:
    """Return words after assignments and prefixes."""
    return list(
        dropwhile(lambda word: word.keyword in PREFIXES or ASSIGNMENT.match(word.text), words)
    )
