"""``import``: scripts to presets, and a report of what could not be carried over."""

from __future__ import annotations

import os
from typing import Any

from npuprof.commands.parameters import COLOR, READ_KINDS, formats
from npuprof.commands.verb import Verb, arguments, flag, option
from npuprof.document import keys
from npuprof.model import SECTIONS, Finding, NpuprofError, Place
from npuprof.report import output
from npuprof.report.answer import Answer
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.text import escape_controls, format_count, paint_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.scripts.family import Family
    from npuprof.scripts.preset import Draft
    from npuprof.scripts.reading import FoundSetting, ImportedFile


class Import(Verb):
    """Turn existing scripts into presets, without running them."""

    group = "scripts"
    undoable = True

    files: list[str] = arguments("FILE...", f"{READ_KINDS[0].upper()}{READ_KINDS[1:]}, or folders of them.", required=True)
    format: str = formats("toml", "json", "text")
    base: str | None = option("--base", metavar="auto", text="Propose a common base and mix-ins for all of them.", choices=("auto",))
    name: str | None = option("--name", metavar="NAME", text="The name of the preset; the file's name otherwise.")
    output: str | None = option("--output", "-o", metavar="PATH", text="A file ending in .toml, or a folder for several presets.")
    force: bool = flag("--force", text="Write over files that are there.")
    strict: bool = flag("--strict", text="Exit 1 where a setting could not be carried over, or is nothing that the check takes.")
    color: str = COLOR

    def run(self) -> Answer:
        """Return presets, or write them to a folder, or return what was found in the scripts.

        Exit 2 where a file named could not be read, 1 with ``strict`` where something was left out or is in error, 0 otherwise.
        """
        from npuprof.scripts.preset import build_drafts, judge_draft

        problems: list[Finding] = []
        read_files, unread = _read_scripts(self.files, problems)
        several = sum(any(found.surface != "config" for found in one.found) for one in read_files) > 1
        folders = [path for path in self.files if os.path.isdir(path)]
        drafts = [draft for one in read_files for draft in build_drafts(one, None if several else self.name, folders)]
        made = [draft for draft in drafts if draft.settings or draft.notes]
        problems += [problem for one in read_files for problem in one.problems]
        bad = [finding for draft in made for finding in judge_draft(draft)]
        problems += bad
        code = 2 if unread else 1 if self.strict and (bad or any(draft.notes for draft in made)) else 0
        if self.format == "json":
            return Answer({"json": lambda: _build_fields(read_files, made, problems)}, code=code)
        if self.format == "text":
            return Answer(_format_text(read_files, made, problems, self.coloured), code=code)
        for problem in problems:
            output.write_to_stderr(format_findings([problem]).rstrip("\n"))
        text, remarks = _write_presets(made, self.base, self.output, self.force)
        if text is not None and self.output not in (None, "-") and not output.is_stream(self.output or ""):
            _write_new_files({self.output or "": text}, "", self.force)
            text = None
        return Answer(text, tuple(remarks), code)


def _read_scripts(paths: list[str], problems: list[Finding]) -> tuple[list[ImportedFile], int]:
    from npuprof.scripts.files import find_script_files
    from npuprof.scripts.reading import import_script, may_hold_settings

    found: list[ImportedFile] = []
    unread = 0
    named = set(paths)
    for file in find_script_files(paths, problems, with_blocks=False):
        try:
            data = output.read_plain_file(file)
        except OSError as error:
            what = f"cannot read the file: {output.describe_os_error(error, file)}"
            problems.append(Finding("NP801", what, "", "check the path", where=Place(file), severity="error"))
            unread += file in named
            continue
        if file in named or may_hold_settings(file, data):
            one = import_script(file, data, file in named)
            unread += file in named and not one.found and any(problem.severity == "warning" for problem in one.problems)
            found.append(one._replace(facts={}))
    return found, unread


def _write_presets(made: list[Draft], base: str | None, path: str | None, force: bool) -> tuple[str | None, list[str]]:
    """Return the text of the presets, None where they were written to a folder, and what there is to say. Raises NpuprofError."""
    from npuprof.scripts.preset import format_draft

    good = [draft for draft in made if draft.settings]
    if not good:
        why = "Every setting found depends on the run, or none was found." if made else "No setting was found."
        hint = "npuprof import --format text tells more"
        raise NpuprofError([Finding("NP816", "there is nothing to make a preset of", why, hint)])
    if base == "auto":
        return _write_family(good, path, force)
    remarks: list[str] = []
    text = None
    if len(good) == 1 and (path is None or path.endswith(".toml") or path == "-"):
        text = format_draft(good[0])
    else:
        _make_names_unique(good)
        files = {draft.name: format_draft(draft) for draft in good}
        if path is None or path.endswith(".toml") or path == "-":
            names = ", ".join(list(files)[:8]) + (", ..." if len(files) > 8 else "")
            why = f"The scripts hold {len(files)} presets: {names}."
            raise NpuprofError([Finding("NP816", "several presets do not fit one file", why, "name a folder with -o DIR")])
        remarks.append(_write_folder(files, path, force))
    notes = sum(len(draft.notes) for draft in good)
    if notes:
        were = "was" if notes == 1 else "were"
        remarks.append(f"{format_count(notes, 'setting')} {were} not carried over; see the comments at the end, or --format text")
    return text, remarks


def _make_names_unique(made: list[Draft]) -> None:
    taken: set[str] = set()
    for draft in made:
        name, number = draft.name, 1
        while name in taken:
            number += 1
            name = f"{draft.name}-{number}"
        draft.name = name
        taken.add(name)


def _write_folder(files: dict[str, str], folder: str, force: bool) -> str:
    """Write presets below a folder and return what there is to say. Raises NpuprofError where one is there already."""
    from npuprof.report import writing

    paths = {os.path.join(folder, f"{name}.toml"): text for name, text in files.items()}
    made = output.make_folder(folder)
    for path in paths:
        writing.make_folder_below(os.path.dirname(path), folder)
    _write_new_files(paths, folder, force)
    output.tell_made_folders(made)
    return f"wrote {format_count(len(files), 'preset')} below {folder}"


def _write_new_files(files: dict[str, str], below: str, force: bool) -> None:
    """Write files that are not there yet, or any where that is forced. Raises NpuprofError, and writes nothing then."""
    from npuprof.report import writing
    from npuprof.report.writing import ANYTHING, Wanted

    there = [path for path in files if os.path.lexists(path)]
    if there and not force:
        more = f" and {len(there) - 5} more" if len(there) > 5 else ""
        what = f"{', '.join(there[:5])}{more} {'is' if len(there) == 1 else 'are'} there already"
        hint = "name another place, or write over what is there with --force"
        raise NpuprofError([Finding("NP816", what, "An import writes over nothing unasked.", hint, where=Place(there[0]))])
    known = ANYTHING if force else None
    writing.write_wanted_files([Wanted(path, text.encode(), known, below) for path, text in files.items()])


def _write_family(good: list[Draft], path: str | None, force: bool) -> tuple[str | None, list[str]]:
    from npuprof.scripts.family import build_family

    made = build_family(good)
    if not made.is_proven:
        raise RuntimeError("a leaf of the family does not resolve as before")
    if path is None or path == "-":
        parts = [f"# --- {name}.toml\n{written}" for name, written in made.files.items()]
        return "\n".join(parts), [_describe_proof(made)]
    return None, [_write_folder(made.files, path, force), _describe_proof(made)]


def _describe_proof(made: Family) -> str:
    mixins = [name for name in made.files if name.startswith("mixins/")]
    leaves = f"{len(made.proof)} {'leaf' if len(made.proof) == 1 else 'leaves'}, {'a base' if 'base' in made.files else 'no base'}"
    lines = f"{format_count(made.lines_before, 'setting')} became {format_count(made.lines_after, 'line')}"
    return f"{leaves}, {format_count(len(mixins), 'mix-in')}; {lines}; every leaf resolves to the digest it had"


def _build_setting_fields(one: FoundSetting) -> dict[str, Any]:
    """Return a setting as the fields of the JSON form."""
    return {
        "file": one.file, "line": one.line, "column": one.column, "surface": one.surface,
        "key": one.key or None, "name": one.name or None, "field": one.field,
        "value": None if one.reason else one.value, "reason": one.reason or None,
        "condition": one.condition or None, "runs": not one.dead, "default": one.default, "scope": one.scope or None,
        **({"part": one.part} if one.part else {}),
    }  # fmt: skip


def _build_fields(read_files: list[ImportedFile], made: list[Draft], problems: list[Finding]) -> dict[str, Any]:
    found = [one for imported in read_files for one in imported.found]
    return {
        "schema": "npuprof.import/1",
        "settings": [_build_setting_fields(one) for one in found if not one.commented],
        "commented": [_build_setting_fields(one) for one in found if one.commented],
        "presets": [
            {
                "name": draft.name, "file": draft.file, "scenario": draft.scenario,
                **{section: draft.section(section) for section in SECTIONS},
                "left_out": [{**_build_setting_fields(note.found), "why": note.why, "hint": note.hint or None} for note in draft.notes],
            }
            for draft in made
        ],
        "problems": [build_finding_dict(problem) for problem in problems],
    }  # fmt: skip


def _format_text(read_files: list[ImportedFile], made: list[Draft], problems: list[Finding], coloured: bool) -> str:
    lines: list[str] = []
    for draft in made:
        lines.append(paint_text(escape_controls(f"{draft.file}: {draft.name}"), "1", coloured))
        for key, one in draft.origins.items():
            lines.append(f"  {_format_place(one)}: {escape_controls(key)} = {keys.format_short_value(draft.settings[key])}")
        for note in draft.notes:
            one = note.found
            value = f" = {keys.format_short_value(one.value)}" if not one.reason and one.value is not None else ""
            said = escape_controls(f"{one.key or 'a computed key'}{value}: {note.why}")
            lines.append(f"  {_format_place(one)}: {paint_text('left out', '33', coloured)} {said}")
            if note.hint:
                lines.append(f"      try: {escape_controls(note.hint)}")
    commented = sum(one.commented for imported in read_files for one in imported.found)
    if commented:
        lines.append(f"{format_count(commented, 'setting')} commented out")
    lines += [escape_controls(str(problem)) for problem in problems]
    return "".join(f"{line}\n" for line in lines)


def _format_place(one: FoundSetting) -> str:
    return f"{one.line} ({one.part})" if one.part else str(one.line)


VERB = Import
