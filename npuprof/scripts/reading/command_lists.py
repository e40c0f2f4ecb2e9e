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
from npuprof.scripts.script_records import Position, ScriptSetting
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
        program_arguments.read_listed_arguments(path, [_build_word(node) for node in words])
    )


def _find_source(node: Node, text: str) -> tuple[str, Position]:
    """Return the text of a node and its position: the lines of a YAML block as they are written."""
    lines = node.value.rstrip("\n").split("\n")
    block = text.split("\n")[node.line : node.line + len(lines)]
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
