"""Shell scripts: exported variables, variables of single commands, and ``atc`` command lines."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Sequence
from functools import cached_property
from itertools import dropwhile

from npuprof import catalog
from npuprof.catalog import build_finding
from npuprof.model import Finding, Place, Record
from npuprof.scripts import atc_flags
from npuprof.scripts.python import environ
from npuprof.scripts.python.expressions import cut_text
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import program_arguments
from npuprof.scripts.reading.shells.known_variables import (
    ASSIGNMENT,
    VARIABLE,
    fill_word,
    find_constants,
    list_assignments,
    list_reads,
)
from npuprof.scripts.reading.shells.launcher_options import (
    LAUNCHERS,
    find_directive_exports,
    find_given,
)
from npuprof.scripts.reading.shells.sourcing import MAY_SOURCE, Sourcing
from npuprof.scripts.reading.variable_files import (
    build_variable_setting,
    decode_text,
    leave_out,
    settle,
)
from npuprof.scripts.script_records import (
    TAKEN_BACK,
    Branches,
    BrokenExport,
    Followed,
    ImportedFile,
    Position,
    ScriptSetting,
    Site,
    SourcedEnvironment,
)
from npuprof.scripts.shell_lexer import Command, Word, parse_shell_commands

_WHOLE_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[@\]\}")
_NAME = re.compile(r"[\w.-]+")
_ATC = re.compile(rb"\batc\b")
_OPTION_EXPORT = re.compile(rb"export[ \t]+([a-z][a-z0-9]*_[a-z0-9_]+)=")

_PREFIX_WORDS = {"nohup", "time", "exec", "sudo", "env", "command", "builtin", "!"}
#: The supported commands, and commands that can precede them.
_READ = frozenset(
    (
        ":",
        ".",
        "source",
        "export",
        "declare",
        "typeset",
        "unset",
        "set",
        "atc",
        "atc.bin",
        "python",
        "python3",
        *LAUNCHERS,
        *program_arguments.list_starts(),
    )
)
#: Programs that run another program after their own arguments.
_WRAPPERS = frozenset(("timeout", "nice", "numactl", "taskset", "stdbuf"))
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?=([^${}`]*)\}")
#: Commands that may export a variable.
_EXPORTS = frozenset(("export", "declare", "typeset"))
_LOOPS = ("for", "while", "until", "select")
_CLOSING = ("fi", "esac", "done", "}")
#: Conditions that are always true.
_ALWAYS = (":", "true")
#: Characters that are changed when an unquoted variable is expanded.
_UNSAFE = frozenset("*?[\\'\"")
#: The maximum nesting of blocks.
_MOST_BLOCKS = 200
#: Limits: the length of a variable that is used in its own new value, and of a condition.
_LONGEST, _LONGEST_TEST = 4096, 200
#: Commands that are run for their exit code.
_TESTS = {
    "[",
    "[[",
    "test",
    "grep",
    "which",
    "command",
    "type",
    "!",
    "false",
    "diff",
    "cmp",
    "pgrep",
}


def mentions_setting(data: bytes) -> bool:
    """Return whether a script can contain settings."""
    exported = (catalog.find_option(name.decode()) for name in _OPTION_EXPORT.findall(data))
    return (
        environ.mentions_variable(data)
        or _ATC.search(data) is not None
        or program_arguments.mentions_program(data)
        or any(exported)
    )


def sources_settings(path: str, data: bytes, modules: Modules) -> bool:
    """Return whether a script sources a file of its tree that can contain settings."""
    text = decode_text(path, data, []) or ""
    if modules.locate_file is None or not MAY_SOURCE.search(text):
        return False
    commands = Sourcing(path, modules).expand_commands(list(parse_shell_commands(text)))
    return any(
        mentions_setting(text.encode(errors="replace"))
        for text in {command.text for command in commands if command.files}
    )


def import_shell_script(
    path: str, text: str, modules: Modules | None = None, plain: bool = False
) -> ImportedFile:
    """Return the content of a shell script.

    In a ``plain`` one every variable counts, exported or not.

    With ``modules``, sourced files of its tree are included.
    """
    problems = []
    commands = list(parse_shell_commands(text))
    if commands and commands[-1][-1].span[1] > len(text):
        problems.append(_build_open_quote(path, commands[-1][-1]))
    unread: object = None
    if modules is not None and modules.locate_file is not None and MAY_SOURCE.search(text):
        sourcing = Sourcing(path, modules)
        commands = sourcing.expand_commands(commands)
        problems += sourcing.list_problems()
        unread = sourcing.left
    reading = _ShellReader(path, text, commands, plain)
    every = reading.collect_settings()
    if modules is not None and modules.locate_file is not None:
        every = tuple(program_arguments.follow_files(path, every, modules))
    if reading.too_deep:
        what = f"more than {_MOST_BLOCKS} nested branches"
        where = Place(path, reading.too_deep.line, reading.too_deep.column)
        problems.append(
            build_finding(
                "NP801", what, "Nothing after this place was read.", "flatten it", where=where
            )
        )
    notes = (
        *reading.notes,
        *(() if unread else list_reads(path, commands)),
    )  # an unread file may set them
    followed = dict.fromkeys(
        Followed(item.file, item.line, item.line, "") for item in every if item.location.call
    )
    return ImportedFile(
        path, every, tuple(reading.sites), tuple(problems), text, notes, followed=tuple(followed)
    )


def _build_open_quote(path: str, word: Word) -> Finding:
    what = "a quote or bracket of this word is never closed"
    why = "A shell treats the rest of the file as part of it, so settings there were not read."
    return build_finding("NP801", what, why, "close it", where=Place(path, word.line, word.column))


def find_shell_settings(
    path: str, text: str, at: Position, reason: str
) -> tuple[list[ScriptSetting], list[Site]]:
    """Return the settings of a file's part that a separate shell runs, and its conversions.

    The part begins ``at`` a line and column of the file. Its variables end with it: ``reason`` says
    why they are omitted.
    """
    reading = _ShellReader(path, text, list(parse_shell_commands(text, *at)))
    every = reading.collect_settings()
    settings = [
        leave_out(setting, reason) if setting.surface == "env" and setting.key else setting
        for setting in every
    ]
    return settings, reading.sites


class _Block:
    """A branch, loop, group or function around commands.

    ``number`` and ``arm`` identify a branch.
    """

    def __init__(self, kind: str, number: int, text: str, function: str = "") -> None:
        self.kind = kind
        self.number = number
        self.arm = 0
        self.text = text
        self.function = function
        self.left: Branches = ()  #: the condition after a command that leaves the function

    def open_arm(self, text: str) -> None:
        """Begin the next arm of an ``if``, the last one without a text."""
        self.arm = self.arm + 1 if text else -self.arm - 1
        self.text = text or cut_text(f"not ({self.text or ':'})", _LONGEST_TEST)


class _ShellReader:
    def __init__(self, path: str, text: str, commands: list[Command], plain: bool = False) -> None:
        self.path = path
        self.text = text
        self.commands = commands
        self.command = Command()
        self.number = 0  #: number of the command
        self.found: list[ScriptSetting] = []
        self.sites: list[Site] = []
        self.notes: list[Record] = []
        self.too_deep: Word | None = None
        self.constants = find_constants(commands)
        self.known: dict[str, str] = {}  #: constants assigned so far
        self.blocks: list[_Block] = []
        self.defined = ""
        self.test = ""
        self.ended: dict[
            str, str
        ] = {}  #: where a file has ended; the script itself has an empty name
        self.pending: dict[str, list[ScriptSetting]] = {}
        self.exported: set[str] = set()
        self.last: dict[str, str] = {}  #: current texts of exported variables
        self.exports_all = plain
        self.flags: dict[
            str, tuple[Branches, Sequence[Word], bool]
        ] = {}  #: flags in variables, in arrays or not

    def collect_settings(self) -> tuple[ScriptSetting, ...]:
        for variable, word, value in find_directive_exports(self.text, self.commands):
            self._add_variable(variable, word, value, exported=True)
        before = Command()
        for command in self.commands:
            self.number, self.command = self.number + 1, command
            self._note_test(before)
            self._read_command()
            for word in command:
                if (
                    "=" in word.text
                    and (match := ASSIGNMENT.match(word.text))
                    and match[1] in self.constants
                ):
                    self.known[match[1]] = self.constants[match[1]]
            before = command
            if len(self.blocks) > _MOST_BLOCKS:
                self.too_deep = command[0]
                break
        settings = sorted(
            self.found, key=lambda setting: (setting.order, setting.line, setting.column)
        )
        return tuple(setting._replace(order=0) for setting in settle(settings))

    @cached_property
    def named(self) -> set[str]:
        """The names that the script uses, such as called functions."""
        return {
            name
            for command in self.commands
            if not command.function
            for word in command
            for name in _NAME.findall(word.text)
        }

    @cached_property
    def named_by_exports(self) -> set[str]:
        """The names in commands that may export a variable assigned before."""
        exports = (
            words
            for command in self.commands
            if not _EXPORTS.isdisjoint(words := [word.text for word in command])
        )
        return {word.partition("=")[0].removesuffix("+") for words in exports for word in words}

    @property
    def branches(self) -> Branches:
        """The conditions of the command."""
        blocks = [(block.number, block.arm, block.text) for block in self.blocks if block.text]
        exits = next((block.left for block in reversed(self.blocks) if block.left), ())
        return (*blocks, *(((self.number, 0, self.test),) if self.test else ()), *exits)

    @property
    def function(self) -> str:
        """The function around the command, empty for none."""
        return next((block.function for block in reversed(self.blocks) if block.function), "")

    @property
    def idle(self) -> str:
        """Why the command never runs, empty if it may."""
        unused = next(
            (
                block.function
                for block in self.blocks
                if block.function and block.function not in self.named
            ),
            "",
        )
        if unused:
            return f"{unused}() is called nowhere, so this never runs"
        end = next(
            (self.ended[file] for file in ("", *self.command.files) if file in self.ended), ""
        )
        return f"the script ends in {end}, so this never runs" if end and not self.function else ""

    def _note_test(self, before: Command) -> None:
        """Record the condition of a command after ``&&`` or ``||``: the test before it."""
        if not self.command.join:
            self.test = ""
            return
        test = _format_words([word for word in before if word.keyword != "}"])
        if self.command.join == "||":
            self.test = f"not ({test})"
        elif before and before[0].text in _TESTS:
            self.test = (
                cut_text(f"({self.test}) and ({test})", _LONGEST_TEST) if self.test else test
            )

    def _read_command(self) -> None:
        if self.command.function:
            self.defined = self.command.function
            return
        words, block = self._follow_blocks(self.command)
        if words and words[0].keyword in ("exit", "return"):
            self._note_end(words[0])
        self._read_words(words)
        self.blocks += [block] if block else []

    def _note_end(self, word: Word) -> None:
        """Record where the script, a sourced file or a function may be left."""
        line = self._name_line(word)
        if word.text == "return" and self.function:
            block = next(block for block in reversed(self.blocks) if block.function)
            block.left = ((self.number, 0, f"{self.function}() is not left in {line}"),)
        elif self._is_certain() and (word.text == "exit" or self.command.file):
            self.ended.setdefault("" if word.text == "exit" else self.command.file, line)

    def _is_certain(self) -> bool:
        """Return whether the command is outside of branches, loops, functions and parentheses."""
        blocks_around = [
            block for block in self.blocks if block.kind != "{" or block.text or block.function
        ]
        return not (blocks_around or self.test or self.command.join or self.command.parentheses)

    def _name_file(self) -> str:
        return self.command.file or self.path

    def _name_line(self, word: Word) -> str:
        return (
            f"line {word.line} of {self.command.file}" if self.command.file else f"line {word.line}"
        )

    def _follow_blocks(self, words: list[Word]) -> tuple[list[Word], _Block | None]:
        """Return the words of a command without opening and closing blocks, and the block that
        begins after it.
        """
        first = words[0].keyword if words else ""
        rest = words[1:]
        if first in _CLOSING:
            self.blocks[-1:] = []
            return [], None
        if first in ("then", "do"):
            return self._follow_blocks(rest)
        if first in ("elif", "else") and self.blocks:
            self.blocks[-1].open_arm(_format_words(rest) if first == "elif" else "")
            return (rest, None) if first == "elif" else self._follow_blocks(rest)
        if first == "if":
            condition = _format_words(rest)
            return rest, _Block(first, self.number, condition if condition not in _ALWAYS else "")
        if first == "case":
            return [], _Block(first, self.number, f"case {rest[0].text}" if rest else "case")
        if first in _LOOPS:
            return rest if first in ("while", "until") else [], _Block(
                first, self.number, self._describe_loop(words)
            )
        if first != "{":  # no keyword of a block, or else or elif outside of one
            return words, None
        test, self.test = self.test, ""
        block = _Block(first, self.number, test, self.defined)
        self.defined = ""
        self.blocks.append(block)
        return self._follow_blocks(rest)

    def _describe_loop(self, words: list[Word]) -> str:
        """Return the condition of a loop that may have no iterations, empty for others."""
        if words[0].text in ("while", "until"):
            may_be_idle = len(words) != 2 or words[1].text not in _ALWAYS
        else:  # (( )) has no words
            may_be_idle = len(words) > 1 and not any(
                word.text != word.open_part or word.text.startswith(("$(", "`"))
                for word in words[3:]
            )
        return f"the loop in {self._name_line(words[0])} has a turn" if may_be_idle else ""

    def _read_words(self, words: list[Word]) -> None:
        first = words[0].text.rpartition("/")[2] if words else ""
        if first in _WRAPPERS:
            words = list(dropwhile(lambda word: word.text != "env", words))
            first = "env" if words else ""
        if not (
            first in _READ or first in _PREFIX_WORDS or (words and ASSIGNMENT.match(words[0].text))
        ):
            return
        words = _strip_prefix(words)
        assigned = list(list_assignments(words))
        words = _strip_prefix(words[len(assigned) :])
        for variable, word in assigned:
            if not words:
                self._assign(variable, word)
            elif words[0].keyword != "read":  # a builtin: its IFS is local
                self._add_variable(variable, word, word.value, exported=True, of_command=True)
        if words:
            self._read_program(words[0].text.rpartition("/")[2], words)

    def _read_program(self, name: str, words: list[Word]) -> None:
        if name in _EXPORTS:
            flags = "".join(word.text for word in words[1:] if word.text.startswith("-"))
            if "n" in flags:
                self._take_back(words[1:])
            elif name == "export" or not self.function:
                self._export(words[1:], name == "export" or "x" in flags)
        elif name == "unset":
            self._take_back(words[1:])
        elif name in (".", "source") and len(words) > 1 and words[1].text.endswith("set_env.sh"):
            self.notes.append(
                SourcedEnvironment(self._name_file(), words[0].line, words[0].column, words[1].text)
            )
        elif name == ":":
            for word in words[1:]:
                if match := _DEFAULT.fullmatch(word.open_part):
                    value = word.with_parts((f"${{{match[1]}:-{match[2]}}}",))
                    self._add_variable(
                        match[1], word, value, self.exports_all or match[1] in self.exported
                    )
        elif (
            name == "set"
            and not self.idle
            and len(words) > 1
            and words[-1].text in ("-a", "+a", "allexport")
        ):
            self.exports_all = words[1].text[0] == "-"
        elif name in LAUNCHERS:
            for variable, word, value in find_given(name, words[1:]):
                self._add_variable(variable, word, value, exported=True, of_command=True)
        elif (
            name in ("atc", "atc.bin") and not self.command.is_inner
        ):  # a text cannot contain a block
            self._add_conversion(words)
        if (started := program_arguments.find_start(words)) is not None:
            filled = self._fill_words(started[1])
            self.found += map(
                self._place,
                program_arguments.read_arguments(
                    self._name_file(), started[0], filled, self.command.text
                ),
            )

    def _assign(self, name: str, word: Word) -> None:
        self._keep_flags(name, word)
        if not word.items:
            self._note_export(name, self.exports_all)
            self._add_variable(name, word, word.value, self.exports_all or name in self.exported)

    def _note_export(self, name: str, is_exported: bool) -> None:
        is_asked = self.test or any(block.text for block in self.blocks if block.kind not in _LOOPS)
        if is_exported and not (self.idle or is_asked):
            self.exported.add(name)

    def _export(self, words: list[Word], is_exported: bool) -> None:
        for place, word in enumerate(words):
            follower = words[place + 1].keyword if place + 1 < len(words) else ""
            name = word.text.partition("=")[0].removesuffix("+")
            self._note_export(name, is_exported)
            if list(list_assignments([word])):
                self._add_variable(name, word, word.value, is_exported)
            elif (
                follower.startswith("=") or ("-" in name and "=" in word.text)
            ) and environ.is_ascend_variable(name.replace("-", "_")):
                broken = BrokenExport(
                    self.path, word.line, word.column, name.replace("-", "_"), name
                )
                self.notes += [broken] if not self.command.file else []
            elif is_exported:
                self.found += self.pending.pop(name, ())

    def _take_back(self, words: list[Word]) -> None:
        """Record that exported variables are unset."""
        known = (
            {setting.name for setting in self.found if setting.surface == "env"}
            if not self.idle
            else set()
        )
        for word in words:
            name = word.text.partition("=")[0]
            if name in known:
                self._add_variable(name, word, word.with_parts((name,)), True, TAKEN_BACK)

    def _add_variable(
        self,
        name: str,
        word: Word,
        value: Word,
        exported: bool,
        reason: str = "",
        of_command: bool = False,
    ) -> None:
        if (
            not exported
            and name not in self.named_by_exports
            and environ.find_variable_key(name) is None
        ):
            return  # of the script alone
        last = self.last.pop(name, None)
        own = {name: last} if last is not None and self._is_certain() else {}
        filled = fill_word(value, ChainMap(own, self._list_known()))
        reason = reason or (
            "depends on ~" if self.command.text.startswith(f"{name}=~", word.span[0]) else ""
        )
        place = word.line, word.column
        setting = build_variable_setting(self._name_file(), place, name, filled.parts, reason)
        setting = self._place(setting, self.function, of_command)
        if self.command.parentheses == 1 and not setting.unused:  # two begin an expression
            setting = setting._replace(unused="it is gone with the process of its own that sets it")
        is_text = (
            setting.assigned.written
            and len(setting.assigned.written) <= _LONGEST
            and not setting.reason
        )
        if is_text and not (setting.unused or setting.branches or self.command.parentheses):
            self.last[name] = setting.assigned.written
        (self.found if exported else self.pending.setdefault(name, [])).append(setting)

    def _list_known(self) -> dict[str, str]:
        """Return the constants assigned so far; a function may run after all of them."""
        return self.constants if self.function else self.known

    def _keep_flags(self, name: str, word: Word) -> None:
        """Record the words of an array, or the flags in a literal text, with their conditions."""
        self.flags.pop(name, None)
        text = word.value.text
        if word.text.endswith("+=") or word.open_part:
            return
        is_plain = (
            name in self.constants and text.lstrip().startswith("--") and not set(text) & _UNSAFE
        )
        if word.items or (is_plain and "IFS" not in self.command.text):
            items = word.items or [
                Word(word.line, word.column, (piece,), quoted=True, span=word.span)
                for piece in text.split()
            ]
            self.flags[name] = self.branches, items, bool(word.items)

    def _fill_words(self, words: Sequence[Word]) -> list[Word]:
        """Return words with constants and flag variables expanded: ``"${ARRAY[@]}"``, and ``$TEXT``
        without quotes.
        """
        filled: list[Word] = []
        for word in words:
            match = (
                (_WHOLE_ARRAY if word.quoted else VARIABLE).fullmatch(word.open_part)
                if word.text == word.open_part
                else None
            )
            name = (match[1] or match[match.re.groups]) if match else ""
            around, items, is_array = self.flags.get(name, ((), (word,), word.quoted))
            is_certain = self.branches[: len(around)] == around and is_array == word.quoted
            filled += items if is_certain else [word]
        return [fill_word(word, self._list_known()) for word in filled]

    def _add_conversion(self, words: list[Word]) -> None:
        command, line = self.command, words[0].line
        scope = f"atc@{command.file}:{line}" if command.file else f"atc@{line}"
        place = command.call or (line, words[0].column)
        self.sites.append(Site(scope, "atc", *place, "atc", True, None, self.branches))
        self.found += map(
            self._place, atc_flags.read_flags(self._name_file(), self._fill_words(words[1:]), scope)
        )

    def _place(
        self, setting: ScriptSetting, function: str = "", of_command: bool = True
    ) -> ScriptSetting:
        command = self._name_line(self.command[0]) if of_command else ""
        location = (
            setting.location._replace(call=self.command.call)
            if self.command.call
            else setting.location
        )
        branches = self.branches if setting.name else ()
        setting = setting._replace(
            location=location, function=function, branches=branches, command=command
        )
        return setting._replace(unused=self.idle or setting.unused, order=self.number)


def _strip_prefix(words: list[Word]) -> list[Word]:
    return list(dropwhile(lambda word: word.keyword in _PREFIX_WORDS, words))


def _format_words(words: Sequence[Word]) -> str:
    return cut_text(" ".join(word.text for word in words))
