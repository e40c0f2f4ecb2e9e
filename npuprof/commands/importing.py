"""``import``: scripts to presets, and a report of what could not be carried over."""

from __future__ import annotations

import os
import sys
from typing import Any

from npuprof import report
from npuprof.commands.flags import one_of
from npuprof.document import keys
from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.scripts.family import Family, build_family
from npuprof.scripts.preset import Draft, build_drafts, format_draft
from npuprof.scripts.reading import FoundSetting, ImportedFile, import_script, may_hold_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def import_files(files: Sequence[str], format_: str, base: str | None, name: str | None, path: str | None, strict: bool, color: str) -> int:
    """Read scripts and write presets, or what was found in them.

    Exit 2 where a file named could not be read, 1 with ``strict`` where something was left out, 0 otherwise.
    """
    one_of("--format", format_, ("toml", "json", "text"))
    one_of("--color", color, ("auto", "always", "never"))
    if base is not None:
        one_of("--base", base, ("auto",))
    problems: list[Finding] = []
    read_files, unread = _read(list(files), problems)
    several = sum(bool(one.found) for one in read_files) > 1
    made = [draft for one in read_files for draft in build_drafts(one, name if not several else None) if draft.settings or draft.notes]
    left = any(draft.notes for draft in made)
    problems += [problem for one in read_files for problem in one.problems]
    if format_ == "json":
        output.write_answer(report.format_json_answer(_json(read_files, made, problems)), path)
    elif format_ == "text":
        output.write_answer(_text(read_files, made, problems, output.is_colour_wanted(color, sys.stdout)), path)
    else:
        for problem in problems:
            output.write_to_stderr(report.format_findings([problem]).rstrip("\n"))
        _presets(made, base, path)
    return 2 if unread else 1 if strict and left else 0


def _read(paths: list[str], problems: list[Finding]) -> tuple[list[ImportedFile], int]:
    from npuprof.scripts.files import find_script_files

    found: list[ImportedFile] = []
    unread = 0
    named = set(paths)
    for file in find_script_files(paths, problems):
        try:
            with open(file, "rb") as opened:
                data = opened.read()
        except OSError as error:
            what = f"cannot read the file: {str(error.strerror).lower()}"
            problems.append(Finding("NP801", "error", what, "", "check the path", where=(file, 0, 0)))
            unread += file in named
            continue
        if file in named or may_hold_settings(file, data):
            one = import_script(file, data)
            unread += file in named and not one.found and any(problem.severity == "warning" for problem in one.problems)
            found.append(one._replace(facts={}))
    return found, unread


def _presets(made: list[Draft], base: str | None, path: str | None) -> None:
    good = [draft for draft in made if draft.settings]
    if not good:
        why = "Every setting found depends on the run, or none was found." if made else "No setting was found."
        raise NpuprofError(
            [Finding("NP816", "error", "there is nothing to make a preset of", why, "npuprof import --format text tells more")]
        )
    if base == "auto":
        _family(good, path)
        return
    if len(good) == 1 and (path is None or path.endswith(".toml") or path == "-"):
        output.write_answer(format_draft(good[0]), path)
    else:
        _unique(good)
        files = {draft.name: format_draft(draft) for draft in good}
        if path is None or path.endswith(".toml") or path == "-":
            names = ", ".join(list(files)[:8]) + (", ..." if len(files) > 8 else "")
            why = f"The scripts hold {len(files)} presets: {names}."
            raise NpuprofError([Finding("NP816", "error", "several presets do not fit one file", why, "name a folder with -o DIR")])
        _write(files, path)
    notes = sum(len(draft.notes) for draft in good)
    if notes:
        were = "was" if notes == 1 else "were"
        output.write_to_stderr(
            f"npuprof: {report.format_count(notes, 'setting')} {were} not carried over; see the comments at the end, or --format text"
        )


def _unique(made: list[Draft]) -> None:
    taken: set[str] = set()
    for draft in made:
        name, number = draft.name, 1
        while name in taken:
            number += 1
            name = f"{draft.name}-{number}"
        draft.name = name
        taken.add(name)


def _write(files: dict[str, str], folder: str) -> None:
    for name in files:
        output.make_folder(os.path.dirname(os.path.join(folder, name)) or ".")
    there = [name for name in files if os.path.exists(os.path.join(folder, f"{name}.toml"))]
    if there:
        why = "An import never writes over presets."
        raise NpuprofError([Finding("NP816", "error", f"{folder} already holds {', '.join(there[:5])}", why, "name another folder")])
    output.write_files_atomically({os.path.join(folder, f"{name}.toml"): written for name, written in files.items()})
    output.write_to_stderr(f"npuprof: wrote {report.format_count(len(files), 'preset')} below {folder}")


def _family(good: list[Draft], path: str | None) -> None:
    made = build_family(good)
    if not made.is_proven:
        raise RuntimeError("a leaf of the family does not resolve as before")
    if path is None or path == "-":
        parts = [f"# --- {name}.toml\n{written}" for name, written in made.files.items()]
        output.write_answer("\n".join(parts))
    else:
        _write(made.files, path)
    output.write_to_stderr(_proof(made))


def _proof(made: Family) -> str:
    mixins = [name for name in made.files if name.startswith("mixins/")]
    leaves = f"{len(made.proof)} {'leaf' if len(made.proof) == 1 else 'leaves'}, {'a base' if 'base' in made.files else 'no base'}"
    lines = f"{report.format_count(made.lines_before, 'setting')} became {report.format_count(made.lines_after, 'line')}"
    return f"npuprof: {leaves}, {report.format_count(len(mixins), 'mix-in')}; {lines}; every leaf resolves to the digest it had"


def setting(one: FoundSetting) -> dict[str, Any]:
    """Return a setting as the fields of the JSON form."""
    return {
        "file": one.file, "line": one.line, "column": one.column, "surface": one.surface,
        "key": one.key or None, "name": one.name or None, "field": one.field,
        "value": None if one.reason else one.value, "reason": one.reason or None,
        "condition": one.condition or None, "runs": not one.dead, "default": one.default, "scope": one.scope or None,
    }  # fmt: skip


def _json(read_files: list[ImportedFile], made: list[Draft], problems: list[Finding]) -> dict[str, Any]:
    found = [one for imported in read_files for one in imported.found]
    return {
        "schema": "npuprof.import/1",
        "settings": [setting(one) for one in found if not one.commented],
        "commented": [setting(one) for one in found if one.commented],
        "presets": [
            {
                "name": draft.name, "file": draft.file, "scenario": draft.scenario,
                **{section: draft.section(section) for section in ("options", "env", "estimator", "atc")},
                "left_out": [{**setting(note.found), "why": note.why, "hint": note.hint or None} for note in draft.notes],
            }
            for draft in made
        ],
        "problems": [report.build_finding_dict(problem) for problem in problems],
    }  # fmt: skip


def _text(read_files: list[ImportedFile], made: list[Draft], problems: list[Finding], coloured: bool) -> str:
    lines: list[str] = []
    for draft in made:
        lines.append(report.paint_text(f"{draft.file}: {draft.name}", "1", coloured))
        for key, one in draft.origins.items():
            lines.append(f"  {one.line}: {key} = {keys.format_short_value(draft.settings[key])}")
        for note in draft.notes:
            one = note.found
            value = f" = {keys.format_short_value(one.value)}" if not one.reason and one.value is not None else ""
            lines.append(f"  {one.line}: {report.paint_text('left out', '33', coloured)} {one.key or 'a computed key'}{value}: {note.why}")
            if note.hint:
                lines.append(f"      try: {note.hint}")
    commented = sum(one.commented for imported in read_files for one in imported.found)
    if commented:
        lines.append(f"{report.format_count(commented, 'setting')} commented out")
    lines.extend(map(str, problems))
    return "".join(f"{report.escape_controls(line)}\n" if not coloured else f"{line}\n" for line in lines)
