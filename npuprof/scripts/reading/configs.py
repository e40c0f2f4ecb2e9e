"""YAML and JSON: container variables, exports of ``npuprof env``, and settings of scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise

from npuprof import catalog
from npuprof.document.keys import format_full_key, format_short_value
from npuprof.model import Finding
from npuprof.scripts.python import environ
from npuprof.scripts.python.imports import split_words
from npuprof.scripts.reading import program_arguments
from npuprof.scripts.reading.kubernetes import find_container_settings
from npuprof.scripts.reading.shell_scripts import find_code_settings, find_shell_settings
from npuprof.scripts.reading.trees import Node, iterate_tables, parse_json, parse_yaml
from npuprof.scripts.reading.variable_files import build_variable_setting, split_references
from npuprof.scripts.script_records import (
    ImportedFile,
    Position,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
)
from npuprof.scripts.shell_lexer import Word

_VARIABLE = re.compile(r"(\$\([A-Za-z_]\w*\)|\$\{?[A-Za-z_]\w*\}?)")
_COMMAND = ("entrypoint", "command", "args")
#: Keys of scripts: steps of workflows and files of a ConfigMap.
_SCRIPT = re.compile(r"run|(?:before_|after_)?script|.*\.sh")
_INSIDE_SHELL = "applies to this command only"


@cache
def _certain_names() -> frozenset[str]:
    """Return the option names that no other tool uses."""
    return frozenset(
        option.name for option in catalog.list_records(catalog.Option) if not option.common_name
    )


@cache
def _encoded_names() -> frozenset[bytes]:
    return frozenset(map(str.encode, _certain_names()))


def mentions_config(data: bytes) -> bool:
    """Return whether a file can contain settings."""
    is_named = environ.mentions_variable(data) or not _encoded_names().isdisjoint(split_words(data))
    return (
        is_named
        or program_arguments.mentions_program(data)
        or program_arguments.mentions_arguments(data)
    )


def import_json(path: str, text: str) -> ImportedFile:
    """Return the content of a JSON file."""
    problems: list[Finding] = []
    tree = parse_json(path, text, problems)
    return (
        _import_documents(path, text, [tree])
        if tree
        else ImportedFile(path, problems=tuple(problems))
    )


def import_yaml(path: str, text: str) -> ImportedFile:
    """Return the content of a YAML file. Raises ImportError without PyYAML."""
    problems: list[Finding] = []
    documents = parse_yaml(path, text, problems)
    if documents is None:
        return ImportedFile(path, problems=tuple(problems))
    inner = [table.find("runtimeEnvYAML") for table in iterate_tables(documents)]
    for node in inner:  # in a job or service of KubeRay
        if node is None or not node.is_text:
            continue
        # a block of YAML begins on the line below its key, with an indentation that its text lacks
        source, (line, _) = _find_source(node, text)
        placed = "\n" * (line - 1) + source
        documents += parse_yaml(path, placed, problems) or []
    return _import_documents(path, text, documents)._replace(problems=tuple(problems))


def _import_documents(path: str, text: str, documents: list[Node]) -> ImportedFile:
    if documents and documents[0].text("schema").startswith("npuprof."):
        # other files of npuprof, such as records, contain keys of options without setting them
        settings = _read_export(path, documents[0])
    else:
        settings, handled = find_container_settings(path, documents)
        for table in iterate_tables(documents):
            settings += _find_named_options(path, table) if id(table) not in handled else []
            found = _read_command_lines(path, text, table)
            settings += [setting._replace(command=table.text("name")) for setting in found]
        programs = ((program_arguments.find_file_program(table), table) for table in documents)
        settings += [
            setting
            for program, table in programs
            if program
            for setting in program_arguments.read_file_table(path, program, table)
        ]
    settings.sort(key=lambda setting: (setting.line, setting.column))
    return ImportedFile(path, tuple(settings), text=text, declarative=True)


def _read_command_lines(path: str, text: str, table: Node) -> list[ScriptSetting]:
    """Return the settings of a container's command, of scripts and of lists of arguments."""
    pairs = [(str(key.value), node) for key, node in table.pairs or ()]
    names = " ".join(str(node.value).lower() for _, node in pairs)
    commands: dict[str, list[Node]] = {"": []}
    # entrypoint, command, args: as the container joins them
    for key, node in sorted(pairs, key=lambda pair: pair[0], reverse=True):
        items = node.items or [node]
        if key in _COMMAND:
            commands[""] += items
        elif _SCRIPT.fullmatch(key) or str(items[0].value).startswith("--"):
            commands[key] = items
    return [
        setting
        for words in commands.values()
        for setting in read_command_list(path, words, text, _INSIDE_SHELL, names)
    ]


def read_command_list(
    path: str, nodes: Sequence[Node], text: str, reason: str, names: str = ""
) -> list[ScriptSetting]:
    """Return the settings of a command: of its shell text or Python code, or of its arguments.

    ``text`` is the file. ``reason`` is why variables are omitted, which end with the command.
    ``names`` may have the name of a program that gets the arguments.
    """
    words = [node for node in nodes if isinstance(node.value, str)]
    settings = []
    for before, node in pairwise([Node(0, 0), *words]):
        source, position = _find_source(node, text)
        data = node.value.encode(errors="replace")
        if before.value == "-c" and "python" in words[0].value:
            found = find_code_settings(path, source, position)
        elif " " in source and (
            program_arguments.mentions_program(data) or environ.mentions_variable(data)
        ):
            found, _ = find_shell_settings(path, source, position, reason)
        else:
            continue
        if "\n" in source and position[0] == node.line:  # its line ends are escaped
            at = {"line": node.line, "column": node.column}
            found = [setting.with_location(**at) for setting in found]
        settings += found
    return settings or list(
        program_arguments.read_listed_arguments(path, [_build_word(node) for node in words], names)
    )


#: The lines of a file, which may have many commands.
_split_lines = lru_cache(1)(lambda text: text.split("\n"))


def _find_source(node: Node, text: str) -> tuple[str, Position]:
    """Return the text of a node and its position: the lines of a YAML block as they are written."""
    lines = node.value.rstrip("\n").split("\n")
    block = _split_lines(text)[node.line : node.line + len(lines)]
    if list(map(str.strip, block)) == list(map(str.strip, lines)):
        return "\n".join(block), (node.line + 1, 1)
    return node.value, (node.line, node.column)


def _build_word(node: Node) -> Word:
    """Return a text of a list as a word, with its placeholders separated."""
    return Word(
        node.line,
        node.column,
        tuple(filter(None, split_references(str(node.value), _VARIABLE))) or ("",),
    )


def _read_export(path: str, document: Node) -> list[ScriptSetting]:
    """Return the variables of a JSON export; other files of npuprof set nothing."""
    if not document.text("schema").startswith("npuprof.env/"):
        return []
    variables = document.find("env")
    pairs = (variables.pairs or ()) if variables is not None else ()
    return [
        build_variable_setting(path, (key.line, key.column), str(key.value), (value.value,))
        for key, value in pairs
        if value.is_text
    ]


def _find_named_options(path: str, table: Node) -> list[ScriptSetting]:
    """Return the options in a table, if it certainly contains options.

    Two names that only options have are enough, or one of them with a value that fits.
    """
    named = []
    certainty = 0
    for key, value in table.pairs or ():
        name = key.value if isinstance(key.value, str) else ""
        option = catalog.find_option(name) if value.pairs is None else None
        if option is not None:
            named.append((name, key, value))
            if name in _certain_names():
                is_choice = isinstance(value.value, str) and value.value in option.choices
                certainty += 2 if is_choice else 1
        elif value.is_plain and name.isupper() and catalog.find_variable(name) is not None:
            named.append((format_full_key("env", name), key, value))
            # an Ascend variable is enough; others may configure any program
            certainty += 2 * environ.is_of_ascend_family(name)
    return [_build_named(path, table, *row) for row in named] if certainty > 1 else []


def _build_named(path: str, table: Node, name: str, key: Node, value: Node) -> ScriptSetting:
    """Return an option of a table without a value: only the script that reads it decides."""
    reason = "the script that reads it decides"
    if value.is_plain and value.value is not None:
        reason = f"the file says {format_short_value(value.value)}; {reason}"
    location = ScriptLocation(path, key.line, key.column)
    scope = f"config:{table.line}:{table.column}"
    return ScriptSetting(
        location, "config", name, str(key.value), ScriptValue(None, reason), scope=scope
    )
