"""Dockerfiles: ``ENV`` applies to the image; exports in a ``RUN`` line end with it."""

from __future__ import annotations

import re
from typing import NamedTuple

from npuprof.scripts.reading.shell_scripts import find_shell_settings
from npuprof.scripts.reading.shells.known_variables import fill_word, list_assignments, list_reads
from npuprof.scripts.reading.variable_files import build_variable_setting, leave_out
from npuprof.scripts.script_records import (
    ImportedFile,
    Position,
    ScriptSetting,
    Site,
    find_position,
)
from npuprof.scripts.shell_lexer import Part, Word, parse_shell_commands

#: One instruction with its continuation lines and the comments between them.
_INSTRUCTION = re.compile(
    (
        r"^[ \t]*([A-Za-z]+)(?=[ \t\\])((?:[^\\\n]|\\(?![ "
        r"\t]*\n)|\\[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*+)*+)"
    ),
    re.MULTILINE,
)
_FLAGS = re.compile(r"(?:[ \t]*--\S+)*[ \t]*")
#: Characters with a special meaning.
_SPECIAL = frozenset("$\\'\"\n")
_EARLIER = "belongs to an earlier stage that the last one is not based on"
_FROM = re.compile(r"(?:[ \t]+--\S+)*[ \t]+(\S+)(?:[ \t]+[Aa][Ss][ \t]+(\S+))?")


class _Stage(NamedTuple):
    """One ``FROM``: the variables in it, and the places of those that apply, including those of its
    base stage.
    """

    texts: dict[str, str]
    lines: set[Position]


def import_dockerfile(path: str, text: str) -> ImportedFile:
    """Return the settings of the last stage's image, and its other settings."""
    every: list[ScriptSetting] = []
    sites: list[Site] = []
    stage = _Stage({}, set())
    named: dict[str, _Stage] = {}
    for match in _INSTRUCTION.finditer(text):
        word, begin = match[1].upper(), match.start(2)
        if word == "FROM" and (image := _FROM.match(match[2])):
            texts, lines = named.get(image[1].lower(), _Stage({}, set()))
            stage = named[str(len(named)) if image[2] is None else image[2].lower()] = _Stage(
                {**texts}, {*lines}
            )
        elif word == "ENV":
            settings = _read_env(path, match[2], find_position(text, begin), stage.texts)
            stage.lines.update((setting.line, setting.column) for setting in settings)
            every += settings
        elif word in ("RUN", "CMD", "ENTRYPOINT"):
            begin = flags.end() if (flags := _FLAGS.match(text, begin)) else begin
            reason = f"applies to this {word} line only, not to other commands in the image"
            settings, conversions = find_shell_settings(
                path, text[begin : match.end()], find_position(text, begin), reason
            )
            every += settings
            sites += conversions
    every = [
        item
        if item.surface != "env" or (item.line, item.column) in stage.lines
        else leave_out(item, _EARLIER)
        for item in every
    ]
    return ImportedFile(
        path,
        tuple(every),
        tuple(sites),
        text=text,
        other_records=tuple(list_reads(path, list(parse_shell_commands(text)))),
    )


def _read_env(path: str, text: str, place: Position, known: dict[str, str]) -> list[ScriptSetting]:
    """Return the variables of an ``ENV`` and record their texts.

    A line does not see its own assignments.
    """
    words = [word for command in parse_shell_commands(text, *place) for word in command]
    assigned = [
        (name, word, fill_word(word.cut_prefix(len(name) + 1), known))
        for word in words
        for name, _ in list_assignments([word])
    ]
    if words and "=" not in words[0].text:  # NAME and a value up to the end of the line
        assigned = [(words[0].text, words[0], fill_word(_read_rest(text, words), known))]
    settings = []
    for name, word, value in assigned:
        known.pop(name, None)
        is_whole = text[word.span[1] : word.span[1] + 1].strip(" \t\\\n") == ""
        reason = "" if is_whole else "contains a command separator of the shell: write it in quotes"
        settings.append(
            build_variable_setting(path, (word.line, word.column), name, value.parts, reason)
        )
    known |= {name: value.text for name, _, value in assigned if not value.open_part}
    return settings


def _read_rest(text: str, words: list[Word]) -> Word:
    """Return the text after the first word: literal, and unknown if several words contain more than
    letters.
    """
    rest = text[words[0].span[1] :].strip()
    parts: tuple[Part, ...] = ((rest,),) if _SPECIAL & set(rest) else (rest,)
    return words[1] if len(words) == 2 else words[0].with_parts(*parts)
