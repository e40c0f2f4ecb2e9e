"""Shell scripts: exported variables, variables of single commands, and ``atc`` command lines."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import dropwhile, takewhile, zip_longest
from operator import attrgetter
from textwrap import dedent

from npuprof import catalog
from npuprof.catalog import build_finding
from npuprof.catalog.programs import find_program
from npuprof.model import Place, Record, find_nearest_names
from npuprof.scripts import atc_flags
from npuprof.scripts.python import environ
from npuprof.scripts.python.expressions import cut_text
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import program_arguments, training_launches
from npuprof.scripts.reading.python_scripts import import_python, mentions_python_setting
from npuprof.scripts.reading.shells.arrival import (
    PREFIXES,
    Step,
    explain_cut,
    mark_lost,
)
from npuprof.scripts.reading.shells.expansion import BLANK, Value, join_runs, list_runs
from npuprof.scripts.reading.shells.known_variables import (
    ASSIGNMENT,
    DECLARING,
    VARIABLE,
    fill_word,
    find_constants,
    find_expansion,
    list_assignments,
    list_changed,
    list_reads,
)
from npuprof.scripts.reading.shells.launcher_options import (
    LAUNCHERS,
    find_directive_exports,
    find_passed_variables,
)
from npuprof.scripts.reading.shells.slips import find_command_slips
from npuprof.scripts.reading.shells.sourcing import MAY_SOURCE, Sourcing
from npuprof.scripts.reading.shells.text_slips import ScriptText
from npuprof.scripts.reading.shells.used_files import list_used_files
from npuprof.scripts.reading.variable_files import (
    build_variable_setting,
    decode_text,
    leave_out,
    settle,
    split_references,
)
from npuprof.scripts.script_records import (
    OF_CONTAINER,
    OTHER,
    TAKEN_BACK,
    Branch,
    Branches,
    BrokenExport,
    Followed,
    ImportedFile,
    Position,
    ScriptSetting,
    Site,
    SourcedEnvironment,
    StartedProgram,
)
from npuprof.scripts.shell_lexer import Command, Word, join_assignment, parse_shell_commands
from npuprof.scripts.steps import count_steps

_ALL_ITEMS = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)\[[@*]\]\}")
#: What a shell replaces in double quotes.
_EXPANDED = re.compile(r"[$`]")
_NAME = re.compile(r"[\w.-]+")
#: An assignment of the separators, not in a shell of its own and not for one command.
_SEPARATOR = re.compile(
    r"[\n;][ \t]*(?:(?:export|local|declare)[ \t]+)?"
    r"IFS=(?!(?:'[^']*'|\"[^\"]*\"|[^\s'\"])*+[ \t]+\w)"
)
_REFERENCE = re.compile(r"(\$\{[^}]*\}|\$\([^)]*\)|\$\w+|`[^`]*`)")
_ATC = re.compile(rb"atc\b(?<!\watc)")
_OPTION_EXPORT = re.compile(rb"export[ \t]+([a-z][a-z0-9]*_[a-z0-9_]+)=")

#: The supported commands, and commands that can precede them.
_COMMANDS = frozenset((*LAUNCHERS, *PREFIXES, *program_arguments.list_starts()))
_BUILTINS = re.compile(r"[:.]|source|export|declare|typeset|unset|set|atc(?:\.bin)?|python3?")
#: Programs that run another program after their own arguments.
_WRAPPERS = frozenset(("timeout", "nice", "numactl", "taskset", "stdbuf"))
_DEFAULT = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*):?=(?P<value>[^${}`]*)\}")
#: Commands that may export a variable.
_EXPORTS = frozenset(("export", "declare", "typeset"))
_GONE = "it is gone with the process of its own that sets it"
#: A program without a launcher has as many arguments if it is one to train.
_MANY_ARGUMENTS = 5
_LOOPS = ("for", "while", "until", "select")
#: Other shells, templates, and braces that are no group of their own: if { TEST; }, for (( )) {.
_OTHER_SHELL = re.compile(
    r"\A#!(?![^\n]*\b(?:ba|da|k|a)?sh\b)|<%|\bcoproc\s"
    r"|(?:\b(?:if|while|until|time)|!)[ \t]+(?:\{|(?:if|for|while)\b)"
    r"|^[ \t]*for\b[^\n]*?(?:[;)]|(?<!\bdo)\n)\s*\{",
    re.MULTILINE,
)
_CLOSING = {"fi": ("if",), "esac": ("case",), "done": _LOOPS, "}": ("{",)}
#: The minimum similarity of a closing keyword and a slip for it.
_ALIKE = 0.75
#: Conditions that are always true.
_ALWAYS = (":", "true")
#: The maximum nesting of blocks.
_MOST_BLOCKS = 200
#: Limits: the length of a variable that is used in its own new value, and of a condition.
_LONGEST, _LONGEST_TEST = 4096, 200
_EXPORT_ALL = re.compile(r"(?<!\S)([-+])\w*(?:a|o allexport\b)")
#: Commands that are run for their exit code.
_TESTS = re.compile(r"\[\[?|test|grep|which|command|type|!|false|diff|cmp|pgrep")


def mentions_setting(data: bytes) -> bool:
    """Return whether a script can contain settings."""
    return (
        environ.mentions_variable(data)
        or _ATC.search(data) is not None
        or program_arguments.mentions_program(data)
        or training_launches.mentions_training(data)
        or (b"python" in data and mentions_python_setting(data))
        or any(catalog.find_option(name.decode()) for name in _OPTION_EXPORT.findall(data))
    )


def sources_settings(path: str, data: bytes, modules: Modules) -> bool:
    """Return whether a script sources a file of its tree that can contain settings."""
    text = decode_text(path, data, []) or ""
    if modules.locate_file is None or not MAY_SOURCE.search(text):
        return False
    sourcing = Sourcing(path, modules)
    possible = sourcing.join_possible(text)
    if possible and not mentions_setting(possible.encode(errors="replace")):
        return False
    commands = sourcing.expand_commands(list(parse_shell_commands(text)))
    return any(
        mentions_setting(text.encode(errors="replace"))
        for text in {command.text for command in commands if command.files}
    )


def import_shell_script(
    path: str,
    text: str,
    modules: Modules | None = None,
    plain: bool = False,
    is_part: bool = False,
) -> ImportedFile:
    """Return the content of a shell script, or of a block of a guide, which ``is_part`` of one.

    In a ``plain`` one every variable counts, exported or not. With ``modules``, sourced files of
    its tree are included.
    """
    problems = []

    def report(word: Word, what: str, why: str, hint: str) -> None:
        where = Place(path, *word.position)
        problems.append(build_finding("NP801", what, why, hint, where=where))

    if modules and modules.locate_file is None:
        modules = None
    commands = list(parse_shell_commands(text))
    # the lexer places the end of an unclosed word beyond the text
    own = (command for command in commands if not command.is_inner)
    words = (word for command in own for word in (*command, *command.redirected))
    if last := next((word for word in words if word.span[1] > len(text)), None):
        what = "a quote or bracket of this word is never closed"
        why = "A shell treats the rest of the file as part of it, so settings there were not read."
        report(last, what, why, "close it")
    has_unread = False
    if modules and MAY_SOURCE.search(text):
        sourcing = Sourcing(path, modules)
        commands = sourcing.expand_commands(commands)
        problems += sourcing.list_problems()
        has_unread = bool(sourcing.unread)
    reader = _ShellReader(path, text, commands, plain)
    settings = reader.collect_settings()
    if modules:
        settings = tuple(program_arguments.follow_files(path, settings, modules))
    if reader.too_deep:
        what = f"more than {_MOST_BLOCKS} nested branches"
        report(reader.too_deep, what, "Nothing after this place was read.", "flatten it")
    if reader.unpaired and not (is_part or _OTHER_SHELL.search(text)):
        what = f"{reader.unpaired.text} has no matching keyword"
        hints = (
            f"did you mean {name} in line {word.line}?"
            for word, *others in commands
            for name in find_nearest_names(word.text, _CLOSING, 1, _ALIKE)
            if not others and word.text != name
        )
        report(
            reader.unpaired, what, "The shell stops there.", next(hints, "add the missing keyword")
        )
    records = reader.other_records
    if not is_part:
        records += list_used_files(path, commands, reader.constants)
    if not has_unread:  # an unread file may set the variables
        records += list_reads(path, commands)
    starts = reader.unlaunched or any(isinstance(record, StartedProgram) for record in records)
    if starts or not (plain or is_part):
        problems += find_command_slips(path, commands)
    if starts and not is_part:
        unused, slips = ScriptText(path, text, commands, has_unread).find_slips()
        if (unused or slips) and not _OTHER_SHELL.search(text):
            problems += slips
            records += unused
    return ImportedFile(
        path,
        settings,
        tuple(reader.sites),
        tuple(problems),
        text,
        tuple(records),
        followed=tuple(
            dict.fromkeys(
                Followed(setting.file, setting.line, setting.line, "")
                for setting in settings
                if setting.location.call
            )
        ),
    )


def find_shell_settings(
    path: str, text: str, position: Position, reason: str
) -> tuple[list[ScriptSetting], list[Site]]:
    """Return the settings of a file's part that a separate shell runs, and its conversions.

    The part begins at a position of the file. Its variables end with it: ``reason`` is why they are
    omitted, unless it starts a program with a section.
    """
    reader = _ShellReader(path, text, list(parse_shell_commands(text, *position)))
    settings = [*reader.collect_settings()]
    if not any(find_program(setting.surface) for setting in settings):
        settings = [
            leave_out(setting, reason) if setting.surface == "env" and setting.key else setting
            for setting in settings
        ]
    return settings, reader.sites


def find_code_settings(
    path: str, text: str, position: Position, is_expanded: bool = False
) -> list[ScriptSetting]:
    """Return the settings of Python code in a file, which begins at a position.

    A shell expands variables in ``is_expanded`` code.
    """
    code = dedent(text)
    if not mentions_python_setting(code.encode(errors="replace")):
        return []
    line, column = position
    count_steps(line // 10)
    indent = text.partition("\n")[0].find(code.partition("\n")[0])
    settings = []
    for setting in import_python(
        path, ("\n" * (line - 1) + code).encode(errors="replace")
    ).settings:
        shift = indent + (column - 1 if setting.line == line else 0)
        setting = setting.with_location(column=setting.column + shift)
        # each process has its own <module> and <process>
        setting = setting._replace(scope=setting.scope.replace("<", f"<{line} ", 1))
        if is_expanded and _EXPANDED.search(str(setting.assigned.written)):
            setting = setting.with_value(value=None, reason="depends on the shell")
        if setting.surface in ("env", OTHER):
            setting = leave_out(setting, "applies to this Python process only")
        settings.append(setting)
    return settings


class _Block:
    """A branch, loop, group or function around commands.

    ``number`` and ``arm`` identify a branch.
    """

    def __init__(self, kind: str, number: int, text: str, function: str = "") -> None:
        self.kind = kind
        self.number = number
        self.arm = 0
        self.is_piped = False  #: whether a pipe runs it in a subshell
        self.text = text
        self.function = function
        self.after_exit: Branches = ()  #: the condition after a command that leaves the function

    def open_arm(self, text: str) -> None:
        """Begin the next arm of an ``if``, the last one without a text."""
        self.arm = self.arm + 1 if text else -self.arm - 1
        self.text = text or cut_text(f"not ({self.text or ':'})", _LONGEST_TEST)


class _ShellReader:
    """Reads the commands of a script in order: settings, and the state of blocks and variables."""

    def __init__(self, path: str, text: str, commands: list[Command], plain: bool = False) -> None:
        self.path = path
        self.text = text
        self.commands = commands
        self.command = Command()
        self.number = 0  #: number of the command
        self.settings: list[ScriptSetting] = []
        self.names: set[str] = set()  #: names of variables
        #: places of the variables of subshells that have started nothing so far
        self.gone: dict[tuple[int, ...], list[int]] = {}
        self.sites: list[Site] = []
        self.other_records: list[Record] = []
        self.too_deep: Word | None = None
        self.constants = find_constants(commands)
        self.known: dict[str, str] = {}  #: constants assigned so far
        self.blocks: list[_Block] = []
        self.branches: Branches = ()  #: the conditions of the command
        self.function = ""  #: the function around the command
        self.idle = ""  #: why the command never runs
        self.defined = ""
        self.test = ""
        #: where a file has ended; the script itself has an empty name
        self.ended: dict[str, str] = {}
        self.unpaired: Word | None = None  #: the first word of a block without its other end
        self.left: set[tuple[int, int]] = set()  #: numbers and arms of the blocks that exit
        #: settings that count as soon as their variable is exported
        self.pending: dict[str, list[ScriptSetting]] = {}
        self.exported: set[str] = set()
        self.last: dict[str, str] = {}  #: current texts of exported variables
        self.exports_all = plain or re.match(r"#!.* -\w*a", text) is not None
        self.values: dict[str, Value] = {}  #: the words of variables
        self.homes: dict[str, str | None] = {}  #: the functions around all of its assignments
        #: of the items of arrays, by their file and position
        self.conditions: dict[tuple[str, int, int], Branches] = {}
        self.steps: list[Step] = []
        #: programs without a launcher: they count beside variables that the catalogue knows, or
        #: with many arguments
        self.unlaunched: list[tuple[StartedProgram, list[ScriptSetting]]] = []

    def collect_settings(self) -> tuple[ScriptSetting, ...]:
        """Return the settings of all commands, in the order of commands."""
        for variable in find_directive_exports(self.text, self.commands):
            self._add_variable(*variable, exported=True)
        before = Command()
        for command in self.commands:
            self.number, self.command = self.number + 1, command
            self._record_test(before)
            self._read_command()
            before = command
            if len(self.blocks) > _MOST_BLOCKS:
                self.too_deep = command[0]
                break
        for block in self.blocks if not self.too_deep else ():
            begin = self.commands[block.number - 1]
            self._record_unpaired(begin[0], begin)
        has_known = any(setting.surface == "env" and setting.key for setting in self.settings)
        for record, arguments in self.unlaunched:
            if has_known or len(arguments) >= _MANY_ARGUMENTS:
                self.settings += arguments
                self.other_records.append(record)
        unexported = [
            setting
            for name, several in self.pending.items()
            if name not in self.names_in_exports and not self.exports_all
            for setting in several
        ]
        settings = sorted(
            mark_lost(self.text, self.steps, self.settings, unexported),
            key=attrgetter("order", "line", "column"),
        )
        return tuple(setting._replace(order=0) for setting in settle(settings))

    @cached_property
    def has_separator(self) -> bool:
        """Whether other characters than blanks may split texts into words."""
        return any(_SEPARATOR.search(f"\n{each}") for each in {each.text for each in self.commands})

    @cached_property
    def used_names(self) -> set[str]:
        """The names that the script uses, such as called functions."""
        return {
            name
            for command in self.commands
            if not command.function
            for word in command
            for name in _NAME.findall(word.text)
        }

    @cached_property
    def names_in_exports(self) -> set[str]:
        """The names in commands that may export a variable assigned before."""
        return {
            word.text.partition("=")[0].removesuffix("+")
            for command in self.commands
            if not _EXPORTS.isdisjoint([word.text for word in command])
            for word in command
        }

    def _find_place(self) -> None:
        """Find what is around the command: conditions, a function, and why it never runs."""
        if not (self.blocks or self.test or self.ended):  # most commands
            self.branches, self.function, self.idle = (), "", ""
            return
        branches = [
            Branch(block.number, block.arm, block.text) for block in self.blocks if block.text
        ]
        if self.test:
            branches.append(Branch(self.number, 0, self.test))
        after_exit = next(
            (block.after_exit for block in reversed(self.blocks) if block.after_exit), ()
        )
        self.branches = (*branches, *after_exit)
        functions = [block.function for block in self.blocks if block.function]
        self.function = functions[-1] if functions else ""
        # a function may be called before the end
        files = () if functions else ("", *self.command.files)
        reasons = [
            *(f"{each}() is called nowhere" for each in functions if each not in self.used_names),
            *(f"the script ends in {self.ended[file]}" for file in files if file in self.ended),
        ]
        self.idle = f"{reasons[0]}, so this never runs" if reasons else ""

    def _record_test(self, before: Command) -> None:
        """Record the condition of a command after ``&&`` or ``||``: the test before it."""
        if not self.command.join:
            self.test = ""
            return
        test = _format_words([word for word in before if word.keyword != "}"])
        if self.command.join == "||":
            self.test = f"not ({test})"
        # any other command is expected to succeed
        elif before and _TESTS.fullmatch(before[0].text):
            if self.test:
                test = cut_text(f"({self.test}) and ({test})", _LONGEST_TEST)
            self.test = test

    def _read_command(self) -> None:
        """Record the settings of the command, and the blocks that it opens and closes."""
        if self.command.function:
            self.defined = self.command.function
            self._record_step(())
            return
        if self.command.opens_arm and self.blocks and self.blocks[-1].kind == "case":
            self.blocks[-1].arm += 1
        words, block = self._follow_blocks(self.command)
        self._record_step(words)
        if words and words[0].keyword in ("exit", "return"):
            self._record_end(words[0])
        self._record_values(self.command[0].keyword, words)
        self._read_words(words)
        if words:
            self._read_training(words)
        if block:
            block.is_piped = self.command.is_piped
            self.blocks.append(block)

    def _record_values(self, first: str, words: Sequence[Word]) -> None:
        """Record the variables that a builtin assigns, and forget those that it changes."""
        for name in list_changed(self.command):
            self.values.pop(name, None)
        for word in words[1:] if words and words[0].keyword in DECLARING else ():
            for name, _ in list_assignments([word]):
                self._record_value(name, word)
        if first == "read" and (document := self.command.document):
            text = self.command.read_text(document)[0].replace("\\\n", " \n")
            word = document.with_parts(*split_references(text, _REFERENCE))
            name = self.command[-1].text
            self.values[name] = Value(
                list_runs(word, text), False, self.branches, self.steps[-1].shells
            )
            self.homes[name] = self.function

    def _record_step(self, words: Sequence[Word]) -> None:
        self._find_place()
        shells = {-block.number for block in self.blocks if block.is_piped}
        if self.command.is_piped or self.command.is_forked:
            shells.add(-self.number)
        self.steps.append(
            Step(
                self.command,
                words,
                shells.union(self.command.shells),
                self.function,
                any(block.kind in _LOOPS for block in self.blocks),
                bool(self.idle),
                self._is_certain(),
            )
        )

    def _record_end(self, word: Word) -> None:
        """Record where the script, a sourced file or a function may be left."""
        line = self._name_line(word)
        self.left.update((block.number, block.arm) for block in self.blocks[-1:])
        if word.text == "return" and self.function:
            block = next(block for block in reversed(self.blocks) if block.function)
            test = f"{self.function}() is not left in {line}"
            block.after_exit = (Branch(self.number, 0, test),)
        elif self._is_certain() and (word.text == "exit" or self.command.file):
            self.ended.setdefault("" if word.text == "exit" else self.command.file, line)

    def _is_certain(self) -> bool:
        """Return whether the command is outside of branches, loops, functions and parentheses."""
        return not (
            self.test
            or self.command.join
            or self.command.shells
            or any(block.kind != "{" or block.text or block.function for block in self.blocks)
        )

    def _name_file(self) -> str:
        return self.command.file or self.path

    def _name_line(self, word: Word) -> str:
        of_file = f" of {self.command.file}" if self.command.file else ""
        return f"line {word.line}{of_file}"

    def _follow_blocks(self, words: list[Word]) -> tuple[list[Word], _Block | None]:
        """Return the words of a command after the keywords of blocks.

        The second value is the block that begins after the command. Blocks that begin or end at its
        keywords are recorded.
        """
        first = words[0].keyword if words else ""
        rest = words[1:]
        if first in _CLOSING:
            kind = self.blocks[-1].kind if self.blocks else ""
            if kind not in _CLOSING[first]:
                self._record_unpaired(words[0], self.command)
            # a slice: the closing keyword may have no open block
            for block in self.blocks[-1:] if self.command.is_forked else ():
                for step in self.steps[block.number - 1 :]:
                    step.shells.add(-block.number)
            self.blocks[-1:] = []
            is_followed = rest and rest[0].keyword in _CLOSING
            return self._follow_blocks(rest) if is_followed else ([], None)
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
            block = _Block(first, self.number, self._describe_loop(words))
            return rest if first in ("while", "until") else [], block
        if first != "{":  # no keyword of a block, or else or elif outside of one
            return words, None
        test, self.test = self.test, ""
        block = _Block(first, self.number, test, self.defined)
        self.defined = ""
        block.is_piped = self.command.is_piped
        self.blocks.append(block)
        return self._follow_blocks(rest)

    def _record_unpaired(self, word: Word, command: Command) -> None:
        # a file in the place of its source, and a text, have braces that nobody wrote
        is_own = not command.file and self.text.startswith(word.text, word.span[0])
        if is_own and "" not in self.ended:  # a shell reads nothing behind exit
            self.unpaired = self.unpaired or word

    def _describe_loop(self, words: list[Word]) -> str:
        """Return the condition of a loop that may have no iterations, empty for others."""
        if words[0].text in ("while", "until"):
            may_be_empty = len(words) != 2 or words[1].text not in _ALWAYS
        else:  # (( )) has no words
            may_be_empty = len(words) > 1 and not any(
                word.text != word.open_part or word.text.startswith(("$(", "`"))
                for word in words[3:]
            )
        return f"the loop in {self._name_line(words[0])} has a turn" if may_be_empty else ""

    def _read_words(self, words: list[Word]) -> None:
        """Record the settings of a command's words after the keywords of blocks."""
        # which arguments belong to the wrapper is unknown: only after env, the command is certain
        if words and _name_program(words[0]) in _WRAPPERS:
            words = list(dropwhile(lambda word: word.text != "env", words))
        if not words:
            return
        if words[0].text == words[0].open_part:  # the command is in a variable
            words = self._fill_words(words) or words
        first = _name_program(words[0])
        if not (
            ASSIGNMENT.match(words[0].text) or first in _COMMANDS or _BUILTINS.fullmatch(first)
        ):
            return
        words = _strip_prefix(words)
        assigned = list(list_assignments(words))
        words = _strip_prefix(words[len(assigned) :])
        for variable, word in assigned:
            if not words:
                self._record_value(variable, word)
                # bash does not export arrays
                if not word.items:
                    self._record_export(variable, self.exports_all)
                    self._add_variable(variable, word, word.value, self._is_exported(variable))
            elif words[0].keyword != "read":  # a builtin: its IFS is local
                self._add_variable(variable, word, word.value, exported=True, of_command=True)
        if words:
            self._read_program(_name_program(words[0]), words)

    def _read_program(self, name: str, words: list[Word]) -> None:
        """Record the settings of a command by its name; ``words`` begin with it."""
        arguments = words[1:]
        if name in _EXPORTS:
            flags = "".join(word.text for word in arguments if word.text.startswith("-"))
            # export -n ends the export: programs no longer get the variable
            if "n" in flags:
                self._unset(arguments)
            elif name == "export" or not self.function:  # others are local to a function
                self._export(arguments, name == "export" or "x" in flags)
        elif name == "unset":
            self._unset(arguments)
        elif name in (".", "source"):
            # CANN's environment script overwrites exports above it
            if arguments and arguments[0].text.endswith("set_env.sh") and not self.idle:
                where = self._name_file(), *words[0].position
                around = self.function, self.branches, frozenset(self.left)
                self.other_records.append(SourcedEnvironment(*where, arguments[0].text, *around))
        elif name == ":":
            self._assign_defaults(arguments)
        elif name == "set":
            flag = _EXPORT_ALL.search(_format_words(arguments))
            if flag and not self.idle:
                self.exports_all = flag[1] == "-"
        elif name in LAUNCHERS:
            for variable in find_passed_variables(name, arguments):
                self._add_variable(*variable, exported=True, of_command=True)
        elif name.startswith("python"):
            self._read_code(arguments)
        # the text of a nested shell cannot contain a block
        elif name in ("atc", "atc.bin") and not self.command.is_inner:
            self._add_conversion(words)
        if (started := program_arguments.find_start(words)) is not None:
            program, program_words = started
            settings = program_arguments.read_arguments(
                self._name_file(), program, self._fill_words(program_words), self.command.text
            )
            self._add_arguments(settings)

    def _read_training(self, words: Sequence[Word]) -> None:
        """Record a start of a training program, and its arguments."""
        source = self.command.text
        found = training_launches.read_start(self.path, words, self._expand, source)
        if found is None or program_arguments.find_start(words):
            return  # nothing, or a program with a section of its own
        record, settings, is_certain = found
        if is_certain:
            self._add_arguments(settings)
            self.other_records.append(record)
        else:
            self.unlaunched.append((record, [*map(self._complete, settings)]))

    def _add_arguments(self, settings: Iterable[ScriptSetting]) -> None:
        """Add the settings of a start, which the exports of its subshell reach."""
        for at in self.gone.pop(self.command.shells, ()):
            self.settings[at] = self._complete(self.settings[at]._replace(unused=""))
        self.settings += map(self._complete, settings)

    def _add_exported(self, settings: Iterable[ScriptSetting]) -> None:
        """Add exported variables, and index them: their names, and those of subshells."""
        for setting in settings:
            if setting.surface == "env":
                self.names.add(setting.name)
            if setting.unused == _GONE:
                shells = self.steps[setting.order - 1].command.shells
                self.gone.setdefault(shells, []).append(len(self.settings))
            self.settings.append(setting)

    def _read_code(self, arguments: Sequence[Word]) -> None:
        """Record the settings of Python code in an argument of ``-c``, or in a here-document."""
        code = self.command.document
        flags = list(takewhile(lambda word: word.text[:1] == "-" != word.text, arguments))
        if flags and flags[-1].text == "-c" and len(arguments) > len(flags):
            code = arguments[len(flags)]
        elif len(flags) < len(arguments) and arguments[len(flags)].text != "-":
            return  # a script or a module
        if code is None:
            return
        text, column = self.command.read_text(code)
        is_expanded = not code.quoted or bool(code.open_part)
        for setting in find_code_settings(
            self._name_file(), text, (code.line, column), is_expanded
        ):
            branches = (*self.branches, *setting.branches)
            whole = self._complete(setting, setting.function)
            self.settings.append(whole._replace(branches=branches))

    def _assign_defaults(self, arguments: list[Word]) -> None:
        """Record the variables that expansions assign: ``${NAME:=VALUE}``."""
        for argument in arguments:
            if match := _DEFAULT.fullmatch(argument.open_part):
                name = match["name"]
                value = argument.with_parts((f"${{{name}:-{match['value']}}}",))
                self._add_variable(name, argument, value, self._is_exported(name))

    def _is_exported(self, name: str) -> bool:
        return self.exports_all or name in self.exported

    def _record_export(self, name: str, is_exported: bool) -> None:
        """Record that a variable is exported, unless that is conditional."""
        is_conditional = self.test or any(
            block.text for block in self.blocks if block.kind not in _LOOPS
        )
        if is_exported and not self.idle and not is_conditional:
            self.exported.add(name)

    def _export(self, arguments: list[Word], is_exported: bool) -> None:
        """Record the variables that an ``export`` or ``declare`` assigns or exports.

        Invalid exports of Ascend's variables are recorded as broken.
        """
        for argument, following in zip_longest(arguments, arguments[1:]):
            name = argument.text.partition("=")[0].removesuffix("+")
            valid_name = name.replace("-", "_")
            has_blank = following is not None and following.keyword.startswith("=")
            has_dash = "-" in name and "=" in argument.text
            self._record_export(name, is_exported)
            if list(list_assignments([argument])):
                rest = () if following is None or self.command.redirected else [following]
                after, *_ = *self.commands[self.number : self.number + 1], ()
                why = explain_cut(self.text, argument, rest, after)
                self._add_variable(name, argument, argument.value, is_exported, why)
            elif (has_blank or has_dash) and environ.is_ascend_variable(valid_name):
                if not self.command.file:
                    where = self.path, argument.line, argument.column
                    meant = join_assignment(self.text, argument, arguments[-1])
                    meant = meant.replace(name, valid_name, 1)
                    self.other_records.append(BrokenExport(*where, valid_name, name, meant))
            elif is_exported:
                tests = {branch for branch in self.branches if name in branch.test}
                why = f"depends on a test of {name}"
                self._add_exported(
                    setting
                    if tests.issubset(setting.branches)
                    else setting.with_value(value=None, reason=why)
                    for setting in self.pending.pop(name, ())
                )

    def _unset(self, arguments: list[Word]) -> None:
        """Record that exported variables are unset."""
        if self.idle:
            return
        for argument in arguments:
            name = argument.text.partition("=")[0]
            if name in self.names:
                self._add_variable(name, argument, argument.with_parts((name,)), True, TAKEN_BACK)

    def _add_variable(
        self,
        name: str,
        word: Word,
        value: Word,
        exported: bool,
        reason: str = "",
        of_command: bool = False,
    ) -> None:
        """Record a variable that a word sets, as pending unless it is exported."""
        is_own = not exported and name not in self.names_in_exports
        if is_own and environ.find_variable_key(name) is None:
            return  # of the script alone
        if word.text.startswith(f"{name}+="):
            value = value.with_parts((f"${{{name}}}",), *value.parts)
        last = self.last.pop(name, None)
        # X=$X:more appends to the text that the variable certainly has
        own = {name: last} if last is not None and self._is_certain() else {}
        filled = fill_word(value, ChainMap(own, self._list_known()))
        # a shell replaces an unquoted ~ by the home folder
        if not reason and self.command.text.startswith(f"{name}=~", word.span[0]):
            reason = "depends on ~"
        file = self._name_file()
        setting = build_variable_setting(file, word.position, name, filled.parts, reason)
        setting = self._complete(setting, self.function, of_command)
        if len(self.command.shells) == 1 and not setting.unused:  # two begin an expression
            setting = setting._replace(unused=_GONE)
        variable = catalog.find_variable(name)
        if (
            variable
            and variable.in_container
            and LAUNCHERS.keys().isdisjoint(map(_name_program, self.command))
        ):
            setting = leave_out(setting, OF_CONTAINER)
        text = setting.assigned.written
        is_certain = not setting.unused and not setting.branches and not self.command.shells
        # X=$X$X would double the text with each line
        if text and len(text) <= _LONGEST and not setting.reason and is_certain:
            self.last[name] = text
        if exported:
            self._add_exported([setting])
        else:
            self.pending.setdefault(name, []).append(setting)

    def _list_known(self) -> dict[str, str]:
        """Return the constants assigned so far; a function may run after all of them."""
        return self.constants if self.function else self.known

    def _record_value(self, name: str, word: Word) -> None:
        """Record the words of a variable, with their conditions."""
        if name in self.constants:
            self.known[name] = self.constants[name]
        source, value = self.command.text[slice(*word.span)], word.value
        is_array = bool(word.items) or (not value.text and source.endswith(")"))
        is_appended = word.text.startswith(f"{name}+=")
        before = self._find_variable(name, is_array)
        if is_array:
            words = [part for item in word.items for part in self._expand(item)]
        else:
            words = [*self._resolve(list_runs(value, source, source.find("=") + 1))]
        if self.homes.setdefault(name, self.function) != self.function:
            self.homes[name] = None
        self.values.pop(name, None)
        # two parentheses begin an expression
        if (is_appended and not before) or len(self.command.shells) > 1:
            return
        kept = before.words if before else []
        words = kept + words if is_appended else words
        count_steps(len(words))
        branches = self.branches
        if before and words[: len(kept)] == kept:
            branches = before.branches
            for word in words[len(kept) :]:
                file, *_ = word.origin or (self.path,)
                self.conditions[file, *word.position] = self.branches
        self.values[name] = Value(words, is_array, branches, self.steps[-1].shells)

    def _fill_words(self, words: Sequence[Word]) -> list[Word]:
        """Return the words of a command with variables expanded."""
        return [part for word in words for part in self._expand(word) if part.text or part.quoted]

    def _expand(self, word: Word) -> list[Word]:
        """Return the words for which a word stands."""
        if not word.open_part:
            return [word]
        if not word.quoted and not self.has_separator:
            return join_runs(self._resolve(word.with_parts(part) for part in word.parts))
        match = _ALL_ITEMS.fullmatch(word.text)
        # "${ARRAY[*]}" is one argument
        if match and "@" in word.text and (items := self._find_variable(match["name"], True)):
            count_steps(len(items.words))
            return items.words
        return [fill_word(word, self._list_known())]

    def _resolve(self, runs: Iterable[Word]) -> Iterator[Word]:
        """Yield the runs of a text after the expansion of variables."""
        for run in runs:
            found = self._find_runs(run) if run.open_part else None
            # another shell takes the quotes of a value away
            is_read_again = self.command.is_inner and any('"' in each.text for each in found or ())
            if found is None or is_read_again:
                yield run
            else:
                yield from found or [run.with_parts("")]

    def _find_runs(self, word: Word) -> list[Word] | None:
        """Return the runs for which an unquoted expansion stands, None if it is unknown."""
        expansion = word.open_part
        if match := _ALL_ITEMS.fullmatch(expansion):
            items = self._find_variable(match["name"], True)
            if items is None:
                return None
            return [run for item in items.words for run in (*list_runs(item), BLANK)]
        match = VARIABLE.fullmatch(expansion)
        if match and (value := self._find_variable(match[match.lastgroup or ""], False)):
            return value.words
        text = find_expansion(expansion, self._list_known())
        return None if text is None else list_runs(word.with_parts(text))

    def _find_variable(self, name: str, is_array: bool) -> Value | None:
        """Return the value that a variable certainly has, None if it is unknown."""
        value = self.values.get(name)
        # "$TEXT" in quotes is one argument, and $ARRAY is its first item
        if value is None or value.is_array != is_array:
            return None
        # a function may change it, and it was set under a condition that need not hold here
        is_certain = is_array or self.homes[name] == self.function
        is_covered = self.branches[: len(value.branches)] == value.branches
        is_set = value.shells <= self.steps[-1].shells
        return value if is_certain and is_covered and is_set else None

    def _add_conversion(self, words: list[Word]) -> None:
        """Record a command line of ``atc``, and its flags."""
        command, line = self.command, words[0].line
        scope = f"atc@{command.file}:{line}" if command.file else f"atc@{line}"
        position = command.call or words[0].position
        self.sites.append(Site(scope, "atc", *position, "atc", closed=True, branches=self.branches))
        flags = atc_flags.read_flags(self._name_file(), self._fill_words(words[1:]), scope)
        self.settings += map(self._complete, flags)

    def _complete(
        self, setting: ScriptSetting, function: str = "", of_command: bool = True
    ) -> ScriptSetting:
        """Return a setting with the conditions, the order and the call of the command."""
        place = setting.file, setting.line, setting.column
        branches = dict.fromkeys((*self.branches, *self.conditions.get(place, ())))
        if self.command.call and not setting.location.call:
            setting = setting.with_location(call=self.command.call)
        return setting._replace(
            function=function,
            branches=tuple(branches) if setting.name else (),
            command=self._name_line(self.command[0]) if of_command else "",
            unused=self.idle or setting.unused,
            order=self.number,
        )


def _name_program(word: Word) -> str:
    """Return the name of a program without its folder."""
    return word.text.rpartition("/")[2]


def _strip_prefix(words: list[Word]) -> list[Word]:
    return list(dropwhile(lambda word: word.keyword in PREFIXES, words))


def _format_words(words: Sequence[Word]) -> str:
    return cut_text(" ".join(word.text for word in words))
