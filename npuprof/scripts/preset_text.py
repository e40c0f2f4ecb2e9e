"""A preset created from scripts, as TOML: its settings, and comments on omitted settings."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from npuprof import catalog
from npuprof.document import keys
from npuprof.document.keys import (
    format_key_segment,
    format_short_value,
    format_toml_value,
    is_visible,
)
from npuprof.model import TomlTable
from npuprof.report.text import count_rest, format_count
from npuprof.scripts.grouping import group_by
from npuprof.scripts.preset_draft import Citation, Draft, Note, cite_script
from npuprof.scripts.python.expressions import cut_text
from npuprof.scripts.script_records import ImportedFile, ScriptSetting, find_position

#: The maximum width of comments that list variables.
_WIDTH = 120


#: A Python line that names an API of settings, and does more than query it.
_API_LINE = re.compile(
    r"^[ \t]*(?!#|from\b|import\b|print\b|[^\n]*isinstance)"
    r"(?P<line>[^#\n]*?\b(?P<api>NPURunConfig\b|parameter_map(?=\[))[^\n]*)",
    re.MULTILINE,
)
#: A conversion with flags, in quotes or an expansion, outside comments.
_ATC_LINE = re.compile(
    r"^(?P<line>(?![ \t]*#).*?(?<![\w./-])(?:[\w./-]*/)?atc(?![\w./-])[^#\n]*?--\w+[^\n]*)",
    re.MULTILINE,
)


def format_preset(head: TomlTable, settings: TomlTable, comments: Iterable[str] = ()) -> str:
    """Return a preset: its ``[profile]`` table, its settings in catalogue order, and comments.

    ``head`` is that table, ``settings`` are by full key.
    """
    lines = ["[profile]", *(f"{name} = {format_toml_value(value)}" for name, value in head.items())]
    for section, described in catalog.load_sections().items():
        assignments = []
        tables = []  # must follow the other settings: TOML has no way back to the section's table
        for name, value in select_section(settings, section).items():
            if isinstance(value, dict) and section == "options":
                tables += ["", f"[{section}.{format_key_segment(name)}]"]
                tables += [
                    f"{format_key_segment(field)} = {_format_written(item)}"
                    for field, item in value.items()
                ]
            else:
                segments = name.split(".") if described.dotted else [name]
                key = ".".join(map(format_key_segment, segments))
                assignments.append(f"{key} = {_format_written(value)}")
        if assignments:
            lines += ["", f"[{section}]", *assignments]
        lines += tables
    return "\n".join([*lines, *map(_format_comment, comments), ""])


def select_section(settings: TomlTable, section: str) -> TomlTable:
    """Return the settings of a section by plain name, in catalogue order."""
    selected = {}
    for key, value in settings.items():
        section_of_key, name = keys.split_section_and_name(key)
        if section_of_key == section:
            selected[name] = value
    order = sorted(selected, key=catalog.load_sections()[section].find_position)
    return {name: selected[name] for name in order}


def describe_notes(
    notes: Sequence[Note],
    other_variables: Sequence[ScriptSetting],
    most: int | None = None,
    cite: Citation = cite_script,
) -> list[str]:
    """Return omitted settings as comment lines, without duplicates among scripts.

    At most ``most`` settings and ``most`` groups of variables are listed, the rest is counted.
    """
    if not notes and not other_variables:
        return []
    has_several_files = len({note.setting.file for note in notes}) > 1
    locations_of: dict[tuple[str, str], dict[str, None]] = {}  # by text and hint
    for note in notes:
        setting = note.setting
        text = setting.shown_key
        if not setting.reason and setting.value is not None:
            text += f" = {format_short_value(setting.value)}"
        location = f"{cite(setting.file)}:{setting.line}"
        if setting.location.part:
            location += f" ({setting.location.part})"
        locations_of.setdefault((f"{text}: {note.why}", note.hint), {})[location] = None
    lines = ["", "Not carried over:"]
    for (text, hint), locations in list(locations_of.items())[:most]:
        for location in [count_rest(locations, 1)] if has_several_files else locations:
            lines.append(f"{location}: {text}")
            if hint:
                lines.append(f"    {hint}")
    groups = list(group_other_variables(other_variables, cite))
    for file, text in groups[:most]:
        lines += _wrap_variables(f"{file}: {text}")
    if most is not None:
        hidden = max(len(locations_of) - most, 0) + max(len(groups) - most, 0)
        if hidden:
            lines.append(f"and {hidden} more, shown by npuprof import --format text")
    return lines


def _wrap_variables(text: str) -> list[str]:
    """Return the lines of a text, without breaks between ``line`` and its number."""
    text = text.replace("(line ", "(line\N{NO-BREAK SPACE}")
    wrapped = textwrap.wrap(
        text, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]


def group_other_variables(
    variables: Sequence[ScriptSetting], cite: Citation = cite_script
) -> Iterator[tuple[str, str]]:
    """Yield the variables of other programs, by script and reason, each group as one text.

    Each script is paired with a text such as ``unknown to the catalogue: A (line 3)``.
    """
    groups = group_by(variables, lambda setting: (cite(setting.file), setting.reason))
    for (file, reason), group in groups.items():
        named = []
        for name, same in group_by(group, lambda item: item.name or "a computed name").items():
            lines = dict.fromkeys(item.location.part or f"line {item.line}" for item in same)
            named.append(f"{name} ({', '.join(lines)})")
        yield file, f"{reason}: {', '.join(named)}"


def describe_assumed(notes: Sequence[Note], cite: Citation = cite_script) -> list[str]:
    """Return the settings with flag defaults as comment lines."""
    if not notes:
        return []
    lines = [
        (
            f"{cite(note.setting.file)}:{note.setting.line}: {note.setting.key} = "
            f"{format_short_value(note.value)}: {note.why}"
        )
        for note in notes
    ]
    return ["", "Defaults of the command line, which a run may change:", *dict.fromkeys(lines)]


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
    if any(draft.settings for draft in drafts):
        return ""
    if users:
        return users
    if notes := [note for draft in drafts for note in draft.notes]:
        reasons = list(dict.fromkeys(note.why for note in notes))
        more = f"; and for {len(reasons) - 2} more reasons" if len(reasons) > 2 else ""
        return f"{format_count(len(notes), 'setting')}: {'; '.join(reasons[:2])}{more}"
    if imported.passed_over:
        return imported.passed_over
    if is_named and imported.other_variables:
        groups = "; ".join(text for _, text in group_other_variables(imported.other_variables))
        return f"no setting of software for Ascend; {groups}"
    if live := sum(not setting.commented for setting in imported.settings):
        return f"{format_count(live, 'setting')}, all of them None, which leaves them unset"
    if imported.settings:
        return f"{format_count(len(imported.settings), 'setting')}, commented out"
    for problem in imported.problems:
        if problem.severity != "info" and problem.message:
            return problem.message
    if any(site.surface == "session" for site in imported.sites):
        return "an optimizer entry without a setting"
    return "no setting in it" if is_named else ""


def _format_written(value: object) -> str:
    """Return a value as TOML; strings with quotation marks are unescaped: ``'{"a":"b"}'``."""
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return format_toml_value(value)


def _format_comment(text: str) -> str:
    # TOML rejects control characters in comments, and a line end would leave the comment
    flat = "".join(char if is_visible(char) else " " for char in escape_file_name(text))
    return f"# {flat}" if flat else ""


def find_passed_over(imported: ImportedFile) -> str:
    """Return an unsupported statement in a file without settings, with its line.

    Empty if nothing of Ascend is set there.
    """
    text = imported.text
    if not imported.sites and (match := _API_LINE.search(text)):
        line, _ = find_position(text, match.start("line"))
        return f"{match['api']} in line {line} is not followed: {cut_text(match['line'])}"
    has_conversion = any(site.surface == "atc" for site in imported.sites)
    # "atc" is searched for first: the pattern is slow in long files
    if "atc" in text and not has_conversion and (match := _ATC_LINE.search(text)):
        line, _ = find_position(text, match.start("line"))
        return f"atc is run in line {line} in a way that is not followed: {cut_text(match['line'])}"
    return ""
