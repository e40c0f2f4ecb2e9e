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
from npuprof.scripts.family import Family, family
from npuprof.scripts.preset import Draft, drafts, text
from npuprof.scripts.reading import Found, Imported, read, wanted

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
    made = [draft for one in read_files for draft in drafts(one, name if not several else None) if draft.settings or draft.notes]
    left = any(draft.notes for draft in made)
    problems += [problem for one in read_files for problem in one.problems]
    if format_ == "json":
        output.answer(report.dump(_json(read_files, made, problems)), path)
    elif format_ == "text":
        output.answer(_text(read_files, made, problems, output.colour(color, sys.stdout)), path)
    else:
        for problem in problems:
            output.talk(report.findings_text([problem]).rstrip("\n"))
        _presets(made, base, path)
    return 2 if unread else 1 if strict and left else 0


def _read(paths: list[str], problems: list[Finding]) -> tuple[list[Imported], int]:
    from npuprof.scripts.files import gather

    found: list[Imported] = []
    unread = 0
    named = set(paths)
    for file in gather(paths, problems):
        try:
            with open(file, "rb") as opened:
                data = opened.read()
        except OSError as error:
            what = f"cannot read the file: {str(error.strerror).lower()}"
            problems.append(Finding("NP801", "error", what, "", "check the path", where=(file, 0, 0)))
            unread += file in named
            continue
        if file in named or wanted(file, data):
            one = read(file, data)
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
        output.answer(text(good[0]), path)
    else:
        _unique(good)
        files = {draft.name: text(draft) for draft in good}
        if path is None or path.endswith(".toml") or path == "-":
            names = ", ".join(list(files)[:8]) + (", ..." if len(files) > 8 else "")
            why = f"The scripts hold {len(files)} presets: {names}."
            raise NpuprofError([Finding("NP816", "error", "several presets do not fit one file", why, "name a folder with -o DIR")])
        _write(files, path)
    notes = sum(len(draft.notes) for draft in good)
    if notes:
        were = "was" if notes == 1 else "were"
        output.talk(f"npuprof: {report.counted(notes, 'setting')} {were} not carried over; see the comments at the end, or --format text")


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
    output.write_all({os.path.join(folder, f"{name}.toml"): written for name, written in files.items()})
    output.talk(f"npuprof: wrote {report.counted(len(files), 'preset')} below {folder}")


def _family(good: list[Draft], path: str | None) -> None:
    made = family(good)
    if not made.proven:
        raise RuntimeError("a leaf of the family does not resolve as before")
    if path is None or path == "-":
        parts = [f"# --- {name}.toml\n{written}" for name, written in made.files.items()]
        output.answer("\n".join(parts))
    else:
        _write(made.files, path)
    output.talk(_proof(made))


def _proof(made: Family) -> str:
    mixins = [name for name in made.files if name.startswith("mixins/")]
    leaves = f"{len(made.proof)} {'leaf' if len(made.proof) == 1 else 'leaves'}, {'a base' if 'base' in made.files else 'no base'}"
    lines = f"{report.counted(made.lines_before, 'setting')} became {report.counted(made.lines_after, 'line')}"
    return f"npuprof: {leaves}, {report.counted(len(mixins), 'mix-in')}; {lines}; every leaf resolves to the digest it had"


def setting(one: Found) -> dict[str, Any]:
    """Return a setting as the fields of the JSON form."""
    return {
        "file": one.file, "line": one.line, "column": one.column, "surface": one.surface,
        "key": one.key or None, "name": one.name or None, "field": one.field,
        "value": None if one.reason else one.value, "reason": one.reason or None,
        "condition": one.condition or None, "runs": not one.dead, "default": one.default, "scope": one.scope or None,
    }  # fmt: skip


def _json(read_files: list[Imported], made: list[Draft], problems: list[Finding]) -> dict[str, Any]:
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
        "problems": [report.as_dict(problem) for problem in problems],
    }  # fmt: skip


def _text(read_files: list[Imported], made: list[Draft], problems: list[Finding], coloured: bool) -> str:
    lines: list[str] = []
    for draft in made:
        lines.append(report.paint(f"{draft.file}: {draft.name}", "1", coloured))
        for key, one in draft.origins.items():
            lines.append(f"  {one.line}: {key} = {keys.shown(draft.settings[key])}")
        for note in draft.notes:
            one = note.found
            value = f" = {keys.shown(one.value)}" if not one.reason and one.value is not None else ""
            lines.append(f"  {one.line}: {report.paint('left out', '33', coloured)} {one.key or 'a computed key'}{value}: {note.why}")
            if note.hint:
                lines.append(f"      try: {note.hint}")
    commented = sum(one.commented for imported in read_files for one in imported.found)
    if commented:
        lines.append(f"{report.counted(commented, 'setting')} commented out")
    lines.extend(map(str, problems))
    return "".join(f"{report.visible(line)}\n" if not coloured else f"{line}\n" for line in lines)
