"""``import``: create presets from scripts or run logs, and report what is not carried over."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Iterable

from npuprof import catalog
from npuprof.commands.framework import Verb, arguments, flag, option
from npuprof.commands.framework.parameters import COLOR, PROGRAMS, formats
from npuprof.document import keys, parse_document
from npuprof.document.profile import Profile
from npuprof.model import Fields, Finding, NpuprofError, Place, build_error
from npuprof.renderers.stamp import read_listed_sidecars
from npuprof.renderers.trusting import trust_carried
from npuprof.report import Answer, output
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.isolating import isolate_faults
from npuprof.report.text import count_rest, escape_controls, format_count, paint_text
from npuprof.runs.imported import answer_import, is_all_evidence
from npuprof.scripts.file_discovery import find_script_files, read_script_files
from npuprof.scripts.import_resolution import open_modules, set_callers_apart
from npuprof.scripts.lint.entries import find_idle_configs
from npuprof.scripts.lint.program_faults import judge_programs
from npuprof.scripts.naming import name_all_drafts, name_drafts
from npuprof.scripts.preset import build_drafts, format_draft, judge_draft
from npuprof.scripts.preset_draft import Draft, Note
from npuprof.scripts.preset_text import (
    describe_notes,
    explain_nothing,
    find_passed_over,
    select_section,
)
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.reading import (
    ImportedFile,
    ScriptSetting,
    import_script,
    may_call_settings,
    may_hold_settings,
)
from npuprof.scripts.reading.file_kinds import describe_kinds
from npuprof.scripts.script_coverage import CoverageCount, list_unjudged
from npuprof.scripts.shared_bases import build_family, build_family_fields, describe_family
from npuprof.store import is_profile_name, spec
from npuprof.store.folder import find_store
from npuprof.store.problems import build_bad_new_name_finding, make_preset_name
from npuprof.system import (
    drop_empty,
    find_repository_top,
    group_pairs,
    is_below,
    join_lines,
    join_normal,
    writing,
)
from npuprof.system.files import is_stream, make_folder
from npuprof.system.writing import ANYTHING, PlannedWrite

#: Suffixes of scripts, whose content needs no inspection.
_OF_SCRIPTS = (".py", ".sh", ".ipynb", ".toml", ".yaml", ".yml", ".env")


#: The maximum number of files in a note.
_SHOWN = 5


class Import(Verb):
    """Create presets from scripts or run logs.

    Scripts are parsed, never executed. From logs and graph dumps, npuprof takes the settings that
    were effective.
    """

    usage_hint = (
        "npuprof import train.py -o profiles/mine.toml; --format "
        "text lists the settings that were and were not found."
    )
    group = "scripts"
    prose = True

    files = arguments("FILE...", f"{describe_kinds()}, folders of them, or run logs", required=True)
    format = formats("toml", "json", "text")
    base = option(
        "--base",
        metavar="auto",
        text="Move shared settings into a base preset, and conditional settings into mix-ins",
        choices=("auto",),
    )
    take_defaults = flag(
        "--take-defaults",
        text="Use the default values of the scripts' own flags, and mark them as such",
    )
    name = option(
        "--name", metavar="NAME", text="Name the preset NAME [default: the name of the file]"
    )
    output = option(
        "--output",
        "-o",
        metavar="PATH",
        text=(
            "Write to PATH: a file ending in .toml, or a "
            "folder for several presets [default: stdout]"
        ),
    )
    force = flag("--force", text="Overwrite existing files")
    docs = flag("--docs", text="Also read the shell blocks of Markdown files below folders")
    programs = PROGRAMS
    strict = flag(
        "--strict", text="Exit with 1 if a setting is not carried over or fails the checks"
    )
    color = COLOR

    def run(self) -> Answer:
        """Return the presets, or write them to a folder, or return the settings of the scripts.

        Exit 2 if a named file could not be read, 1 with ``strict`` if something was left out or has
        errors, else 0.
        """
        if self.format == "toml":
            _require_preset_name(self.output or "-")
        if self.name is not None and not is_profile_name(self.name):
            raise NpuprofError(build_bad_new_name_finding(self.name))
        if self._is_of_run():
            write = (
                functools.partial(_write_new_files, below="", force=self.force)
                if self.format == "toml"
                else None
            )
            return answer_import(self.files, self.output, write, self.strict)
        scripts = _Scripts(self)
        good = [draft for draft in scripts.drafts if draft.settings]
        is_partial = scripts.bad or any(draft.notes for draft in scripts.drafts)
        code = 2 if scripts.unread or scripts.faults else int(self.strict and bool(is_partial))
        covered = scripts.coverage.describe() + scripts.coverage.describe_unjudged()
        if self.format == "json":
            fields = scripts.build_fields()
            return Answer({"json": lambda: fields}, code=code)
        if self.format == "text":
            return Answer(scripts.format_text(), (covered,), code)
        for problem in scripts.problems:
            output.write_to_stderr(format_findings([problem]).rstrip("\n"))
        nothing_read = scripts.unread and (not scripts.files or scripts.unread == len(self.files))
        if nothing_read or (scripts.faults and not good):
            return Answer(code=code)  # the reason was printed
        if not good:
            raise NpuprofError(
                _build_nothing_finding(self.files, bool(scripts.drafts), scripts.nothing)
            )
        text, notes = self._write_presets(good, scripts)
        path = self.output or "-"
        if text is not None and path != "-" and not is_stream(path):
            _write_new_files({path: text}, "", self.force)
            text = None
        return Answer(text, (*notes, covered), code)

    def _write_presets(self, good: list[Draft], scripts: _Scripts) -> tuple[str | None, list[str]]:
        """Return the text of the presets, None if they were written to a folder, and the notes.

        Raises NpuprofError.
        """
        path = None if self.output == "-" else self.output
        texts = scripts.texts
        nothing = [_describe_nothing(scripts.nothing)] if scripts.nothing else []
        if self.base:
            family = build_family(good, _find_folder_in_store(path))
            notes = [describe_family(family), *nothing]
            if path is None:
                return "\n".join(
                    f"# --- {name}.toml\n{written}" for name, written in family.files.items()
                ), notes
            return None, [_write_folder(family.files, path, self.force), *notes]
        left_out = _count_left_out(good)
        notes = (
            [f"{left_out} not carried over; see the comments at the end, or --format text"]
            if left_out
            else []
        )
        if path is not None and not path.endswith(".toml"):
            if len(good) > 1 == len({draft.file for draft in good}):  # launches share a base
                texts = build_family(good, _find_folder_in_store(path)).files
            return None, [*nothing, _write_folder(texts, path, self.force), *notes]
        if len(texts) > 1:
            names = ", ".join(list(texts)[:8]) + (", ..." if len(texts) > 8 else "")
            why = f"The scripts hold {len(texts)} presets: {names}."
            raise build_error(
                "NP816", "several presets do not fit one file", why, "name a folder with -o DIR"
            )
        return next(iter(texts.values())), [*nothing, *notes]

    def _is_of_run(self) -> bool:
        """Return whether the files are logs of a run.

        Raises NpuprofError if that conflicts with other options.
        """
        if not any(os.path.isdir(file) or not file.endswith(_OF_SCRIPTS) for file in self.files):
            return False
        return is_all_evidence(
            self.files,
            {"--base": self.base, "--name": self.name, "--take-defaults": self.take_defaults},
        )


class _Scripts:
    """The scripts that an import reads, their presets, and by path why some yield ``nothing``.

    ``problems`` are all findings, among them ``bad`` ones of presets and ``faults``, which are
    internal errors. ``unread`` is the number of named files that could not be read. ``texts`` are
    the presets to write, by name.
    """

    def __init__(self, verb: Import) -> None:
        self._verb = verb
        self._named = set(verb.files)
        self.files: list[ImportedFile] = []
        self.drafts: list[Draft] = []
        self.problems: list[Finding] = []
        self.bad: list[Finding] = []
        self.faults: list[Finding] = []
        self.texts: dict[str, str] = {}
        self.unread = 0
        self._count = CoverageCount()
        users = self._read_files()
        self._name_presets()
        self.nothing = self._explain_nothing(users)
        self._format_presets()
        self.problems += [
            *(problem for file in self.files for problem in file.problems),
            *self.bad,
            *self.faults,
        ]
        for imported in self.files:
            self._count.add_file(imported)
        self.coverage = self._count.coverage

    def _read_files(self) -> dict[str, str]:
        """Parse the files, and build their presets; return the users of helper modules."""
        verb = self._verb
        imported = []
        folders = [path for path in verb.files if os.path.isdir(path)]
        modules = open_modules(folders)
        programs = Programs(folders, verb.programs)
        found = find_script_files(verb.files, self.problems, with_blocks=False, with_docs=verb.docs)
        for file, data in read_script_files(list(found)):
            named = file in self._named
            if isinstance(data, Finding):
                self.problems.append(data._replace(severity="error"))
                self.unread += named
                continue
            with isolate_faults(file, self.faults):
                # a cheap look at the bytes: most files of a folder have no settings
                holds = named or may_hold_settings(file, data)
                if not holds and not may_call_settings(file, data, modules):
                    self._count.add_unjudged(list_unjudged(ImportedFile(file), data))
                    continue
                script = import_script(file, data, named, modules)
                self._count.add_unjudged(list_unjudged(script, data))
                self.problems += find_idle_configs(script)
                if holds or script.settings:
                    imported.append(script)
                    self.unread += (
                        named
                        and not script.settings
                        and any(problem.severity == "warning" for problem in script.problems)
                    )
        joined = _join_rendered(imported)
        exclude_passed, users = set_callers_apart(joined)
        for script in joined:
            with isolate_faults(script.file, self.faults):
                drafts = build_drafts(exclude_passed(script), folders, verb.take_defaults)
                findings = [finding for draft in drafts for finding in judge_draft(draft)]
                self.bad += judge_programs(script, findings, programs)
                passed_over = (
                    ""
                    if any(not setting.commented for setting in script.settings)
                    else find_passed_over(script)
                )
                self.files.append(
                    # a tree of scripts may be large, and the texts are no longer needed
                    script._replace(text="", other_records=(), passed_over=passed_over)
                )
                self.drafts += drafts
        return users

    def _name_presets(self) -> None:
        """Name the presets after ``--name`` if all come from one script, else after the scripts."""
        scripts = [
            script
            for script in self.files
            if any(setting.surface != "config" for setting in script.settings)
        ]
        # --name names one preset, and not those of several scripts
        if len(scripts) > 1:
            name_all_drafts([draft for draft in self.drafts if draft.settings])
        elif self._verb.name:
            name_drafts(self._verb.name, self.drafts)

    def _explain_nothing(self, users: dict[str, str]) -> dict[str, str]:
        """Return, by path, why scripts yield no preset."""
        by_file = group_pairs((draft.file, draft) for draft in self.drafts)
        reasons = {}
        for script in self.files:
            with isolate_faults(script.file, self.faults):
                drafts = by_file.get(script.file, ())
                user = users.get(os.path.normpath(script.file), "")
                reasons[script.file] = explain_nothing(
                    script, drafts, script.file in self._named, user
                )
        return drop_empty(reasons)

    def _format_presets(self) -> None:
        """Format the presets to write.

        Presets that cause an internal error are dropped.
        """
        drafts = self.drafts
        self.drafts = []
        for draft in drafts:
            with isolate_faults(draft.file, self.faults):
                if draft.settings and self._verb.format == "toml" and not self._verb.base:
                    self.texts[draft.name] = format_draft(draft)
                self.drafts.append(draft)

    def build_fields(self) -> Fields:
        """Return the settings, presets and findings as the fields of the JSON form."""
        family = (
            build_family(self.drafts, _find_folder_in_store(self._verb.output))
            if self._verb.base
            else None
        )
        found = [
            (imported.file, setting, _build_setting_fields(setting))
            for imported in self.files
            for setting in (*imported.settings, *imported.other_variables)
        ]
        return {
            "schema": "npuprof.import/1",
            "settings": [
                fields
                for _, setting, fields in found
                if not setting.commented and not setting.location.call
            ],
            "commented": [fields for _, setting, fields in found if setting.commented],
            "followed": [
                {**fields, "script": file, "call": setting.location.call[0]}
                for file, setting, fields in found
                if setting.location.call
            ],
            "presets": [_build_preset_fields(draft) for draft in self.drafts],
            **({"family": build_family_fields(family)} if family else {}),
            "nothing": [{"file": file, "reason": reason} for file, reason in self.nothing.items()],
            "problems": [build_finding_dict(problem) for problem in self.problems],
            "coverage": self.coverage.format_fields(),
        }

    def format_text(self) -> str:
        """Return the settings of each preset with lines, reasons for no preset, and findings."""
        lines = []
        for draft in self.drafts:
            lines.append(
                paint_text(escape_controls(f"{draft.file}: {draft.name}"), "1", self._verb.coloured)
            )
            for key, setting in sorted(draft.origins.items(), key=lambda pair: pair[1].line):
                lines.append(
                    f"  {_format_place(setting, draft)}: {escape_controls(key)} = "
                    f"{keys.format_short_value(draft.settings[key])}"
                )
            lines += [
                f"  {escape_controls(text)}"
                for text in describe_notes(draft.notes, draft.other_variables)[1:]
            ]
        commented = sum(
            setting.commented
            for imported in self.files
            for setting in imported.settings
            if not setting.location.call
        )
        if commented:
            lines.append(f"{format_count(commented, 'setting')} commented out")
        lines += [
            escape_controls(f"{file}: no preset: {reason}") for file, reason in self.nothing.items()
        ]
        lines += [escape_controls(str(problem)) for problem in self.problems]
        return join_lines(lines)


def _join_rendered(files: list[ImportedFile]) -> Iterable[ImportedFile]:
    """Return files, those of a rendered folder as one."""
    by_path = {os.path.normpath(file.file): file for file in files}
    for path, file in list(by_path.items()):
        for name, _ in read_listed_sidecars(file.text) if file.text.startswith("# Gen") else ():
            if beside := by_path.pop(join_normal(path, "..", name), None):
                by_path[path] = file = file._replace(
                    settings=(*file.settings, *beside.settings),
                    problems=(*file.problems, *beside.problems),
                    other_variables=(*file.other_variables, *beside.other_variables),
                )
    return by_path.values()


def _build_nothing_finding(files: list[str], has_drafts: bool, nothing: dict[str, str]) -> Finding:
    """Return the finding for files without settings; for a single file with the reason."""
    shown = f"{', '.join(files[:3])}{' …' if len(files) > 3 else ''}"
    what = f"there is nothing to make a preset of in {shown}"
    if presets := [file for file in files if file.endswith(".toml")]:
        hint = (
            f"npuprof check {presets[0]} checks it, npuprof "
            f"copy {presets[0]} NAME makes another of it"
        )
        return Finding(
            "NP816", what, f"{presets[0]} is a preset already; import reads scripts.", hint
        )
    why = "No setting that a preset can contain was found."
    if has_drafts:
        why = "Every setting that was found has an error, or depends on the run."
    if len(nothing) == 1:
        (reason,) = nothing.values()
        if reason not in ("", "no setting in it"):
            why = f"{reason[0].upper()}{reason[1:]}."
    return Finding(
        "NP816",
        what,
        why,
        (
            f"npuprof import --format text {shlex.join(files[:3])} "
            "lists the settings that were read and left out"
        ),
    )


def _count_left_out(good: list[Draft]) -> str:
    """Return the number of settings and other variables that the presets omit.

    An empty string if none.
    """
    settings = sum(len(draft.notes) for draft in good)
    variables = len({variable for draft in good for variable in draft.other_variables})
    nouns = {"setting": settings, "other variable": variables}
    counts = [format_count(number, noun) for noun, number in nouns.items() if number]
    verb = "was" if settings + variables == 1 else "were"
    return f"{' and '.join(counts)} {verb}" if counts else ""


def _describe_nothing(nothing: dict[str, str]) -> str:
    """Return the first scripts that yield no preset, with reasons."""
    verb = "gives" if len(nothing) == 1 else "give"
    lines = [f"{format_count(len(nothing), 'script')} {verb} no preset:"]
    lines += [escape_controls(f"{file}: {reason}") for file, reason in nothing.items()][:_SHOWN]
    if len(nothing) > _SHOWN:
        lines.append(f"and {len(nothing) - _SHOWN} more, which --format json lists")
    return "\n  ".join(lines)


def _write_folder(files: dict[str, str], folder: str, force: bool) -> str:
    """Write presets below a folder and return the notes.

    Raises NpuprofError if one exists already.
    """
    paths = {os.path.join(folder, f"{name}.toml"): text for name, text in files.items()}
    folders = make_folder(folder)
    for path in paths:
        writing.make_folder_below(os.path.dirname(path), folder)
    _write_new_files(paths, folder, force)
    output.print_created_folders(folders)
    return f"wrote {format_count(len(files), 'preset')} below {folder}"


def _write_new_files(files: dict[str, str], below: str, force: bool) -> None:
    """Write files that do not exist yet, or all with ``force``.

    Raises NpuprofError, and then writes nothing.
    """
    there = [path for path in files if os.path.lexists(path)]
    if there and not force:
        what = f"{count_rest(there, _SHOWN)} {'is' if len(there) == 1 else 'are'} there already"
        hint = "write to another place, or overwrite it with --force"
        raise build_error(
            "NP816", what, "An import writes over nothing unasked.", hint, where=Place(there[0])
        )
    top = find_repository_top(".") or "."
    for folder in map(os.path.dirname, files):
        # a missing folder elsewhere may be a typo
        if folder and is_below(folder, top):
            output.print_created_folders(make_folder(folder))
    # None: a file that appears meanwhile is not overwritten
    known = ANYTHING if force else None
    writing.write_planned_files(
        [PlannedWrite(path, text.encode(), known, below) for path, text in files.items()]
    )
    _trust_carried(files)


def _require_preset_name(path: str) -> None:
    """Raise NpuprofError for a path in the store that cannot be the name of a preset."""
    name = _find_name_in_store(path).removesuffix(".toml")
    if not name.startswith((".", "-")) and not is_profile_name(name):
        hint = f"write {path.replace(name, make_preset_name(name) or 'NAME')}"
        raise NpuprofError(build_bad_new_name_finding(name)._replace(hint=hint))


def _trust_carried(files: dict[str, str]) -> None:
    """Trust the store of the written presets with their unknown variables.

    List those that stay untrusted.
    """
    if not any("[env]" in text for text in files.values()):
        return
    try:
        home = spec.Workspace().store
    except NpuprofError:  # not in a store: nothing is exported from here
        return
    names = {path: home.locate_file(os.path.abspath(path)) for path in files}
    untrusted = trust_carried(
        home,
        [
            Profile(parse_document(name, path, files[path]), home=home)
            for path, name in names.items()
            if name
        ],
    )
    if untrusted:
        shown = ", ".join(dict.fromkeys(need.name for need in untrusted))
        output.print_note(
            "not trusted, because it can affect what is executed: "
            f"{shown}; look at the preset, then run npuprof trust"
        )


def _find_folder_in_store(path: str | None) -> str:
    """Return the name prefix of presets in a folder, ``zoo/`` inside the store.

    Empty if the folder is not in the store. Without one, ``profiles`` will be the store.
    """
    if path is None or path == "-":
        return ""
    name = _find_name_in_store(path)
    return f"{name}/" if is_profile_name(name) else ""


def _find_name_in_store(path: str) -> str:
    """Return the path of a file or folder below the store, without one below ``profiles``."""
    try:
        root = find_store(None, os.environ).root
    except NpuprofError:
        root = "profiles"
    return os.path.relpath(os.path.realpath(path), os.path.realpath(root)).replace(os.sep, "/")


def _build_setting_fields(setting: ScriptSetting) -> Fields:
    """Return a setting as the fields of the JSON form."""
    return {
        "file": setting.file,
        "line": setting.line,
        "column": setting.column,
        "surface": setting.surface,
        "key": setting.key or None,
        "name": setting.name or None,
        "field": setting.field or None,
        "value": None if setting.reason else setting.value,
        "reason": setting.reason or None,
        "condition": setting.condition or None,
        "runs": not setting.dead,
        "unused": setting.unused or None,
        "default": setting.assigned.default,
        "scope": setting.scope or None,
        **({"part": setting.location.part} if setting.location.part else {}),
    }


def _build_preset_fields(draft: Draft) -> Fields:
    return {
        "name": draft.name,
        "file": draft.file,
        "scenario": draft.scenario,
        **{
            name: values
            for name, section in catalog.load_sections().items()
            if (values := select_section(draft.settings, name)) or not section.dotted
        },
        "left_out": [
            {**_build_setting_fields(note.setting), "why": note.why, "hint": note.hint or None}
            for note in (
                *draft.notes,
                *(Note(setting, setting.reason) for setting in draft.other_variables),
            )
        ],
    }


def _format_place(setting: ScriptSetting, draft: Draft) -> str:
    if setting.file != draft.file:
        return escape_controls(f"{setting.file}:{setting.line}")
    return (
        f"{setting.line} ({setting.location.part})" if setting.location.part else str(setting.line)
    )


VERB = Import
