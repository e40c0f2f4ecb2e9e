"""Records of what reading a script returns: settings with their values or reasons, remarks, sites, and the file they belong to."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from npuprof.model import Finding, Record

#: The reason of a value that is None: on the surfaces that know it, it says the same as leaving the option out.
UNSET = "None leaves it unset"

#: The reason of a setting that the script takes out again: what was set before it does not hold.
TAKEN_BACK = "the script takes it back"

#: Why a flag of ``atc`` is not effective whose value is an empty text.
EMPTY = "empty, which atc takes as not given"

#: Begins the reason of a value that the command line gives.
COMMAND_LINE = "depends on the command line or its parameters"

#: Begins the reason of what is set in a configuration that nothing takes.
GOES_NOWHERE = "nothing is given the configuration"

#: Begins the reason of a setting that is made after the last use of its object.
TOO_LATE = "stands after "

#: The reason of a text that cannot be written down: JSON and Python can name half of a pair.
HALF_CHARACTER = "the text holds half a character, which UTF-8 has no bytes for"

#: The surface of a variable that no software for Ascend reads, until it is set apart from the settings of a file.
OTHER = "other"

#: Stands before a path that begins in the folder of the script itself, wherever that lies; no text of a script holds it.
HERE = "\ufdd0"

#: One condition a setting stands under: the number of the ``if``, which of its arms (counted from 0; for the ``else`` the
#: number of arms before it, negative), and the test as text.
Branch = tuple[int, int, str]


def are_exclusive(place: tuple[Branch, ...], other: tuple[Branch, ...]) -> bool:
    """Return whether two places can never run together: other arms of one ``if``."""
    arms = {branch[0]: branch[1] for branch in other}
    return any(arms.get(branch[0], branch[1]) != branch[1] for branch in place)


_LINE = re.compile(r"\bline (\d+)\b")


class Placed(Record):
    """What is at a line and a column of a file, both from 1."""

    file: str
    line: int
    column: int


class ScriptPlace(Placed):
    """Where a setting stands in a file, from 1.

    ``part`` says where that is as people count: ``cell 3, line 5``. ``call`` are line and column of the call in the script that another
    file, ``file``, sets it for, or of what takes that file in.
    """

    part: str = ""
    call: tuple[int, int] | tuple[()] = ()


class ScriptValue(Record):
    """What a script gives a setting: ``value`` holds when ``reason`` is empty.

    ``kind`` is the Python type of the value as written (``str``, ``bytes``, ``bool``, ``int``, ``float``); ``written`` is that value
    itself on surfaces that write options in a way of their own. ``default`` is what the command line would give if nobody said otherwise.
    ``relative`` is a path that begins in the folder of the script. ``content`` is what the file holds that the value names, where that has
    been read.
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

    ``key`` is npuprof's full key (``precision_mode``, ``env.JOB_ID``), empty where the script computes it; ``name`` is what the script
    writes, ``field`` the field of a protobuf message. ``scope`` names the configuration the setting belongs to, ``made`` the class whose
    argument it is, if any, ``function`` the function that sets it, where the configuration is that of the whole process. ``dead`` is one
    that never runs; ``unused`` says why it is not in force although it is set. ``order`` counts the settings as the script runs.
    """

    place: ScriptPlace
    surface: str
    key: str
    name: str
    given: ScriptValue = ScriptValue()
    field: str | None = None
    branches: tuple[Branch, ...] = ()
    scope: str = ""
    made: str = ""
    function: str = ""
    commented: bool = False
    dead: bool = False
    unused: str = ""
    order: int = 0

    @property
    def file(self) -> str:
        """The file it stands in."""
        return self.place.file

    @property
    def line(self) -> int:
        """Its line, from 1."""
        return self.place.line

    @property
    def column(self) -> int:
        """Its column, from 1."""
        return self.place.column

    @property
    def file_line(self) -> str:
        """``file:line``."""
        return f"{self.place.file}:{self.place.line}"

    @property
    def cited_line(self) -> str:
        """Its line, with the file where that is another than the script."""
        return f"line {self.line} of {self.file}" if self.place.call else f"line {self.line}"

    @property
    def value(self) -> Any:
        """Its value, where there is no reason for having none."""
        return self.given.value

    @property
    def reason(self) -> str:
        """Why its value is not known; empty where it is."""
        return self.given.reason

    @property
    def condition(self) -> str:
        """The tests the setting stands under, as one text; empty where it always counts."""
        return " and ".join(text if len(self.branches) == 1 else f"({text})" for _, _, text in self.branches)

    def with_value(self, **given: Any) -> ScriptSetting:
        """Return the setting with other fields of what it is given."""
        return self._replace(given=self.given._replace(**given))

    def with_place(self, **place: Any) -> ScriptSetting:
        """Return the setting with other fields of its place."""
        return self._replace(place=self.place._replace(**place))


def take_here_out(value: Any) -> tuple[Any, bool]:
    """Return a value without the mark of the script's folder, and whether it had it."""
    if isinstance(value, str) and HERE in value:
        return value.replace(HERE, ""), True
    mark = HERE.encode()
    return (value.replace(mark, b""), True) if isinstance(value, bytes) and mark in value else (value, False)


Remark = TypeVar("Remark", bound=Record)


class BrokenExport(Placed):
    """An export of a shell script that sets nothing: the ``name`` that is meant, and a ``written`` one that no shell takes.

    It has blanks around ``=`` where the name is written right.
    """

    name: str
    written: str


class SourcedEnvironment(Placed):
    """A ``set_env.sh`` that a script sources, by its path."""

    path: str


class VariableRead(Placed):
    """The first read of a variable in a shell script, by its ``name``."""

    name: str


class IdleConfig(Record):
    """A configuration that nothing is given: the scopes of what is set in it, and a session of the script."""

    line: int
    names: tuple[str, ...]
    scopes: tuple[str, ...]
    session: str
    session_line: int


class Site(Record):
    """One configuration object of a script: where it is made, and what the script does with it.

    ``closed`` means that its making is in sight, so that what is not set is not set. ``entry`` is the name given
    to the optimizer entry, None where none is. ``branches`` are the conditions under which it is made at all. ``line`` is that of the call
    where a function of another file makes it.
    """

    scope: str
    surface: str
    line: int
    column: int
    variable: str = ""
    closed: bool = False
    entry: str | None = None
    branches: tuple[Branch, ...] = ()


class Followed(Record):
    """A function of another file that calls of a script have been followed into: its file, its first and last line, its name.

    A line without a name is one of a file that a shell script sources.
    """

    file: str
    first: int
    last: int
    name: str


class ImportedFile(Record):
    """What one file holds: its settings in the order of the text, its configuration objects, its faults.

    ``text`` is what was read; ``remarks`` are what else was noticed, for who judges the settings: rewrites that are switched off, calls
    that make configurations, ... ``passed_over`` says what of a file without settings was not followed. ``places`` are there where the
    text was put together of parts of the file. ``followed`` are functions of other files that it calls, where what they set is among
    ``found``. ``others`` are variables of other programs, each with the reason why no preset has it.
    """

    file: str
    found: tuple[ScriptSetting, ...] = ()
    sites: tuple[Site, ...] = ()
    problems: tuple[Finding, ...] = ()
    text: str = ""
    remarks: tuple[Record, ...] = ()
    passed_over: str = ""
    places: PartPlaces | None = None
    followed: tuple[Followed, ...] = ()
    others: tuple[ScriptSetting, ...] = ()

    def list_remarks(self, kind: type[Remark]) -> list[Remark]:
        """Return the remarks of one kind, those on lines of other files too."""
        return [remark for remark in self.remarks if isinstance(remark, kind)]

    def list_own_remarks(self, kind: type[Remark]) -> list[Remark]:
        """Return the remarks of one kind on lines of the file itself."""
        return [remark for remark in self.list_remarks(kind) if remark.file == self.file]  # type: ignore[attr-defined]


class PartLine(Record):
    """One line: where the JSON text it is from begins in the file, that text, the number of the cell, its own number in the cell.

    ``start`` is where the line begins in the text.
    """

    line: int
    column: int
    text: str
    cell: int
    number: int
    start: int = 0


class PartPlaces:
    """The lines of a text, and where they are from."""

    def __init__(self, lines: list[PartLine], text: str) -> None:
        self._lines = lines
        self.text = text

    def find_place(self, line: int, column: int) -> tuple[int, int, str]:
        """Return line and column in the file, and the part as people count: ``cell 3, line 5``."""
        if not 0 < line <= len(self._lines):
            return line, column, ""
        part = self._lines[line - 1]
        before = json.dumps(part.text[: part.start + max(column - 1, 0)], ensure_ascii=False)  # as Jupyter writes it
        return part.line, part.column + len(before) - 1, f"cell {part.cell}, line {part.number}" if part.cell else ""

    def place_finding(self, finding: Finding) -> Finding:
        """Return a finding at its place in the file; its text says which cell that is."""
        if finding.where is None or not finding.where.line:
            return finding
        line, column, part = self.find_place(finding.where.line, finding.where.column)
        placed = finding._replace(where=finding.where._replace(line=line, column=column if finding.where.column else 0))
        texts = (finding.message, finding.why, finding.hint)
        message, why, hint = (_LINE.sub(lambda match: self.find_place(int(match[1]), 1)[2] or match[0], text) for text in texts)
        return placed._replace(message=message, why=f"It is in {part}. {why}".rstrip() if part else why, hint=hint)
