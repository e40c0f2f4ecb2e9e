"""Arguments of programs with a section.

If the value of one is a table, the table's keys belong to another section.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from math import isfinite
from typing import Any

from npuprof import catalog
from npuprof.catalog.programs import Program, find_program, load_programs, read_size
from npuprof.document.keys import format_full_key, format_key_segment
from npuprof.model import Finding, Record
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading.trees import Node, parse_json, parse_yaml
from npuprof.scripts.reading.variable_files import is_placeholder
from npuprof.scripts.script_records import (
    PLACEHOLDER,
    UNSET,
    Position,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
    drop_null,
)
from npuprof.scripts.shell_lexer import Word
from npuprof.scripts.steps import SETTING_STEPS, count_steps
from npuprof.scripts.words import Search, build_search, finds_any
from npuprof.system import group_pairs

#: The reason for a word that belongs to no argument.
NO_NAME = "is not the full name of an argument"
#: The reason for a null.
NULL = "null says nothing"
#: The start of a reason for a text that is not a table of keys.
NO_TABLE = "is not a JSON object"
#: The reason for a file of arguments that cannot be read.
NO_FILE = "names a file that is not in the tree"
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FLAG = re.compile("--|-[A-Za-z]")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,8})\.[0-9]{1,8}")


#: Returns the position in the file for a line and column of a text in it.
Locate = Callable[[int, int], Position]


@cache
def list_starts() -> dict[str, list[tuple[list[str], Program]]]:
    """Return the starts of programs by their first argument: the other ones, and the program."""
    starts = [(start.split(), program) for program in load_programs() for start in program.starts]
    return group_pairs((first, (others, program)) for (first, *others), program in starts)


@cache
def _list_mentions() -> list[Search]:
    """Return the searches for programs, and for arguments with a table of another section."""
    starts = {
        start.removeprefix("-m ").partition(" ")[0]
        for program in load_programs()
        for start in program.starts
    }
    tables = [name for program in load_programs() for name in program.tables]
    return [*map(build_search, starts), *map(_match_spellings, tables)]


@cache
def _list_own_arguments() -> list[Search]:
    """Return the searches for arguments of one program only."""
    return [_match_spellings(name) for program in load_programs() for name in program.marks]


def _match_spellings(name: str) -> Search:
    """Return the search for all spellings of an argument."""
    first, second, *_ = (*re.split("[-_]", name), "")
    begins = (f"{first}-{second}", f"{first}_{second}", first + second.capitalize())
    either = re.sub("[-_](.)", lambda match: f"(?:[-_]{match[1]}|{match[1].upper()})", name)
    return [text.encode() for text in begins], re.compile(rf"{either}\b".encode())


def mentions_program(data: bytes) -> bool:
    """Return whether a file names a program, or an argument with a table of another section."""
    return finds_any(data, _list_mentions())


def mentions_arguments(data: bytes) -> bool:
    """Return whether a file has an argument of one program only."""
    return finds_any(data, _list_own_arguments())


def find_start(arguments: Sequence[Word]) -> tuple[Program, Sequence[Word]] | None:
    """Return the program that a command starts, and the arguments after its start.

    None for another command.
    """
    for at, argument in enumerate(arguments, 1):
        for start, program in list_starts().get(argument.text.rpartition("/")[2], ()):
            end = at + len(start)
            if [word.text for word in arguments[at:end]] == start:
                return program, arguments[end:]
    return None


def read_arguments(
    path: str, program: Program, arguments: Sequence[Word], source: str = ""
) -> Iterator[ScriptSetting]:
    """Yield the settings of a program's arguments.

    ``source`` is the text of the arguments, empty if unknown.
    """
    if any(argument.text in program.others for argument in arguments):
        return
    for setting in _read_command_line(path, program, arguments, source):
        # a line may have several starts
        scope = "{}@{}.{}".format(program.section, *arguments[0].position)
        yield setting._replace(scope=scope)


def _read_command_line(
    path: str, program: Program, arguments: Sequence[Word], source: str = ""
) -> list[ScriptSetting]:
    remaining = list(arguments)[::-1]  # the next argument is last, where it is removed fast
    settings: list[ScriptSetting] = []
    dotted = defaultdict(list)
    appended: dict[str, ScriptSetting] = {}
    if program.positional and remaining and not remaining[-1].text.startswith("-"):
        first = remaining[-1]
        remaining[-1] = first.with_parts(f"--{program.positional}=", *first.parts)
    while remaining:
        argument = remaining.pop()
        if argument.text.partition("=")[0] in ("-h", "--help"):
            continue
        given = _read_flag(program, argument)
        record = catalog.find_setting(program.section, given.name)
        values = given.values or _take_values(record, given.name, remaining)
        is_table = given.name in program.tables or (values and _is_json(record, values[0]))
        if is_table and values and not given.path:
            settings += _read_table_argument(path, program, given.name, values[0], source, argument)
            continue
        setting = _build_argument(path, program, argument, given, values)
        if given.path:
            dotted[given.written].append(setting)
        elif record is not None and record.repeated and not setting.reason:
            if setting.key not in appended:
                appended[setting.key] = setting.with_value(value=[])
                settings.append(appended[setting.key])
            appended[setting.key].value.append(setting.value)
        else:
            settings.append(setting)
    # vLLM joins them and adds them last
    for parts in dotted.values():
        settings = _add_dotted(program, settings, parts)
    return settings


class _Flag(Record):
    """A flag: the name of its argument, the path after it, and its value if it has one.

    ``written`` is the flag with dashes, without path and value. The name is empty for a word that
    is no flag, or an unknown short one.
    """

    name: str = ""
    path: tuple[str, ...] = ()
    written: str = ""
    is_on: bool = True
    values: list[Word] = []


def _read_flag(program: Program, argument: Word) -> _Flag:
    flag, equals, _ = argument.text.partition("=")
    letter = flag[:2]
    # an expansion may be the value after a letter, and no part of a name
    name = flag if letter == "--" else letter
    if not _FLAG.match(flag) or not str(argument.parts[0]).startswith(name):
        return _Flag()
    head, _, rest = flag.partition(".")
    if letter == "--":
        head = f"--{program.spell_argument(head[2:])}"
    values = [argument.value] if equals else []
    path = tuple(rest.split(".")) if rest else ()
    known = program.find_flag(head)
    if known is None and letter != "--":
        # the value follows the letter: -O3, -n2
        head, path, values = letter, (), [argument.cut_prefix(2)]
        known = program.flags.get(head)
        if known is None:
            return _Flag()
    name, is_on = known or (head[2:], True)
    return _Flag(name, path, head, is_on, values)


def _take_values(record: catalog.Setting | None, name: str, remaining: list[Word]) -> list[Word]:
    """Return the values after a flag, which are removed from the remaining arguments."""
    kind = record.kind if record else ""
    most = len(remaining) if kind == "list" else 1
    # a word may be meant for a switch, although a switch takes none
    is_truth = bool(remaining) and remaining[-1].text.lower() in ("true", "false")
    if not name or (kind == "bool" and not is_truth):
        most = 0
    values: list[Word] = []
    # a value may begin with one dash, as a negative number does
    while remaining and len(values) < most and not _FLAG.match(remaining[-1].text):
        values.append(remaining.pop())
    return values


def _is_json(record: catalog.Setting | None, value: Word) -> bool:
    """Return whether the program reads an argument's text as JSON."""
    if record is None or record.kind != "json" or value.open_part:
        return False
    is_text = record.kinds and value.text[:1] + value.text[-1:] not in ("{}", "[]")
    return not is_text and read_value(record, value.text) is not None


def _add_dotted(
    program: Program, settings: list[ScriptSetting], parts: list[ScriptSetting]
) -> list[ScriptSetting]:
    """Return settings with those of ``--NAME.KEY``: one table in place of an earlier one.

    They stay apart if a value is unknown, or belongs to another section.
    """
    name, _, _ = parts[0].name.partition(".")
    key = format_full_key(program.section, name)
    if any(part.reason or not part.key.startswith(f"{key}.") for part in parts):
        return [*settings, *parts]
    table: dict[str, Any] = {}
    for part in parts:
        value = part.value
        for inner in reversed(part.name.split(".")[1:]):
            value = {inner: value}
        _merge(table, value)
    setting = parts[0]._replace(key=key, name=name).with_value(value=table)
    return [*(before for before in settings if before.key != key), setting]


def _merge(table: dict[str, Any], other: dict[str, Any]) -> None:
    """Add another table to a table; tables in both are merged, and lists are joined."""
    for name, value in other.items():
        before = table.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            _merge(before, value)
        else:
            is_joined = isinstance(value, list) and isinstance(before, list)
            table[name] = [*before, *value] if is_joined else value  # type: ignore[misc]


def _build_argument(
    path: str, program: Program, argument: Word, given: _Flag, values: list[Word]
) -> ScriptSetting:
    """Return an argument, or a key in its table, as a setting; a flag alone is true."""
    count_steps(SETTING_STEPS)
    name, section = given.name, program.section
    open_parts = (text.open_part for text in (values if name else [argument]))
    value = None
    if open_part := next(filter(None, open_parts), ""):
        reason = f"depends on {open_part}"
    elif name in program.secret:
        reason = "is a secret"
    elif not name:
        reason = NO_NAME
    else:
        record = catalog.find_setting(section, name)
        if given.path and values:
            field = catalog.find_setting(section, ".".join((name, *given.path)))
            value = _read_dotted_value(given.path, values[0].text, field)
        elif record is not None and record.kind == "list":
            value = [read_value(record, text.text) for text in values]
        else:
            value = read_value(record, values[0].text) if values else given.is_on
        reason = UNSET if value is None else ""
    assigned = ScriptValue(value, reason)
    # if the file is in the tree, its settings replace this one
    if name == program.config and isinstance(value, str):
        assigned = ScriptValue(None, NO_FILE, "", value)
    location = ScriptLocation(path, *argument.position)
    if not name:
        return ScriptSetting(location, section, "", argument.text, assigned)
    inner = [part.removesuffix("+") for part in given.path]
    names = [section, name, *inner]
    if inner and name in program.tables:
        names = [program.tables[name], *inner]
    key = ".".join(map(format_key_segment, names))
    is_short = not inner and given.written != f"--{name}"
    shown = given.written if is_short else ".".join(names[1:])
    return ScriptSetting(location, section, key, shown, assigned)


def read_value(record: catalog.Setting | None, text: str) -> Any:
    """Return the value that the program makes of an argument's text, else the text.

    None is unset. A text of an unknown argument may be a number.
    """
    if record is None:
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _DECIMAL.fullmatch(text) else text
    if record.optional and text in ("", "None"):
        return None
    kind = record.items or record.kind
    if kind == "int" and record.parsed_as == "size":
        return -1 if record.minimum == -1 and text.lower() == "auto" else read_size(text)
    with suppress(ValueError):
        if kind == "int":
            return int(text)
        if kind == "float" and isfinite(float(text)):
            return float(text)
    return text


def _read_dotted_value(inner: tuple[str, ...], text: str, field: catalog.Setting | None) -> Any:
    """Return the value of ``--NAME.KEY``: JSON, a number with a unit, or else a text.

    Older releases take what has a unit as a text.
    ``KEY+`` takes texts separated by commas.
    """
    if inner[-1].endswith("+"):
        return text.split(",")
    with suppress(ValueError, RecursionError):
        return drop_null(json.loads(text))
    return text if field and "str" in (field.kind, *field.kinds) else read_size(text)


def _read_table_argument(
    path: str, program: Program, name: str, argument: Word, source: str, flag: Word
) -> Iterator[ScriptSetting]:
    """Yield the keys in an argument's JSON, or the argument if it is no plain JSON.

    The JSON is one setting, at its flag, if its keys are of no other section.
    """
    # escapes in the text of the file move the columns
    start = source[slice(*argument.span)].find(argument.text)
    problems: list[Finding] = []
    tree = None if argument.open_part else parse_json(path, argument.text, problems)

    def locate(inner_line: int, inner_column: int) -> Position:
        if start < 0 or not inner_line:
            return argument.position
        before = argument.column + start - 1 if inner_line == 1 else 0
        return argument.line + inner_line - 1, before + inner_column

    if tree is not None and name not in program.tables:
        value = drop_null(build_value(tree))
        read = ScriptValue(value, UNSET if tree.is_null else "", type(value).__name__)
        place = ScriptLocation(path, *flag.position)
        key = format_full_key(program.section, name)
        yield ScriptSetting(place, program.section, key, name, read)
        return
    if tree is not None and (tree.pairs is not None or tree.is_null):
        names = (program.tables[name],)
        yield from read_table(path, program.section, names, tree, locate=locate)
        return
    position = argument.position
    if argument.open_part:
        reason = f"depends on {argument.open_part}"
    elif is_placeholder(argument.text):
        reason = PLACEHOLDER
    elif problems:
        _, _, message = problems[0].message.partition(": ")
        reason = f"{NO_TABLE}: {message}"
        if where := problems[0].where:
            position = locate(where.line, where.column)
    else:
        reason = NO_TABLE
    location = ScriptLocation(path, *position)
    yield ScriptSetting(location, program.section, "", f"--{name}", ScriptValue(None, reason))


def read_table(
    path: str,
    surface: str,
    names: tuple[str, ...],
    node: Node,
    key: Node | None = None,
    locate: Locate = lambda *position: position,
) -> Iterator[ScriptSetting]:
    """Yield the settings in a table, or in the value of a key.

    ``names`` are the section and the path of the table in it. A table below the top is one setting
    if the section has it as a setting.
    """
    section, *inner = names
    name = ".".join(inner)
    if key is None or (node.pairs and catalog.find_setting(section, name) is None):
        for inner_key, value in node.pairs or ():
            inner_names = (*names, str(inner_key.value))
            yield from read_table(path, surface, inner_names, value, inner_key, locate)
        return
    count_steps(SETTING_STEPS)
    value = build_value(node)
    reason = NULL if node.is_null else _find_gap(node)
    places = {at: locate(*place) for at, place in _list_places((), node)}
    yield ScriptSetting(
        ScriptLocation(path, *locate(*key.position), inner=places),
        surface,
        ".".join(map(format_key_segment, names)),
        name,
        ScriptValue(None if reason else value, reason, type(value).__name__),
    )


def _find_gap(node: Node) -> str:
    """Return why the value of a leaf is unknown, such as a list with an ellipsis; else empty."""
    if node.value == "???":
        return "is given elsewhere, as ??? demands"
    items = node.items or []
    is_hidden = any(item.is_open for item in (node, *items)) and not any(i.pairs for i in items)
    return "the text leaves out a part of it" if is_hidden else ""


def _list_places(path: tuple[str, ...], node: Node) -> Iterator[tuple[tuple[str, ...], Position]]:
    """Yield the paths of the values in a table or list, and their positions."""
    count_steps()
    pairs = [*(node.pairs or ()), *((item, item) for item in node.items or ())]
    for number, (key, value) in enumerate(pairs):
        inner = (*path, str(number if key is value else key.value))
        yield inner, key.position
        yield from _list_places(inner, value)


def build_value(node: Node) -> Any:
    """Return a node as a plain value."""
    count_steps()
    if node.pairs is not None:
        return {str(key.value): build_value(value) for key, value in node.pairs}
    return node.value if node.items is None else [build_value(item) for item in node.items]


def read_file(path: str, section: str, table: Node) -> Iterator[ScriptSetting]:
    """Yield the settings of a file of arguments of a section; they have no scope."""
    program = find_program(section)
    if program is not None and program.config:
        yield from _read_pairs(path, program, table)
        return
    for setting in read_table(path, section, (section,), table):
        # a program fills in "{prompt}" itself
        if not (setting.reason or re.search(r"(?<!\$)\{\w", str(setting.value))):
            yield setting


def _read_pairs(path: str, program: Program, table: Node) -> Iterator[ScriptSetting]:
    """Yield the settings of a file as those of the arguments into which the program turns it."""
    words = []
    for key, node in table.pairs or ():
        written = program.spell_argument(str(key.value))
        name, is_on = program.find_flag(f"--{written}") or (written, True)
        section = program.tables.get(name)
        is_group = bool(node.pairs) and catalog.find_setting(program.section, name) is None
        if section and node.pairs is not None:
            yield from read_table(path, program.section, (section,), node)
        elif node.is_null or (node.value is False and is_on) or is_group:
            yield from read_table(path, program.section, (program.section, name), node, key)
        elif node.value is not False:
            words.append(Word(*key.position, (f"--{key.value}",)))
            items = node.items or [node]
            texts = [
                str(item.value) if item.is_plain else json.dumps(build_value(item), default=str)
                for item in items
                if node.value is not True
            ]
            words += [Word(*node.position, (text,)) for text in texts]
    yield from _read_command_line(path, program, words)


def follow_files(
    path: str, settings: Sequence[ScriptSetting], modules: Modules
) -> Iterator[ScriptSetting]:
    """Yield the settings of files of arguments that a launch names, then the others.

    The latter override them.
    """
    assert modules.locate_file is not None
    rest = []
    for setting in settings:
        files: Sequence[str] = ()
        if setting.reason == NO_FILE:
            files = modules.locate_file(path, setting.assigned.written, False)
        # of several files of that name, it is unknown which one is meant
        file = files[0] if len(files) == 1 else ""
        text = modules.read(file).decode(errors="replace") if file else ""
        documents = parse_yaml(file, text, []) if text else None
        if not documents:
            rest.append(setting)
            continue
        for of_file in read_file(file, setting.surface, documents[0]):
            yield of_file.with_location(call=setting.position)._replace(
                scope=setting.scope, branches=setting.branches
            )
    yield from rest
