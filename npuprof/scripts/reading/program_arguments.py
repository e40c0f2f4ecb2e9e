"""Arguments of programs with a section.

If the value of one is a table, the table's keys belong to another section.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog.programs import Program, load_programs
from npuprof.document.keys import format_full_key, format_key_segment
from npuprof.model import Finding, Record
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading.trees import Node, parse_json, parse_yaml
from npuprof.scripts.script_records import Position, ScriptLocation, ScriptSetting, ScriptValue
from npuprof.scripts.shell_lexer import Word
from npuprof.scripts.steps import SETTING_STEPS, count_steps
from npuprof.system import group_pairs

#: The start of a reason for a text that is not a table of keys.
NO_TABLE = "is not a JSON object"
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FLAG = re.compile("--|-[A-Za-z]")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,8})\.[0-9]{1,8}")


class Leaf(Record):
    """A setting in a table: its section, its path there, its key, and its value."""

    section: str
    path: tuple[str, ...]
    key: Node
    value: Node


#: Returns the position in the file for a line and column of a text in it.
Locate = Callable[[int, int], Position]


@cache
def list_starts() -> dict[str, list[tuple[list[str], Program]]]:
    """Return the starts of programs by their first argument: the other ones, and the program."""
    starts = []
    for program in load_programs():
        for start in program.starts:
            first, *others = start.split()
            starts.append((first, (others, program)))
    return group_pairs(starts)


@cache
def _compile_mention() -> tuple[list[bytes], re.Pattern[bytes]]:
    """Return texts of which a file must have one, and a pattern for programs and tables."""
    starts = {
        start.removeprefix("-m ").partition(" ")[0].rstrip(".")
        for program in load_programs()
        for start in program.starts
    }
    tables = [name for program in load_programs() for name in program.tables]
    names = (
        *(rf"\b{re.escape(start)}\b" for start in sorted(starts)),
        *map(_match_spellings, tables),
    )
    # the first part of a name is the same in all its spellings
    texts = (*starts, *(re.split("[-_]", name)[0] for name in tables))
    return list(map(str.encode, texts)), re.compile("|".join(names).encode())


@cache
def _compile_own_arguments() -> re.Pattern[bytes]:
    """Return a pattern for the arguments of one program only."""
    names = (_match_spellings(name) for program in load_programs() for name in program.marks)
    return re.compile(rf"(?:{'|'.join(names)})\b".encode())


def _match_spellings(name: str) -> str:
    """Return a pattern for the spellings of an argument."""
    return re.sub("[-_]", "[-_]", name)


def mentions_program(data: bytes) -> bool:
    """Return whether a file names a program, or an argument with a table of another section."""
    texts, names = _compile_mention()
    # a search for a fixed text is faster than the pattern
    return any(text in data for text in texts) and names.search(data) is not None


def mentions_arguments(data: bytes) -> bool:
    """Return whether a file has an argument of one program only."""
    return _compile_own_arguments().search(data) is not None


def find_start(arguments: Sequence[Word]) -> tuple[Program, Sequence[Word]] | None:
    """Return the program that a command starts, and the arguments after its start.

    None for another command.
    """
    texts = [argument.text for argument in arguments]
    for at, text in enumerate(texts, 1):
        for start, program in list_starts().get(text.rpartition("/")[2], ()):
            end = at + len(start)
            if end <= len(texts) and all(map(_matches_start, texts[at:end], start)):
                return program, arguments[end:]
    return None


def _matches_start(text: str, start: str) -> bool:
    """Return whether a text is an argument of a start, or a module below it."""
    return text.startswith(start) if start.endswith(".") else text == start


def read_arguments(
    path: str, program: Program, arguments: Sequence[Word], source: str
) -> Iterator[ScriptSetting]:
    """Yield the settings of a program's arguments.

    ``source`` is the text of the arguments, empty if unknown.
    """
    scope = f"{program.section}@{arguments[0].line}" if arguments else ""
    settings = _read_command_line(path, program, arguments, source)
    return (setting._replace(scope=scope) for setting in settings)


def _read_command_line(
    path: str, program: Program, arguments: Sequence[Word], source: str
) -> Iterator[ScriptSetting]:
    remaining = list(arguments)[::-1]  # the next argument is last, where it is removed fast
    if program.positional and remaining and not remaining[-1].text.startswith("-"):
        first = remaining.pop()
        yield _build_argument(path, program, first, program.positional, [first])
    while remaining:
        argument = remaining.pop()
        flag, equals, _ = argument.text.partition("=")
        head, dot, rest = flag.removeprefix("--").partition(".")
        head = program.spell_argument(head)
        is_full = flag.startswith("--") and isinstance(argument.parts[0], str)
        name = program.short.get(flag) or (f"{head}{dot}{rest}" if is_full else "")
        values = []
        if name and equals:
            values = [argument.value]
        elif name:
            most = len(remaining) if name in program.several else 1
            # a value may begin with one dash, as a negative number does
            while remaining and len(values) < most and not _FLAG.match(remaining[-1].text):
                values.append(remaining.pop())
        if name in program.tables and values:
            yield from _read_table_argument(path, program, name, values[0], source)
            continue
        setting = _build_argument(path, program, argument, name, values)
        if head in program.tables and rest:
            setting = setting._replace(key=f"{program.tables[head]}.{rest}", name=rest)
        yield setting


def _build_argument(
    path: str, program: Program, argument: Word, name: str, values: list[Word]
) -> ScriptSetting:
    """Return an argument as a setting; a flag alone is true."""
    count_steps(SETTING_STEPS)
    texts = values if name else [*values, argument]
    open_part = next((text.open_part for text in texts if text.open_part), "")
    value: Any = None
    if open_part:
        reason = f"depends on {open_part}"
    elif name in program.secret:
        reason = "is a secret"
    elif not name:
        reason = "is not the full name of an argument"
    else:
        reason = ""
        record = catalog.find_setting(program.section, name)
        is_switch = record is not None and record.kind == "bool"
        items = [_read_value(text.text, is_switch) for text in values]
        # the value of --NAME.KEY is JSON, or else a text
        if "." in name and values and (tree := parse_json(path, values[0].text, [])):
            items = [build_value(tree)]
        value = items if len(items) > 1 else items[0] if items else True
    assigned = ScriptValue(value, reason, type(value).__name__, value)
    # if the file is in the tree, its settings replace this one
    if name and name == program.config and isinstance(value, str):
        assigned = ScriptValue(None, "names a file that is not in the tree", "", value)
    location = ScriptLocation(path, argument.line, argument.column)
    key = format_full_key(program.section, name) if name else ""
    return ScriptSetting(location, program.section, key, name or argument.text, assigned)


def _read_value(text: str, is_switch: bool) -> Any:
    """Return the value of an argument's text: a number, true or false of a switch, or the text."""
    if is_switch and text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _read_table_argument(
    path: str, program: Program, name: str, argument: Word, source: str
) -> Iterator[ScriptSetting]:
    """Yield the keys in an argument's JSON, or the argument if it is no plain JSON."""
    raw = source[slice(*argument.span)]
    # escapes in the text of the file move the columns
    is_verbatim = argument.text in raw
    line = argument.line
    column = argument.column + (raw.find(argument.text) if is_verbatim else 0)
    problems: list[Finding] = []
    tree = None if argument.open_part else parse_json(path, argument.text, problems)

    def locate(inner_line: int, inner_column: int) -> Position:
        if not is_verbatim or not inner_line:
            return argument.line, argument.column
        return line + inner_line - 1, inner_column + (column - 1 if inner_line == 1 else 0)

    if tree is not None and (tree.pairs is not None or tree.is_null):
        leaves = _list_table_leaves(program.tables[name], (), tree)
        yield from _read_leaves(path, program, leaves, locate)
        return
    position = argument.line, argument.column
    if argument.open_part:
        reason = f"depends on {argument.open_part}"
    elif problems:
        _, _, message = problems[0].message.partition(": ")
        reason = f"{NO_TABLE}: {message}"
        if where := problems[0].where:
            position = locate(where.line, where.column)
    else:
        reason = NO_TABLE
    location = ScriptLocation(path, *position)
    yield ScriptSetting(location, program.section, "", f"--{name}", ScriptValue(None, reason))


def _read_leaves(
    path: str, program: Program, leaves: Iterable[Leaf], locate: Locate = lambda *position: position
) -> Iterator[ScriptSetting]:
    """Yield settings in a table."""
    for leaf in leaves:
        count_steps(SETTING_STEPS)
        value = build_value(leaf.value)
        reason = "null says nothing" if leaf.value.is_null else ""
        yield ScriptSetting(
            ScriptLocation(path, *locate(leaf.key.line, leaf.key.column)),
            program.section,
            ".".join(map(format_key_segment, (leaf.section, *leaf.path))),
            ".".join(leaf.path),
            ScriptValue(None if reason else value, reason, type(value).__name__),
        )


def _list_table_leaves(section: str, outer: tuple[str, ...], table: Node) -> Iterator[Leaf]:
    """Yield the settings in a table, whose path is ``outer``."""
    for key, node in table.pairs or ():
        yield from _list_leaves(section, (*outer, str(key.value)), key, node)


def _list_leaves(section: str, names: tuple[str, ...], key: Node, node: Node) -> Iterator[Leaf]:
    """Yield the settings in a value: those in a table, or the value itself.

    A table is one setting if the section has it as a setting, or is not judged.
    """
    if (
        node.pairs
        and not catalog.load_sections()[section].is_passed_through
        and catalog.find_setting(section, ".".join(names)) is None
    ):
        yield from _list_table_leaves(section, names, node)
    else:
        yield Leaf(section, names, key, node)


def build_value(node: Node) -> Any:
    """Return a node as a plain value."""
    count_steps()
    if node.pairs is not None:
        return {str(key.value): build_value(value) for key, value in node.pairs}
    return node.value if node.items is None else [build_value(item) for item in node.items]


def find_file_program(table: Node) -> Program | None:
    """Return the program whose file of arguments a table is, else None.

    It has a table of another section, or two arguments of one program only.
    """
    for program in load_programs():
        names = {
            program.spell_argument(str(key.value))
            for key, value in table.pairs or ()
            if not value.is_null
        }
        if not names.isdisjoint(program.tables) or len(names.intersection(program.marks)) > 1:
            return program
    return None


def read_file_table(path: str, program: Program, table: Node) -> Iterator[ScriptSetting]:
    """Yield the settings of a file of arguments."""
    return (
        setting._replace(scope=f"{program.section}@{table.line}")
        for setting in _read_pairs(path, program, table)
    )


def _read_pairs(path: str, program: Program, table: Node) -> Iterator[ScriptSetting]:
    for name, key, node in _list_flags(program, table):
        section = program.tables.get(name)
        if section is None:
            yield from _read_leaves(
                path, program, _list_leaves(program.section, (name,), key, node)
            )
        elif node.pairs is not None:
            yield from _read_leaves(path, program, _list_table_leaves(section, (), node))
        elif not node.is_null:
            argument = Word(node.line, node.column, (str(node.value),))
            yield from _read_table_argument(path, program, name, argument, "")


def _list_flags(program: Program, table: Node) -> list[tuple[str, Node, Node]]:
    """Return name, key and value of each argument in a file.

    As the program makes flags of the keys, ``no-NAME: true`` is false, and ``NAME=VALUE: true`` is
    the value, of which a repeated argument has several.
    """
    found: list[tuple[str, Node, Node]] = []
    lists: dict[str, list[Node]] = {}
    for key, node in table.pairs or ():
        flag, equals, text = str(key.value).partition("=")
        name = program.spell_argument(flag)
        record = catalog.find_setting(program.section, name.removeprefix("no-"))
        if node.value is True and record and f"--{name}" in record.negations:
            name, node = record.name, Node(node.line, node.column, False)
        elif node.value is True and equals:
            is_text = record is None or record.kind == "str"
            node = Node(key.line, key.column, text if is_text else _read_value(text, False))
            if record and record.repeated:
                lists.setdefault(name, []).append(node)
                if len(lists[name]) > 1:
                    continue
                node = Node(key.line, key.column)
                node.items = lists[name]
        elif record and record.kind == "json" and str(node.value).startswith("["):
            node = parse_json("", node.value, []) or node
        found.append((name, key, node))
    return found


def follow_files(
    path: str, settings: Sequence[ScriptSetting], modules: Modules
) -> Iterator[ScriptSetting]:
    """Yield the settings of files of arguments that a launch names, then the others.

    The latter override them.
    """
    assert modules.locate_file is not None
    programs = {
        format_full_key(program.section, program.config): program
        for program in load_programs()
        if program.config
    }
    rest = []
    for setting in settings:
        program = programs.get(setting.key)
        name = setting.assigned.written
        files = modules.locate_file(path, name, False) if program and isinstance(name, str) else ()
        # of several files of that name, it is unknown which one is meant
        if program is None or len(files) != 1:
            rest.append(setting)
            continue
        (file,) = files
        documents = parse_yaml(file, modules.read(file).decode(errors="replace"), [])
        if not documents:
            rest.append(setting)
            continue
        for of_file in read_file_table(file, program, documents[0]):
            yield of_file.with_location(call=(setting.line, setting.column))._replace(
                scope=setting.scope, branches=setting.branches
            )
    yield from rest


def read_listed_arguments(path: str, arguments: Sequence[Word]) -> Iterator[ScriptSetting]:
    """Yield the settings in a list of arguments, such as ``args`` of a container.

    It starts a program or continues its arguments.
    """
    if (started := find_start(arguments)) is not None:
        yield from read_arguments(path, *started, "")
        return
    flags = {
        argument.text.partition("=")[0].removeprefix("--")
        for argument in arguments
        if argument.text.startswith("--")
    }
    for program in load_programs():
        if not program.tables.keys().isdisjoint(map(program.spell_argument, flags)):
            yield from read_arguments(path, program, arguments, "")
            return
