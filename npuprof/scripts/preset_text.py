"""A preset created from scripts, as TOML: its settings, and omitted settings as comments with place
and reason.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from npuprof import catalog
from npuprof.document import keys
from npuprof.document.keys import (
    format_key_segment,
    format_short_value,
    format_toml_value,
    is_visible,
)
from npuprof.report.text import count_rest, format_count
from npuprof.scripts.grouping import group_by
from npuprof.scripts.preset_draft import Draft, Note, cite_script
from npuprof.scripts.python.expressions import cut_text
from npuprof.scripts.script_records import ImportedFile, ScriptSetting, find_position

#: The maximum width of comments that list variables.
_WIDTH = 120


#: A Python line that names an API of settings, and does more than query it.
_NAMED = re.compile(
    (
        r"^[ "
        r"\t]*(?!#|from\b|import\b|print\b|[^\n]*isinstance)([^#\n]*?\b(NPURunConfig\b|parameter_map(?=\[))[^\n]*)"
    ),
    re.MULTILINE,
)
#: A conversion with flags, in quotes or an expansion, outside comments.
_ATC = re.compile(
    r"^((?![ \t]*#).*?(?<![\w./-])(?:[\w./-]*/)?atc(?![\w./-])[^#\n]*?--\w+[^\n]*)", re.MULTILINE
)


def format_preset(
    head: dict[str, Any], settings: dict[str, Any], comments: Iterable[str] = ()
) -> str:
    """Return a preset: its ``[profile]`` table, its settings by full key in catalogue order, and
    comments.
    """
    lines = ["[profile]", *(f"{name} = {format_toml_value(value)}" for name, value in head.items())]
    for section, described in catalog.load_sections().items():
        in_section = select_section(settings, section)
        plain = {
            name: value
            for name, value in in_section.items()
            if not isinstance(value, dict) or section != "options"
        }
        if plain:
            segments = (name.split(".") if described.dotted else [name] for name in plain)
            names = (".".join(map(format_key_segment, parts)) for parts in segments)
            lines += [
                "",
                f"[{section}]",
                *(
                    f"{name} = {_format_written(value)}"
                    for name, value in zip(names, plain.values(), strict=True)
                ),
            ]
        for name, value in in_section.items():
            if name not in plain:
                lines += ["", f"[{section}.{format_key_segment(name)}]"]
                lines += [
                    f"{format_key_segment(part)} = {_format_written(item)}"
                    for part, item in value.items()
                ]
    return "\n".join([*lines, *map(_format_comment, comments), ""])


def select_section(settings: dict[str, Any], section: str) -> dict[str, Any]:
    """Return the settings of a section by plain name, in catalogue order."""
    parts = ((*keys.split_section_and_name(key), value) for key, value in settings.items())
    by_name = {name: value for where, name, value in parts if where == section}
    return {
        name: by_name[name]
        for name in sorted(by_name, key=catalog.load_sections()[section].find_position)
    }


def describe_notes(
    notes: Sequence[Note],
    others: Sequence[ScriptSetting],
    most: int | None = None,
    cite: Callable[[str], str] = cite_script,
) -> list[str]:
    """Return omitted settings as comment lines, without duplicates among scripts, at
    most ``most``.
    """
    if not notes and not others:
        return []
    several = len({note.setting.file for note in notes}) > 1
    places_of: dict[tuple[str, str], dict[str, None]] = {}
    for note in notes:
        setting = note.setting
        value = (
            f" = {format_short_value(setting.value)}"
            if not setting.reason and setting.value is not None
            else ""
        )
        places = places_of.setdefault(
            (f"{setting.key or 'a computed key'}{value}: {note.why}", note.hint), {}
        )
        places[
            f"{cite(setting.file)}:{setting.line}"
            + (f" ({setting.location.part})" if setting.location.part else "")
        ] = None
    lines = ["", "Not carried over:"]
    for (what, hint), places in list(places_of.items())[:most]:
        for place in [count_rest(places, 1)] if several else places:
            lines += [f"{place}: {what}", *([f"    {hint}"] if hint else [])]
    grouped = list(group_others(others, cite))
    lines += [line for file, what in grouped[:most] for line in _wrap_places(f"{file}: {what}")]
    if most is not None and (hidden := max(len(places_of) - most, 0) + max(len(grouped) - most, 0)):
        lines.append(f"and {hidden} more, shown by npuprof import --format text")
    return lines


def _wrap_places(text: str) -> list[str]:
    """Return the lines of a text with places, without breaks between ``line`` and its number."""
    text = text.replace("(line ", "(line\N{NO-BREAK SPACE}")
    wrapped = textwrap.wrap(
        text, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]


def group_others(
    others: Sequence[ScriptSetting], cite: Callable[[str], str] = cite_script
) -> Iterator[tuple[str, str]]:
    """Yield the variables of other programs with lines, by script and reason:
    ``unknown to the catalogue: A (line 3)``.
    """
    for (file, reason), several in group_by(
        others, lambda setting: (cite(setting.file), setting.reason)
    ).items():
        names = group_by(several, lambda setting: setting.name or "a computed name")
        places = {
            name: dict.fromkeys(item.location.part or f"line {item.line}" for item in same)
            for name, same in names.items()
        }
        listed = (f"{name} ({', '.join(lines)})" for name, lines in places.items())
        yield file, f"{reason}: {', '.join(listed)}"


def describe_assumed(notes: Sequence[Note], cite: Callable[[str], str] = cite_script) -> list[str]:
    """Return the settings with flag defaults as comment lines."""
    lines = [
        (
            f"{cite(note.setting.file)}:{note.setting.line}: {note.setting.key} = "
            f"{format_short_value(note.value)}: {note.why}"
        )
        for note in notes
    ]
    return (
        ["", "Defaults of the command line, which a run may change:", *dict.fromkeys(lines)]
        if lines
        else []
    )


def escape_file_name(file: str) -> str:
    """Return a file name as text, with undecodable bytes escaped."""
    return file.encode(errors="backslashreplace").decode()


def explain_nothing(
    imported: ImportedFile, drafts: Sequence[Draft], is_named: bool, users: str = ""
) -> str:
    """Return why no setting of a file is included.

    Empty if some are, or for a folder's file without settings.

    ``users`` are the scripts that contain the settings of the file's functions.
    """
    notes = [note for draft in drafts for note in draft.notes]
    live = sum(not setting.commented for setting in imported.settings)
    faults = [problem.message for problem in imported.problems if problem.severity != "info"]
    others = (
        "; ".join(text for _, text in group_others(imported.other_variables)) if is_named else ""
    )
    has_entry = any(site.surface == "session" for site in imported.sites)
    reasons = (
        _sum_up(notes) if notes else "",
        imported.passed_over,
        others and f"no setting of software for Ascend; {others}",
        f"{format_count(live, 'setting')}, all of them None, which leaves them unset"
        if live
        else "",
        f"{format_count(len(imported.settings), 'setting')}, commented out"
        if imported.settings
        else "",
        *faults[:1],
        "an optimizer entry without a setting"
        if has_entry
        else "no setting in it"
        if is_named
        else "",
    )
    return (
        "" if any(draft.settings for draft in drafts) else users or next(filter(None, reasons), "")
    )


def _sum_up(notes: Sequence[Note]) -> str:
    reasons = list(dict.fromkeys(note.why for note in notes))
    more = f"; and for {len(reasons) - 2} more reasons" if len(reasons) > 2 else ""
    return f"{format_count(len(notes), 'setting')}: {'; '.join(reasons[:2])}{more}"


def _format_written(value: object) -> str:
    """Return a value as TOML, a string with quotation marks in its readable form:
    ``'{"output":"/tmp"}'``.
    """
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return format_toml_value(value)


def _format_comment(text: str) -> str:
    flat = "".join(char if is_visible(char) else " " for char in escape_file_name(text))
    return f"# {flat}" if flat else ""


def find_passed_over(imported: ImportedFile) -> str:
    """Return an unsupported statement in a file without settings, with its line.

    Empty if nothing of Ascend is set there.
    """
    text = imported.text
    if not imported.sites and (match := _NAMED.search(text)):
        return (
            f"{match[2]} in line {find_position(text, match.start(1))[0]} "
            f"is not followed: {cut_text(match[1])}"
        )
    if (
        "atc" in text
        and not any(site.surface == "atc" for site in imported.sites)
        and (match := _ATC.search(text))
    ):
        return (
            f"atc is run in line {find_position(text, match.start(1))[0]} in a way that is not "
            f"followed: {cut_text(match[1])}"
        )
    return ""
