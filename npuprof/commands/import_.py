"""``import``: create presets from scripts or run logs, and report what is not carried over."""

from __future__ import annotations

import functools
import os
import shlex
from typing import Any

from npuprof.commands.framework import Verb, arguments, flag, option
from npuprof.commands.framework.parameters import COLOR, READ_KINDS, formats
from npuprof.document import keys, parse_document
from npuprof.document.profile import Profile
from npuprof.model import FRAMEWORK_SECTIONS, SECTIONS, Finding, NpuprofError, Place, build_error
from npuprof.renderers.trusting import trust_carried
from npuprof.report import Answer, output
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.isolating import isolate_faults
from npuprof.report.text import escape_controls, format_count, paint_text
from npuprof.runs.imported import answer_import, is_all_evidence
from npuprof.scripts.coverage import CoverageCount
from npuprof.scripts.draft import Draft, Note
from npuprof.scripts.family import Family, build_family, build_family_fields, describe_family
from npuprof.scripts.files import find_script_files, read_script_files
from npuprof.scripts.import_resolution import open_modules, set_callers_apart
from npuprof.scripts.lint.entries import find_idle_configs
from npuprof.scripts.naming import name_all_drafts, name_drafts
from npuprof.scripts.preset import build_drafts, format_draft, judge_draft
from npuprof.scripts.preset_text import describe_notes, explain_nothing, find_passed_over, select_section
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import ImportedFile, ScriptSetting, import_script, may_call_settings, may_hold_settings
from npuprof.store import is_profile_name, spec
from npuprof.store.folder import Folder, find_store
from npuprof.system import writing
from npuprof.system.files import is_stream, make_folder
from npuprof.system.writing import ANYTHING, Wanted

#: Suffixes of scripts, whose content needs no inspection.
_OF_SCRIPTS = (".py", ".sh", ".ipynb", ".toml", ".yaml", ".yml", ".env")


class Import(Verb):
    """Create presets from scripts or run logs.

    Scripts are parsed, never executed. From logs and graph dumps, npuprof takes the settings that they show to be effective.
    """

    usage_hint = "npuprof import train.py -o profiles/mine.toml; --format text lists the settings that were and were not found."
    group = "scripts"
    prose = True

    files: list[str] = arguments("FILE...", f"{READ_KINDS[0].upper()}{READ_KINDS[1:]}, folders of them, or run logs", required=True)
    format: str = formats("toml", "json", "text")
    base: str | None = option(
        "--base",
        metavar="auto",
        text="Move shared settings into a base preset, and conditional settings into mix-ins",
        choices=("auto",),
    )
    take_defaults: bool = flag("--take-defaults", text="Use the default values of the scripts' own flags, and mark them as such")
    name: str | None = option("--name", metavar="NAME", text="Name the preset NAME [default: the name of the file]")
    output: str | None = option(
        "--output", "-o", metavar="PATH", text="Write to PATH: a file ending in .toml, or a folder for several presets [default: stdout]"
    )
    force: bool = flag("--force", text="Overwrite existing files")
    docs: bool = flag("--docs", text="Also read the shell blocks of Markdown files below folders")
    strict: bool = flag("--strict", text="Exit with 1 if a setting is not carried over or fails the checks")
    color: str = COLOR

    def run(self) -> Answer:
        """Return the presets, or write them to a folder, or return the settings found in the scripts.

        Exit 2 if a named file could not be read, 1 with ``strict`` if something was left out or has errors, else 0.
        """
        if self._is_of_run():
            write = functools.partial(_write_new_files, below="", force=self.force) if self.format == "toml" else None
            return answer_import(self.files, self.output, write, self.strict)
        problems: list[Finding] = []
        faults: list[Finding] = []
        read_files, drafts, users, unread = _read_scripts(self.files, problems, faults, self.take_defaults, self.docs)
        _name_presets(read_files, drafts, self.name)
        nothing = _explain_nothing(read_files, drafts, users, self.files, faults)
        drafts, bad, texts = _judge_drafts(drafts, faults, self.format == "toml" and not self.base)
        problems += [*(problem for file in read_files for problem in file.problems), *bad, *faults]
        count = CoverageCount()
        for imported in read_files:
            count.add_file(imported)
        coverage = count.coverage
        code = 2 if unread or faults else 1 if self.strict and (bad or any(draft.notes for draft in drafts)) else 0
        if self.format == "json":
            family = _build_proven_family(drafts, self.output) if self.base else None
            fields = _build_fields(read_files, drafts, nothing, problems, family) | {"coverage": coverage.format_fields()}
            return Answer({"json": lambda: fields}, code=code)
        if self.format == "text":
            return Answer(_format_text(read_files, drafts, nothing, problems, self.coloured), (coverage.describe(),), code)
        for problem in problems:
            output.write_to_stderr(format_findings([problem]).rstrip("\n"))
        good = any(draft.settings for draft in drafts)
        if (unread and (not read_files or unread == len(self.files))) or (faults and not good):  # the reason was printed
            return Answer(code=code)
        if not good:
            raise NpuprofError([_build_nothing_finding(self.files, bool(drafts), nothing)])
        text, remarks = self._write_presets(drafts, texts, nothing)
        if text is not None and self.output not in (None, "-") and not is_stream(self.output or ""):
            _write_new_files({self.output or "": text}, "", self.force)
            text = None
        return Answer(text, (*remarks, coverage.describe()), code)

    def _write_presets(self, drafts: list[Draft], texts: dict[str, str], nothing: dict[str, str]) -> tuple[str | None, list[str]]:
        """Return the text of the presets, None if they were written to a folder, and the notes. Raises NpuprofError."""
        good = [draft for draft in drafts if draft.settings]
        if self.base == "auto":
            text, remarks = _write_family(good, self.output, self.force)
            return text, [*remarks, *([_tell_nothing(nothing)] if nothing else [])]
        return _write_texts(texts, _count_left_out(good), nothing, self.output, self.force)

    def _is_of_run(self) -> bool:
        """Return whether the files are logs of a run. Raises NpuprofError if that conflicts with other options."""
        if not any(os.path.isdir(file) or not file.endswith(_OF_SCRIPTS) for file in self.files):
            return False
        return is_all_evidence(self.files, {"--base": self.base, "--name": self.name, "--take-defaults": self.take_defaults})


def _read_scripts(
    paths: list[str], problems: list[Finding], faults: list[Finding], take_defaults: bool, with_docs: bool
) -> tuple[list[ImportedFile], list[Draft], dict[str, str], int]:
    """Return the parsed files, their presets, the users of helper modules, and the number of unreadable named files."""
    imported: list[ImportedFile] = []
    unread = 0
    named = set(paths)
    folders = [path for path in paths if os.path.isdir(path)]
    modules = open_modules(folders)
    for file, data in read_script_files(list(find_script_files(paths, problems, with_blocks=False, with_docs=with_docs))):
        if isinstance(data, Finding):
            problems.append(data._replace(severity="error"))
            unread += file in named
            continue
        with isolate_faults(file, faults):
            script = _read_script(file, data, file in named, modules, problems)
            if script is not None:
                imported.append(script)
                unread += file in named and not script.found and any(problem.severity == "warning" for problem in script.problems)
    take_out, users = set_callers_apart(imported)
    read_files: list[ImportedFile] = []
    all_drafts: list[Draft] = []
    for script in imported:
        with isolate_faults(script.file, faults):
            drafts = build_drafts(take_out(script), folders, take_defaults)
            read_files.append(script._replace(text="", remarks=(), passed_over=_find_passed_over(script)))
            all_drafts += drafts
    return read_files, all_drafts, users, unread


def _read_script(file: str, data: bytes, named: bool, modules: Modules, problems: list[Finding]) -> ImportedFile | None:
    """Return a parsed file, None if it cannot contain settings; configurations without a name are added to ``problems``."""
    holds = named or may_hold_settings(file, data)
    if not holds and not may_call_settings(file, data, modules):
        return None
    script = import_script(file, data, named, modules)
    problems += find_idle_configs(script)
    return script if holds or script.found else None


def _judge_drafts(drafts: list[Draft], faults: list[Finding], formatted: bool) -> tuple[list[Draft], list[Finding], dict[str, str]]:
    """Return the presets that could be checked, their findings, and, if ``formatted``, their texts by name."""
    judged: list[Draft] = []
    problems: list[Finding] = []
    texts: dict[str, str] = {}
    for draft in drafts:
        with isolate_faults(draft.file, faults):
            findings = judge_draft(draft)
            texts |= {draft.name: format_draft(draft)} if formatted and draft.settings else {}
            problems += findings
            judged.append(draft)
    return judged, problems, texts


def _find_passed_over(script: ImportedFile) -> str:
    """Return the unsupported parts of a file without settings."""
    return "" if any(not setting.commented for setting in script.found) else find_passed_over(script)


def _name_presets(read_files: list[ImportedFile], drafts: list[Draft], name: str | None) -> None:
    """Name the presets: the requested name if all come from one script, else names that distinguish the scripts."""
    if sum(any(setting.surface != "config" for setting in script.found) for script in read_files) > 1:
        name_all_drafts([draft for draft in drafts if draft.settings])
    elif name:
        name_drafts(name, drafts)


def _explain_nothing(
    read_files: list[ImportedFile], all_drafts: list[Draft], users: dict[str, str], paths: list[str], faults: list[Finding]
) -> dict[str, str]:
    """Return, by path, why scripts yield no preset."""
    by_file: dict[str, list[Draft]] = {}
    for draft in all_drafts:
        by_file.setdefault(draft.file, []).append(draft)
    named = set(paths)
    reasons: dict[str, str] = {}
    for script in read_files:
        with isolate_faults(script.file, faults):
            drafts, user = by_file.get(script.file, ()), users.get(os.path.normpath(script.file), "")
            reasons[script.file] = explain_nothing(script, drafts, script.file in named, user)
    return {file: reason for file, reason in reasons.items() if reason}


def _build_nothing_finding(files: list[str], has_drafts: bool, nothing: dict[str, str]) -> Finding:
    """Return the finding for files without settings; for a single file with the reason."""
    shown = f"{', '.join(files[:3])}{' …' if len(files) > 3 else ''}"
    what = f"there is nothing to make a preset of in {shown}"
    if presets := [file for file in files if file.endswith(".toml")]:
        hint = f"npuprof check {presets[0]} checks it, npuprof copy {presets[0]} NAME makes another of it"
        return Finding("NP816", what, f"{presets[0]} is a preset already; import reads scripts.", hint)
    why = "No setting of a session, a launcher or atc was found."
    if has_drafts:
        why = "Every setting that was found has an error, or depends on the run."
    if len(nothing) == 1 and (reason := next(iter(nothing.values()))) not in ("", "no setting in it"):
        why = f"{reason[0].upper()}{reason[1:]}."
    return Finding(
        "NP816", what, why, f"npuprof import --format text {shlex.join(files[:3])} lists the settings that were read and left out"
    )


def _count_left_out(good: list[Draft]) -> str:
    """Return the number of settings and other variables that the presets omit, an empty string if none."""
    notes, others = sum(len(draft.notes) for draft in good), len({variable for draft in good for variable in draft.others})
    counts = [format_count(notes, "setting")] * bool(notes) + [format_count(others, "other variable")] * bool(others)
    return f"{' and '.join(counts)} {'was' if notes + others == 1 else 'were'}" if counts else ""


def _write_texts(
    texts: dict[str, str], left_out: str, nothing: dict[str, str], path: str | None, force: bool
) -> tuple[str | None, list[str]]:
    """Return the text of the presets, None if they were written to a folder, and the notes. Raises NpuprofError."""
    remarks = [_tell_nothing(nothing)] if nothing else []
    text = None
    if path is None or path.endswith(".toml") or path == "-":
        if len(texts) > 1:
            names = ", ".join(list(texts)[:8]) + (", ..." if len(texts) > 8 else "")
            why = f"The scripts hold {len(texts)} presets: {names}."
            raise build_error("NP816", "several presets do not fit one file", why, "name a folder with -o DIR")
        text = next(iter(texts.values()))
    else:
        remarks.append(_write_folder(texts, path, force))
    if left_out:
        remarks.append(f"{left_out} not carried over; see the comments at the end, or --format text")
    return text, remarks


def _tell_nothing(nothing: dict[str, str], most: int = 5) -> str:
    """Return the scripts that yield no preset, with reasons; at most ``most`` of them."""
    lines = [escape_controls(f"{file}: {reason}") for file, reason in list(nothing.items())[:most]]
    more = [f"and {len(nothing) - most} more, which --format json lists"] if len(nothing) > most else []
    gives = f"{format_count(len(nothing), 'script')} {'gives' if len(nothing) == 1 else 'give'} no preset"
    return "\n  ".join([f"{gives}:", *lines, *more])


def _write_folder(files: dict[str, str], folder: str, force: bool) -> str:
    """Write presets below a folder and return the notes. Raises NpuprofError if one exists already."""
    paths = {os.path.join(folder, f"{name}.toml"): text for name, text in files.items()}
    folders = make_folder(folder)
    for path in paths:
        writing.make_folder_below(os.path.dirname(path), folder)
    _write_new_files(paths, folder, force)
    output.tell_made_folders(folders)
    return f"wrote {format_count(len(files), 'preset')} below {folder}"


def _write_new_files(files: dict[str, str], below: str, force: bool) -> None:
    """Write files that do not exist yet, or all with ``force``. Raises NpuprofError, and then writes nothing."""
    there = [path for path in files if os.path.lexists(path)]
    if there and not force:
        more = f" and {len(there) - 5} more" if len(there) > 5 else ""
        what = f"{', '.join(there[:5])}{more} {'is' if len(there) == 1 else 'are'} there already"
        hint = "write to another place, or overwrite it with --force"
        raise build_error("NP816", what, "An import writes over nothing unasked.", hint, where=Place(there[0]))
    known = ANYTHING if force else None
    writing.write_wanted_files([Wanted(path, text.encode(), known, below) for path, text in files.items()])
    _trust_carried(files)


def _trust_carried(files: dict[str, str]) -> None:
    """Trust the store of the written presets with their unknown variables; list those that stay untrusted."""
    if not any("[env]" in text for text in files.values()):
        return
    try:
        home = spec.Workspace().store
    except NpuprofError:  # not in a store: nothing is exported from here
        return
    names = {path: home.locate_file(os.path.abspath(path)) for path in files} if isinstance(home, Folder) else {}
    untrusted = trust_carried(home, [Profile(parse_document(name, path, files[path]), home=home) for path, name in names.items() if name])
    if untrusted:
        shown = ", ".join(dict.fromkeys(need.name for need in untrusted))
        output.tell_remark(f"not trusted, because it can affect what is executed: {shown}; look at the preset, then run npuprof trust")


def _write_family(good: list[Draft], path: str | None, force: bool) -> tuple[str | None, list[str]]:
    family = _build_proven_family(good, path)
    if path is None or path == "-":
        parts = [f"# --- {name}.toml\n{written}" for name, written in family.files.items()]
        return "\n".join(parts), [describe_family(family)]
    return None, [_write_folder(family.files, path, force), describe_family(family)]


def _build_proven_family(drafts: list[Draft], path: str | None) -> Family:
    return build_family(drafts, _find_folder_in_store(path))


def _find_folder_in_store(path: str | None) -> str:
    """Return the name prefix of presets in a folder, ``zoo/`` inside the store; empty if the folder is not in the store."""
    try:
        root = os.path.realpath(find_store(None, os.environ).root)
    except NpuprofError:
        return ""
    inside = os.path.relpath(os.path.realpath(path), root) if path not in (None, "-") else ""
    return f"{inside.replace(os.sep, '/')}/" if inside and is_profile_name(inside.replace(os.sep, "/")) else ""


def _build_setting_fields(setting: ScriptSetting) -> dict[str, Any]:
    """Return a setting as the fields of the JSON form."""
    return {
        "file": setting.file, "line": setting.line, "column": setting.column, "surface": setting.surface,
        "key": setting.key or None, "name": setting.name or None, "field": setting.field or None,
        "value": None if setting.reason else setting.value, "reason": setting.reason or None,
        "condition": setting.condition or None, "runs": not setting.dead, "unused": setting.unused or None,
        "default": setting.given.default, "scope": setting.scope or None,
        **({"part": setting.place.part} if setting.place.part else {}),
    }  # fmt: skip


def _build_fields(
    read_files: list[ImportedFile], drafts: list[Draft], nothing: dict[str, str], problems: list[Finding], family: Family | None
) -> dict[str, Any]:
    grown: dict[str, Any] = {}
    if family:
        grown = {"family": build_family_fields(family)}
    settings = [setting for imported in read_files for setting in (*imported.found, *imported.others)]
    return {
        "schema": "npuprof.import/1",
        "settings": [_build_setting_fields(setting) for setting in settings if not setting.commented and not setting.place.call],
        "commented": [_build_setting_fields(setting) for setting in settings if setting.commented],
        "followed": [
            {**_build_setting_fields(setting), "script": imported.file, "call": setting.place.call[0]}
            for imported in read_files
            for setting in (*imported.found, *imported.others)
            if setting.place.call
        ],
        "presets": [
            {
                "name": draft.name, "file": draft.file, "scenario": draft.scenario,
                **{
                    section: values
                    for section in SECTIONS
                    if (values := select_section(draft.settings, section)) or section not in FRAMEWORK_SECTIONS
                },
                "left_out": [
                    {**_build_setting_fields(note.found), "why": note.why, "hint": note.hint or None}
                    for note in (*draft.notes, *(Note(setting, setting.reason) for setting in draft.others))
                ],
            }
            for draft in drafts
        ],
        **grown,
        "nothing": [{"file": file, "reason": reason} for file, reason in nothing.items()],
        "problems": [build_finding_dict(problem) for problem in problems],
    }  # fmt: skip


def _format_text(
    read_files: list[ImportedFile], drafts: list[Draft], nothing: dict[str, str], problems: list[Finding], coloured: bool
) -> str:
    lines: list[str] = []
    for draft in drafts:
        lines.append(paint_text(escape_controls(f"{draft.file}: {draft.name}"), "1", coloured))
        for key, setting in sorted(draft.origins.items(), key=lambda pair: pair[1].line):
            lines.append(f"  {_format_place(setting, draft)}: {escape_controls(key)} = {keys.format_short_value(draft.settings[key])}")
        lines += [f"  {escape_controls(text)}" for text in describe_notes(draft.notes, draft.others)[1:]]
    commented = sum(setting.commented for imported in read_files for setting in imported.found if not setting.place.call)
    if commented:
        lines.append(f"{format_count(commented, 'setting')} commented out")
    lines += [escape_controls(f"{file}: no preset: {reason}") for file, reason in nothing.items()]
    lines += [escape_controls(str(problem)) for problem in problems]
    return "".join(f"{line}\n" for line in lines)


def _format_place(setting: ScriptSetting, draft: Draft) -> str:
    if setting.file != draft.file:
        return escape_controls(f"{setting.file}:{setting.line}")
    return f"{setting.line} ({setting.place.part})" if setting.place.part else str(setting.line)


VERB = Import
