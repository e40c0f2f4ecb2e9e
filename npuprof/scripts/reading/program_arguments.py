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
from npuprof.model import Finding
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading.trees import Node, parse_json, parse_yaml
from npuprof.scripts.script_records import Position, ScriptLocation, ScriptSetting, ScriptValue
from npuprof.scripts.shell_lexer import Word
from npuprof.system import group_pairs

#: The start of a reason for a text that is not a table of keys.
NO_TABLE = "is not a JSON object"
_INTEGER, _DECIMAL = (
    re.compile(r"-?(?:0|[1-9][0-9]{0,17})"),
    re.compile(r"-?(?:0|[1-9][0-9]{0,8})\.[0-9]{1,8}"),
)
#: A setting in a table: its section and path, its key, and its value.
Leaf = tuple[tuple[str, ...], Node, Node]
#: Returns the place in the file for a line and column of a text in it.
Locate = Callable[[int, int], Position]


@cache
def list_starts() -> dict[str, list[tuple[list[str], Program]]]:
    """Return the starts of programs by their first argument: the other ones, and the program."""
    starts = ((start.split(), program) for program in load_programs() for start in program.starts)
    return group_pairs((words[0], (words[1:], program)) for words, program in starts)


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
    words = (*starts, *(re.split("[-_]", name)[0] for name in tables))
    return list(map(str.encode, words)), re.compile("|".join(names).encode())


@cache
def _compile_mark() -> re.Pattern[bytes]:
    marks = (_match_spellings(name) for program in load_programs() for name in program.marks)
    return re.compile(rf"(?:{'|'.join(marks)})\b".encode())


def _match_spellings(name: str) -> str:
    """Return a pattern for the spellings of an argument."""
    return re.sub("[-_]", "[-_]", name)


def mentions_program(data: bytes) -> bool:
    """Return whether a file names a program, or an argument with a table of another section."""
    words, names = _compile_mention()
    return any(word in data for word in words) and names.search(data) is not None


def mentions_arguments(data: bytes) -> bool:
    """Return whether a file has an argument of one program only."""
    return _compile_mark().search(data) is not None


def find_start(words: Sequence[Word]) -> tuple[Program, Sequence[Word]] | None:
    """Return the program that a command starts, and the words after its start.

    None for another command.
    """
    texts = [word.text for word in words]
    for at, text in enumerate(texts, 1):
        for start, program in list_starts().get(text.rpartition("/")[2], ()):
            end = at + len(start)
            if end <= len(texts) and all(map(_is_start_word, texts[at:end], start)):
                return program, words[end:]
    return None


def _is_start_word(text: str, word: str) -> bool:
    """Return whether a text is a word of a start, or a module below it."""
    return text.startswith(word) if word.endswith(".") else text == word


def read_arguments(
    path: str, program: Program, words: Sequence[Word], source: str
) -> Iterator[ScriptSetting]:
    """Yield the settings of a program's arguments.

    ``source`` is the text of the words, empty if unknown.
    """
    scope = f"{program.section}@{words[0].line}" if words else ""
    return (setting._replace(scope=scope) for setting in _read_words(path, program, words, source))


def _read_words(
    path: str, program: Program, words: Sequence[Word], source: str
) -> Iterator[ScriptSetting]:
    waiting = list(words)[::-1]
    if program.positional and waiting and not waiting[-1].text.startswith("-"):
        yield _build_argument(path, program, waiting[-1], program.positional, [waiting.pop()])
    while waiting:
        word = waiting.pop()
        flag, equals, _ = word.text.partition("=")
        head, dot, rest = flag.removeprefix("--").partition(".")
        head = program.spell_argument(head)
        is_full = flag.startswith("--") and isinstance(word.parts[0], str)
        name = program.short.get(flag) or (f"{head}{dot}{rest}" if is_full else "")
        values = [word.value] if equals and name else []
        while (
            name
            and waiting
            and not equals
            and not waiting[-1].text.startswith("--")
            and (not values or name in program.several)
        ):
            values.append(waiting.pop())
        if name in program.tables and values:
            yield from _read_table_word(path, program, name, values[0], source)
        elif head in program.tables:
            setting = _build_argument(path, program, word, name, values)
            yield (
                setting._replace(key=f"{program.tables[head]}.{rest}", name=rest)
                if rest
                else setting
            )
        else:
            yield _build_argument(path, program, word, name, values)


def _build_argument(
    path: str, program: Program, word: Word, name: str, values: list[Word]
) -> ScriptSetting:
    """Return an argument as a setting; a flag alone is true."""
    open_part = next(
        (value.open_part for value in (*values, *([] if name else [word])) if value.open_part), ""
    )
    reason = (
        f"depends on {open_part}"
        if open_part
        else "is a secret"
        if name in program.secret
        else ""
        if name
        else "is not the full name of an argument"
    )
    record = catalog.find_setting(program.section, name)
    truths = {"true": True, "false": False} if record is not None and record.kind == "bool" else {}
    texts = [truths.get(value.text, _read_text(value.text)) for value in values]
    value = None if reason else texts if len(texts) > 1 else texts[0] if texts else True
    place, key = (
        ScriptLocation(path, word.line, word.column),
        format_full_key(program.section, name) if name else "",
    )
    given = ScriptValue(value, reason, type(value).__name__, value)
    if name and name == program.config and isinstance(value, str):
        given = ScriptValue(None, "names a file that is not in the tree", "", value)
    return ScriptSetting(place, program.section, key, name or word.text, given)


def _read_text(text: str) -> Any:
    return (
        int(text) if _INTEGER.fullmatch(text) else float(text) if _DECIMAL.fullmatch(text) else text
    )


def _read_table_word(
    path: str, program: Program, name: str, word: Word, source: str
) -> Iterator[ScriptSetting]:
    """Yield the keys in a word's JSON, or the word itself if it is not JSON or has placeholders."""
    raw = source[slice(*word.span)]
    line, column = word.line, word.column + max(0, raw.find(word.text) if word.text in raw else 0)
    is_verbatim = word.text in raw
    problems: list[Finding] = []
    tree = None if word.open_part else parse_json(path, word.text, problems)

    def locate(inner_line: int, inner_column: int) -> Position:
        if not is_verbatim or not inner_line:
            return word.line, word.column
        return line + inner_line - 1, inner_column + (column - 1 if inner_line == 1 else 0)

    if tree is not None and tree.pairs is not None:
        yield from _read_leaves(
            path, program, _list_table_leaves(program.tables[name], (), tree), locate
        )
        return
    where = problems[0].where if problems else None
    message = f": {problems[0].message.partition(': ')[2]}" if problems else ""
    reason = f"depends on {word.open_part}" if word.open_part else f"{NO_TABLE}{message}"
    place = ScriptLocation(
        path, *(locate(where.line, where.column) if where else (word.line, word.column))
    )
    yield ScriptSetting(place, program.section, "", f"--{name}", ScriptValue(None, reason))


def _read_leaves(
    path: str, program: Program, leaves: Iterable[Leaf], locate: Locate = lambda *place: place
) -> Iterator[ScriptSetting]:
    """Yield settings in a table."""
    for (section, *names), key, node in leaves:
        value, reason = (
            build_value(node),
            "" if node.value is not None or not node.is_plain else "null says nothing",
        )
        given = ScriptValue(None if reason else value, reason, type(value).__name__)
        name, full = ".".join(names), ".".join(map(format_key_segment, (section, *names)))
        yield ScriptSetting(
            ScriptLocation(path, *locate(key.line, key.column)), program.section, full, name, given
        )


def _list_table_leaves(section: str, around: tuple[str, ...], table: Node) -> Iterator[Leaf]:
    for key, node in table.pairs or ():
        yield from _list_leaves(section, (*around, str(key.value)), key, node)


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
        yield (section, *names), key, node


def build_value(node: Node) -> Any:
    """Return a node as a plain value."""
    if node.pairs is not None:
        return {str(key.value): build_value(value) for key, value in node.pairs}
    return node.value if node.items is None else [build_value(item) for item in node.items]


def find_file_program(table: Node) -> Program | None:
    """Return the program whose file of arguments a table is, else None.

    It has a table of another section, or two arguments of one program only.
    """
    for program in load_programs():
        names = {program.spell_argument(str(key.value)) for key, _ in table.pairs or ()}
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
    for key, node in table.pairs or ():
        name = program.spell_argument(str(key.value))
        section = program.tables.get(name)
        if section is None:
            yield from _read_leaves(
                path, program, _list_leaves(program.section, (name,), key, node)
            )
        elif node.pairs is not None:
            yield from _read_leaves(path, program, _list_table_leaves(section, (), node))
        else:
            yield from _read_table_word(
                path, program, name, Word(node.line, node.column, (str(node.value),)), ""
            )


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
        program = programs.get(setting.key) if isinstance(setting.assigned.written, str) else None
        files = modules.locate_file(path, setting.assigned.written, False) if program else ()
        documents = (
            parse_yaml(files[0], modules.read(files[0]).decode(errors="replace"), [])
            if len(files) == 1
            else None
        )
        rest += [] if documents else [setting]
        for item in (
            read_file_table(files[0], program, documents[0]) if program and documents else ()
        ):
            yield item.with_location(call=(setting.line, setting.column))._replace(
                scope=setting.scope, branches=setting.branches
            )
    yield from rest


def read_listed_words(path: str, words: Sequence[Word]) -> Iterator[ScriptSetting]:
    """Yield the settings in a list of arguments, such as ``args`` of a container.

    It starts a program or continues its arguments.
    """
    if (started := find_start(words)) is None:
        flags = {
            word.text.partition("=")[0].removeprefix("--")
            for word in words
            if word.text.startswith("--")
        }
        named = (
            program
            for program in load_programs()
            if not program.tables.keys().isdisjoint(map(program.spell_argument, flags))
        )
        started = next(((program, words) for program in named), None)
    yield from read_arguments(path, *started, "") if started else ()
