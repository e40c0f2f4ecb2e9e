"""Dockerfiles: ``ENV`` applies to the image; exports in a ``RUN`` line end with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuprof.model import Record
from npuprof.scripts.reading.configs import read_command_list
from npuprof.scripts.reading.shell_scripts import find_shell_settings
from npuprof.scripts.reading.shells.known_variables import fill_word, list_reads
from npuprof.scripts.reading.shells.launcher_options import PassedVariable, split_assignment
from npuprof.scripts.reading.trees import Node, parse_json
from npuprof.scripts.reading.variable_files import build_variable_setting, leave_out
from npuprof.scripts.script_records import (
    ImportedFile,
    Position,
    ScriptLocation,
    ScriptSetting,
    find_position,
)
from npuprof.scripts.shell_lexer import Word, parse_shell_commands

#: One instruction with its continuation lines and the comments between them.
_INSTRUCTION = re.compile(
    r"^[ \t]*(?P<name>[A-Za-z]+)(?=[ \t\\])"
    # possessive: a long instruction is not tried again from its end
    r"(?P<arguments>(?:[^\\\n]|\\(?![ \t]*\n)|\\[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*+)*+)",
    re.MULTILINE,
)
_CONTINUED = re.compile(r"\\(?=[ \t]*\n)")
_FLAGS = re.compile(r"(?:[ \t]*--\S+)*[ \t]*")
#: Characters with a special meaning.
_SPECIAL = frozenset("$\\'\"\n")
_EARLIER = "belongs to an earlier stage that the last one is not based on"
_FROM = re.compile(r"(?:[ \t]+--\S+)*[ \t]+(?P<base>\S+)(?:[ \t]+[Aa][Ss][ \t]+(?P<name>\S+))?")


class _Stage(Record):
    """One ``FROM``: the known texts of its variables, and the locations of all that apply.

    Both include the variables of its base stage.
    """

    texts: dict[str, str]
    locations: set[ScriptLocation]


def import_dockerfile(path: str, text: str) -> ImportedFile:
    """Return the settings of the last stage's image, and its other settings."""
    settings = []
    sites = []
    stage = _Stage({}, set())
    stages: dict[str, _Stage] = {}  # by name, or by number
    commands: list[dict[str, list[Node]]] = [{}]  # of each stage
    for match in _INSTRUCTION.finditer(text):
        instruction, begin = match["name"].upper(), match.start("arguments")
        if instruction == "FROM" and (image := _FROM.match(match["arguments"])):
            # an image from outside the file is an empty stage: its variables are unknown
            base = stages.get(image["base"].lower(), _Stage({}, set()))
            commands.append({})
            stage = _Stage({**base.texts}, {*base.locations})
            stages[(image["name"] or str(len(stages))).lower()] = stage
        elif instruction == "ENV":
            position = find_position(text, begin)
            variables = _read_env(path, match["arguments"], position, stage.texts)
            stage.locations.update(setting.location for setting in variables)
            settings += variables
        elif instruction in ("RUN", "CMD", "ENTRYPOINT"):
            # --mount and other flags of RUN are not part of the command
            begin = flags.end() if (flags := _FLAGS.match(text, begin)) else begin
            reason = "applies to this RUN line only, not to other commands in the image"
            if instruction != "RUN":  # what the container runs
                reason = ""
            if words := _read_exec_form(text[begin : match.end()], find_position(text, begin)):
                if instruction == "RUN":
                    settings += read_command_list(path, words, text, reason)
                else:  # of several in a stage, the last one counts
                    commands[-1][instruction] = words
                continue
            of_shell, conversions = find_shell_settings(
                path, text[begin : match.end()], find_position(text, begin), reason
            )
            settings += of_shell
            sites += conversions
            stage.locations.update(setting.location for setting in of_shell)
    for parts in commands:  # CMD has the arguments of ENTRYPOINT
        words = [*parts.get("ENTRYPOINT", ()), *parts.get("CMD", ())]
        of_command = read_command_list(path, words, text, "")
        settings += of_command
        if parts is commands[-1]:
            stage.locations.update(setting.location for setting in of_command)
    settings = [
        setting
        if setting.surface != "env" or setting.location in stage.locations
        else leave_out(setting, _EARLIER)
        for setting in settings
    ]
    return ImportedFile(
        path,
        tuple(settings),
        tuple(sites),
        text=text,
        other_records=tuple(list_reads(path, list(parse_shell_commands(text)))),
    )


def _read_exec_form(text: str, position: Position) -> list[Node]:
    """Return the words of a command that is a JSON list at a position; none for a shell's text."""
    line, column = position
    # a list may have continuation lines
    tree = parse_json("", _CONTINUED.sub(" ", text), []) if text.lstrip()[:1] == "[" else None
    words = list((tree and tree.items) or ())
    for word in words:
        word.column += column - 1 if word.line == 1 else 0
        word.line += line - 1
    return words


def _read_env(
    path: str, text: str, position: Position, known: dict[str, str]
) -> list[ScriptSetting]:
    """Return the variables of an ``ENV`` and record their texts in ``known``.

    A line does not see its own assignments.
    """
    arguments = [word for command in parse_shell_commands(text, *position) for word in command]
    values = []
    settings = []
    for variable in _list_env_assignments(text, arguments):
        name, argument = variable.name, variable.argument
        value = fill_word(variable.value, known)
        end = argument.span[1]
        is_complete = text[end : end + 1].strip(" \t\\\n") == ""
        reason = (
            "" if is_complete else "contains a command separator of the shell: write it in quotes"
        )
        settings.append(build_variable_setting(path, argument.position, name, value.parts, reason))
        values.append((name, value))
    # a variable whose new value is unknown must not keep its former one
    for name, _ in values:
        known.pop(name, None)
    known |= {name: value.text for name, value in values if not value.open_part}
    return settings


def _list_env_assignments(text: str, arguments: list[Word]) -> Iterator[PassedVariable]:
    """Yield the variables of an ``ENV``."""
    if arguments and "=" not in arguments[0].text:  # NAME and a value up to the end of the line
        yield PassedVariable(arguments[0].text, arguments[0], _read_rest(text, arguments))
        return
    for argument in arguments:
        yield from split_assignment(argument)


def _read_rest(text: str, arguments: list[Word]) -> Word:
    """Return the text after the first argument as one value.

    It is literal, and unknown if several arguments contain special characters.
    """
    if len(arguments) == 2:
        return arguments[1]
    rest = text[arguments[0].span[1] :].strip()
    parts = ((rest,),) if _SPECIAL & set(rest) else (rest,)
    return arguments[0].with_parts(*parts)
