"""Records of parsed scripts: settings with values or reasons, other records, and their file."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from npuprof.model import Finding, Place, Record

#: The reason for a None value, on surfaces where None means unset.
UNSET = "None leaves it unset"

#: The reason for a setting that the script removes again: earlier values do not apply.
TAKEN_BACK = "the script takes it back"

#: The start of the reason for a variable of a shell script that none of its programs gets.
LOST = "does not reach a program as written: "

#: The reason for an ``atc`` flag without a value.
NO_VALUE = "the flag has no value"

#: The reason for a variable of a script that no program reads.
OF_CONTAINER = "it is read when a container is created"

#: The reason for an ``atc`` flag with an empty text, which has no effect.
EMPTY = "empty, which atc takes as not given"

#: The start of the reason for a value from the command line.
COMMAND_LINE = "depends on the command line or its parameters"

#: The start of the reason for a setting in an unused configuration.
GOES_NOWHERE = "nothing is given the configuration"

#: The start of the reason for a setting after the last use of its object.
TOO_LATE = "comes after "

#: The reason for a text with lone surrogates, which JSON and Python can express but UTF-8 cannot.
HALF_CHARACTER = "the text contains a lone surrogate, which UTF-8 cannot encode"

#: The reason for a text that is to be replaced.
PLACEHOLDER = "a placeholder"

#: The surface of a variable that no Ascend software reads, until it is separated from a file's
#: settings.
OTHER = "other"

#: Replaces the script's own folder in a path; no text of a script contains it.
HERE = "\ufdd0"


class Branch(NamedTuple):
    """One condition of a setting.

    ``number`` identifies the ``if``, ``arm`` is the index of its arm (from 0; for ``else``, minus
    the number of arms), ``test`` its text. A tuple: compared and hashed for every setting.
    """

    number: int
    arm: int
    test: str


#: All conditions of a setting or an object, outermost first.
Branches = tuple[Branch, ...]

#: A line and a column, both from 1.
Position = tuple[int, int]

#: A value as a preset has it, and the reason why there is none.
Converted = tuple[Any, str]


def find_position(text: str, offset: int) -> Position:
    """Return the line and column of an offset in a text."""
    starts = recall_line_starts(text)
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


def find_line_starts(text: str) -> list[int]:
    """Return the offset of each line of a text."""
    return [0, *[match.end() for match in re.finditer("\n", text)]]


#: Callers look up many offsets of one text in a row.
recall_line_starts = lru_cache(1)(find_line_starts)


def are_exclusive(branches: Branches, other: Branches) -> bool:
    """Return whether two statements never run together: they are in different arms of an ``if``."""
    arms = {branch.number: branch.arm for branch in other}
    return any(arms.get(branch.number, branch.arm) != branch.arm for branch in branches)


_LINE = re.compile(r"\bline (\d+)\b")


class LocatedRecord(Record):
    """A record at a line and column of a file, both from 1."""

    file: str
    line: int
    column: int


class ScriptLocation(LocatedRecord):
    """The location of a setting in a file, from 1.

    ``part`` is the location for users: ``cell 3, line 5``. For settings of another ``file``,
    ``call`` is line and column of the call or source command in the script. ``inner`` are the
    positions of the values in a table or list, by their paths in it.
    """

    part: str = ""
    call: Position | tuple[()] = ()
    inner: dict[tuple[str, ...], Position] = {}


class ScriptValue(Record):
    """The value of a setting in a script: ``value`` is valid if ``reason`` is empty.

    ``kind`` is the Python type of the written value (``str``, ``bytes``, ``bool``, ``int``,
    ``float``); ``written`` is that value on surfaces with their own representation. ``default`` is
    the value without command line arguments. ``relative`` is a path relative to the script's
    folder. ``content`` is the content of the named file, if it was read.
    """

    value: Any = None
    reason: str = ""
    kind: str = ""
    written: Any = None
    default: Any = None
    relative: bool = False
    content: Any = None


class ScriptSetting(Record):
    """One setting in a script.

    ``key`` is npuprof's full key (``precision_mode``, ``env.JOB_ID``), empty if it is computed;
    ``name`` is the name in the script, ``field`` the protobuf field. ``scope`` is the setting's
    configuration, ``class_name`` the class of an argument, ``function`` the function of a
    process-wide setting. ``dead`` settings never run; ``unused`` is why a setting is not effective.
    ``order`` is the execution order. ``command`` is the only command of a shell script that a
    setting applies to.
    """

    location: ScriptLocation
    surface: str
    key: str
    name: str
    assigned: ScriptValue = ScriptValue()
    field: str | None = None
    branches: Branches = ()
    scope: str = ""
    class_name: str = ""
    function: str = ""
    commented: bool = False
    dead: bool = False
    unused: str = ""
    order: int = 0
    command: str = ""

    @property
    def file(self) -> str:
        """Its file."""
        return self.location.file

    @property
    def line(self) -> int:
        """Its line, from 1."""
        return self.location.line

    @property
    def column(self) -> int:
        """Its column, from 1."""
        return self.location.column

    @property
    def file_line(self) -> str:
        """``file:line``."""
        return f"{self.location.file}:{self.location.line}"

    @property
    def shown_key(self) -> str:
        """Its key, or the flag whose value should be a table."""
        return self.key or (self.name if self.name.startswith("--") else "a computed key")

    @property
    def cited_line(self) -> str:
        """Its line, with the file if it is not the script's."""
        return f"line {self.line} of {self.file}" if self.location.call else f"line {self.line}"

    @property
    def position(self) -> Position:
        """Its line and column in the script; for settings of another file, those of the call."""
        return self.location.call or (self.line, self.column)

    @property
    def value(self) -> Any:
        """Its value, if there is no reason why it is unknown."""
        return self.assigned.value

    @property
    def reason(self) -> str:
        """Why its value is unknown; empty if it is known."""
        return self.assigned.reason

    @property
    def is_lost(self) -> bool:
        """Whether it is a variable that reaches no program."""
        return (self.reason or self.unused).startswith(LOST)

    @property
    def condition(self) -> str:
        """The conditions of the setting, as one text; empty if it always applies."""
        if len(self.branches) == 1:
            return self.branches[0].test
        return " and ".join(f"({branch.test})" for branch in self.branches)

    def with_value(self, **fields: Any) -> ScriptSetting:
        """Return the setting with other fields of its value."""
        return self._replace(assigned=self.assigned._replace(**fields))

    def with_location(self, **fields: Any) -> ScriptSetting:
        """Return the setting with other fields of its location."""
        fields = {"inner": {}, **fields} if "line" in fields else fields
        return self._replace(location=self.location._replace(**fields))


def remove_script_folder(value: Any) -> tuple[Any, bool]:
    """Return a value without the mark of the script's folder, and whether it had one."""
    if isinstance(value, str) and HERE in value:
        return value.replace(HERE, ""), True
    if isinstance(value, bytes) and HERE.encode() in value:
        return value.replace(HERE.encode(), b""), True
    return value, False


def drop_null(value: Any) -> Any:
    """Return a value without the keys of its tables that are null: they say nothing."""
    if isinstance(value, dict):
        return {key: drop_null(item) for key, item in value.items() if item is not None}
    return [drop_null(item) for item in value] if isinstance(value, list) else value


OtherRecord = TypeVar("OtherRecord", bound=Record)
OwnRecord = TypeVar("OwnRecord", bound=LocatedRecord)


class BrokenExport(LocatedRecord):
    """An ineffective export of a shell script.

    ``name`` is intended, ``written`` is invalid. If the two are equal, there are blanks around
    ``=``. ``assignment`` is the intended assignment.
    """

    name: str
    written: str
    assignment: str


class SourcedEnvironment(LocatedRecord):
    """A ``set_env.sh`` that a script sources, by its path, in a function under conditions.

    ``left`` are the branches that exit before it.
    """

    path: str
    function: str
    branches: Branches
    left: frozenset[tuple[int, int]]


class VariableRead(LocatedRecord):
    """The first read of a variable in a shell script, by ``name``."""

    name: str


class StartedProgram(Record):
    """A start of a Python program whose arguments are settings.

    ``scope`` is that of the settings: its section, ``@``, and the place of the start. ``script`` is
    the path of the program as written, ``module`` that of ``-m MODULE``; the other is empty.
    ``lines`` are those that have only words before its arguments. ``nodes`` is the place of a
    number of nodes that are all started as the first one. ``first`` is the first argument if it is
    a word that may be no value of a flag.
    """

    scope: str
    script: str
    module: str
    location: ScriptLocation
    lines: frozenset[int] = frozenset()
    nodes: ScriptLocation | None = None
    first: str = ""


class UnusedVariable(Record):
    """A variable that a shell script sets and no command gets."""

    name: str
    where: Place


class UsedFile(Record):
    """A file with a relative path that a shell script starts, sources or passes to a program.

    The path ``is_fixed`` to the script's folder, or below any folder above it. It ``is_open`` if
    the folder before it is not known, as that in a variable.
    """

    path: str
    where: Place
    is_fixed: bool
    is_open: bool


class UnreadLines(Record):
    """The lines of a YAML or JSON file with arguments or variables that were not read."""

    lines: frozenset[int]


class IdleConfig(Record):
    """An unused configuration, the scopes of its settings, and a session of the script."""

    line: int
    name: str
    scopes: tuple[str, ...]
    session: str
    session_line: int


class Site(Record):
    """One configuration object of a script: its creation and use.

    ``closed`` means that its creation is in the source, so that missing settings are unset.
    ``entry`` is the name of the optimizer entry, None without one. ``branches`` are the conditions
    of its creation. ``line`` is that of the call if another file's function creates it.
    """

    scope: str
    surface: str
    line: int
    column: int
    variable: str = ""
    closed: bool = False
    entry: str | None = None
    branches: Branches = ()


class Followed(Record):
    """A followed function of another file: its file, its first and last line, its name.

    Records without a name are lines of a sourced shell script.
    """

    file: str
    first: int
    last: int
    name: str


class ImportedFile(Record):
    """The content of one file: its settings in text order, its configuration objects, its faults.

    ``text`` is the parsed text; ``other_records`` are those for the checks: disabled rewriters,
    constructor calls, ... ``passed_over`` are unsupported statements of a file without settings.
    ``part_locations`` exists if the text was joined from parts of the file. ``followed`` are called
    functions of other files whose settings are in ``settings``. ``other_variables`` are variables
    of other programs, each with the reason why it is in no preset. A ``declarative`` file, such as
    a manifest, sets all variables before it starts anything.
    """

    file: str
    settings: tuple[ScriptSetting, ...] = ()
    sites: tuple[Site, ...] = ()
    problems: tuple[Finding, ...] = ()
    text: str = ""
    other_records: tuple[Record, ...] = ()
    passed_over: str = ""
    part_locations: PartLocations | None = None
    followed: tuple[Followed, ...] = ()
    other_variables: tuple[ScriptSetting, ...] = ()
    declarative: bool = False

    def list_records(self, kind: type[OtherRecord]) -> list[OtherRecord]:
        """Return the records of one type, including those of other files."""
        return [record for record in self.other_records if isinstance(record, kind)]

    def list_own_records(self, kind: type[OwnRecord]) -> list[OwnRecord]:
        """Return the records of one type in the file itself."""
        return [record for record in self.list_records(kind) if record.file == self.file]


class PartLine(Record):
    """One line of a notebook.

    ``line`` and ``column`` are the start of its JSON string in the file, ``text`` is that string,
    ``start`` the offset of the line in it. ``number`` is its line number in the ``cell``.
    """

    line: int
    column: int
    text: str
    cell: int
    number: int
    start: int = 0


class PartLocations(Record):
    """The lines of a text, with their sources."""

    lines: list[PartLine]
    text: str

    def find_location(self, line: int, column: int) -> ScriptLocation:
        """Return the location in the file of a line and column of the text."""
        if not 0 < line <= len(self.lines):
            return ScriptLocation("", line, column)
        part = self.lines[line - 1]
        # as Jupyter writes it
        # before the column, the JSON string has a quote and the escapes of the text
        before = json.dumps(part.text[: part.start + max(column - 1, 0)], ensure_ascii=False)
        cell = f"cell {part.cell}, line {part.number}" if part.cell else ""
        return ScriptLocation("", part.line, part.column + len(before) - 1, cell)

    def locate_finding(self, finding: Finding) -> Finding:
        """Return a finding at its location in the file; its texts name cells instead of lines."""
        if finding.where is None or not finding.where.line:
            return finding
        location = self.find_location(finding.where.line, finding.where.column)
        column = location.column if finding.where.column else 0
        why = _LINE.sub(self._name_cell, finding.why)
        return finding._replace(
            where=finding.where._replace(line=location.line, column=column),
            message=_LINE.sub(self._name_cell, finding.message),
            why=f"It is in {location.part}. {why}".rstrip() if location.part else why,
            hint=_LINE.sub(self._name_cell, finding.hint),
        )

    def _name_cell(self, match: re.Match[str]) -> str:
        """Return the cell and the line in it instead of ``line N`` of the text."""
        return self.find_location(int(match[1]), 1).part or match[0]
