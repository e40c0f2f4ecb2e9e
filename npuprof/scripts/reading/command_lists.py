"""Commands as lists of words: exec form of Dockerfiles, ``command`` and ``args`` of containers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from npuprof.scripts.python import environ
from npuprof.scripts.reading import program_arguments
from npuprof.scripts.reading.python_code import find_code_settings
from npuprof.scripts.reading.shell_scripts import find_shell_settings
from npuprof.scripts.reading.trees import Node
from npuprof.scripts.reading.variable_files import split_references
from npuprof.scripts.script_records import ScriptSetting
from npuprof.scripts.shell_lexer import Word

_VARIABLE = re.compile(r"(\$\([A-Za-z_]\w*\)|\$\{?[A-Za-z_]\w*\}?)")


def read_command_list(
    path: str, nodes: Sequence[Node], text: str, reason: str
) -> list[ScriptSetting]:
    """Return the settings of a command: of its shell text or Python code, or of its arguments.

    ``text`` is the file. ``reason`` is why variables are omitted, which end with the command.
    """
    words = [node for node in nodes if isinstance(node.value, str)]
    settings: list[ScriptSetting] = []
    for before, node in pairwise([Node(0, 0, ""), *words]):
        data = node.value.encode(errors="replace")
        names_setting = program_arguments.mentions_program(data) or environ.mentions_variable(data)
        if before.value == "-c" and "python" in words[0].value:
            settings += _place(find_code_settings(path, *_find_source(node, text))[0], node, text)
        elif " " in node.value and names_setting:
            found, _ = find_shell_settings(path, *_find_source(node, text), reason)
            settings += _place(found, node, text)
    return settings or list(
        program_arguments.read_listed_arguments(path, [_build_word(node) for node in words])
    )


def _find_source(node: Node, text: str) -> tuple[str, tuple[int, int]]:
    """Return the text of a node and its position: the lines of a YAML block as they are written."""
    lines = node.value.rstrip("\n").split("\n")
    block = text.split("\n")[node.line : node.line + len(lines)]
    if list(map(str.strip, block)) == list(map(str.strip, lines)):
        return "\n".join(block), (node.line + 1, 1)
    return node.value, (node.line, node.column)


def _place(settings: list[ScriptSetting], node: Node, text: str) -> list[ScriptSetting]:
    """Return the settings of a node; escaped line ends leave them at the node's position."""
    if "\n" not in node.value or _find_source(node, text)[1][1] == 1:
        return settings
    return [setting.with_location(line=node.line, column=node.column) for setting in settings]


def _build_word(node: Node) -> Word:
    """Return a text of a list as a word, with its placeholders separated."""
    return Word(
        node.line,
        node.column,
        tuple(filter(None, split_references(str(node.value), _VARIABLE))) or ("",),
    )
