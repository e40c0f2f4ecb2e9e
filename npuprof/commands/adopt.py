"""``adopt``: move the settings of scripts into presets, and replace them by marked blocks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from npuprof.checks import require_exportable
from npuprof.commands.framework import Verb, arguments, flag, option
from npuprof.commands.framework.parameters import DRY_RUN, FORMAT, STORE, TRUST
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.edit.changed import build_opener
from npuprof.edit.preset_file import NewFile, format_difference, locate_new_file, require_free_name
from npuprof.model import (
    Fields,
    Finding,
    NpuprofError,
    Place,
    Record,
    build_error,
    raise_any,
    select_errors,
)
from npuprof.renderers.trusting import trust_carried
from npuprof.report import Answer
from npuprof.report.findings import build_finding_dict
from npuprof.report.isolating import isolate_faults
from npuprof.report.text import format_count
from npuprof.scripts import blocks
from npuprof.scripts.adopting import (
    Adoption,
    Script,
    index_presets,
    list_drafts,
    list_planned_blocks,
    match_presets,
    plan_adoption,
    select_unmarked,
)
from npuprof.scripts.blocks import Injector
from npuprof.scripts.file_discovery import find_script_files, read_script_files
from npuprof.scripts.import_resolution import open_modules, set_callers_apart
from npuprof.scripts.launches import list_launches
from npuprof.scripts.preset_draft import Draft, Pair
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import import_script, may_call_settings, may_hold_settings
from npuprof.scripts.replacing.plan import detect_block_shell
from npuprof.scripts.shared_bases import Family, build_family
from npuprof.store import spec
from npuprof.store.folder import Folder
from npuprof.store.spec import Workspace
from npuprof.system import decode_safely, find_real_folder, writing
from npuprof.system.locks import lock_folders
from npuprof.system.writing import PlannedWrite


class _Proposal(Record):
    """The proposed presets of scripts, by name, their inheritance, and a renderer of blocks."""

    family: Family | None
    new: dict[str, NewFile]
    texts: dict[str, str]
    injector: Injector


class Adopt(Verb):
    """Move settings from scripts into presets.

    Each script gets a marked block in place of its settings. All presets and scripts are written
    together or not at all. A script keeps its lines if npuprof cannot verify that a block sets the
    same values.
    """

    usage_hint = "npuprof adopt src/ --dry-run shows the presets and the scripts as they would be."
    group = "scripts"

    paths = arguments("PATH...", "Scripts, or folders of scripts", required=True)
    under = option(
        "--under",
        metavar="NAME",
        text="Create the presets below NAME, as in NAME/bert-train [default: the top of the store]",
    )
    format = FORMAT
    dry_run = DRY_RUN
    strict = flag(
        "--strict", text="Exit with 1 if a script keeps lines that a preset could contain"
    )
    store = STORE
    trust = TRUST

    def run(self) -> Answer:
        """Return the result for each script. Exit 1 with ``strict`` if a script keeps its lines.

        Raises NpuprofError, and then writes nothing.
        """
        workspace = spec.Workspace(self.store)
        home = workspace.store
        below = f"{self.under.strip('/')}/" if self.under else ""
        if below:
            locate_new_file(home, below.rstrip("/"))  # reports what a name is
        problems: list[Finding] = []
        folders = [path for path in self.paths if os.path.isdir(path)]
        modules = open_modules(folders, with_sourced=False)
        kept: dict[str, list[Finding]] = {}
        scripts = self._read_scripts(problems, modules, kept)
        drafts, other_notes = self._list_drafts(scripts, workspace, problems)
        known = index_presets(workspace, problems)
        rest, standing = match_presets(drafts, known)
        proposal = self._propose(rest, below, known, home)
        rejected = _find_rejected(proposal.family, below, proposal.injector)
        # the presets share bases: without the rejected ones, they may look different
        if rejected:
            rest = [draft for draft in rest if draft.file not in rejected]
            standing = [(file, name) for file, name in standing if file not in rejected]
            proposal = self._propose(rest, below, known, home)
        script_folders = set(map(find_real_folder, scripts))
        with lock_folders([home.root, *script_folders]):
            adoption = plan_adoption(
                scripts,
                list_planned_blocks(proposal.family, below, standing),
                proposal.injector,
                lambda path: _require_writable(path, folders),
                modules,
            )
            adoption.unchanged.update(rejected | kept)
            writes = [
                file.build_wanted(proposal.texts[name].encode())
                for name, file in proposal.new.items()
            ]
            writes += _list_scripts(adoption, folders)
            if not self.dry_run:
                _write(home, proposal.new, writes)
                presets = [
                    Profile(parse_document(name, file.source, proposal.texts[name]), home=home)
                    for name, file in proposal.new.items()
                ]
                trust_carried(home, presets)
        sources = {
            f"{below}{leaf.name}": list(dict.fromkeys(source.file for source in leaf.sources))
            for leaf in (proposal.family.leaves if proposal.family else ())
        }
        has_all = bool(standing) and not rejected
        held = {draft.file for draft in drafts if draft.settings}
        stays = [note.remark for each in drafts if each.file not in held for note in each.notes]
        report = _Report(
            proposal.texts, sources, adoption, other_notes, stays, self.dry_run, has_all
        )
        problems += adoption.faults
        code = int(self.strict and bool(adoption.unchanged or other_notes))
        if select_errors(problems):
            code = 2
        if self.format == "json":
            return Answer({"json": report.build_fields}, code=code, problems=tuple(problems))
        text = _format_differences(writes) if self.dry_run else None
        return Answer(text, tuple(report.format_notes(home.label)), code, problems=tuple(problems))

    def _propose(
        self, drafts: list[Draft], below: str, known: Mapping[frozenset[Pair], str], home: Folder
    ) -> _Proposal:
        """Return the presets for drafts that equal no preset of the store.

        Raises NpuprofError if a name is taken.
        """
        family = None
        texts = {}
        if any(draft.settings for draft in drafts):
            family = build_family(drafts, below, known)
            texts = {f"{below}{name}": text for name, text in family.files.items()}
        new = _locate_presets(home, list(texts))
        opener = build_opener(
            home, {name: (file.source, texts[name]) for name, file in new.items()}
        )
        # unknown variables are trusted when the presets are written
        injector = Injector(None, self.trust, opener, with_unknown=True, checking=True)
        return _Proposal(family, new, texts, injector)

    def _read_scripts(
        self, problems: list[Finding], modules: Modules, kept: dict[str, list[Finding]]
    ) -> dict[str, Script]:
        """Return the scripts with settings, and add to ``kept`` those that take no block."""
        scripts = {}
        named = set(self.paths)
        files: dict[str, str] = {}
        for file in find_script_files(self.paths, problems, with_blocks=False):
            # a script reached by two names is edited once
            files.setdefault(os.path.realpath(file), file)  # by real path
        for file, data in read_script_files(list(files.values())):
            if isinstance(data, Finding):
                problems.append(data._replace(severity="error" if file in named else "warning"))
                continue
            with isolate_faults(file, problems):
                holds = file in named or may_hold_settings(file, data)
                if not holds and not may_call_settings(file, data, modules):
                    continue
                imported = import_script(file, data, modules=modules)
                if not holds and not imported.settings:
                    continue
                problems += [problem for problem in imported.problems if problem.severity != "info"]
                try:
                    detect_block_shell(file, data)
                    scripts[file] = Script(file, data, imported)
                except NpuprofError as error:
                    if data.startswith(b"# Generated by npuprof "):
                        continue
                    kept[file] = [
                        finding._replace(where=Place(file, launch.line))
                        for launch in list_launches(imported)
                        for finding in error.findings
                    ]
        return scripts

    def _list_drafts(
        self, scripts: dict[str, Script], workspace: Workspace, problems: list[Finding]
    ) -> tuple[list[Draft], dict[str, str]]:
        """Return the settings of scripts without a block, and notes on other scripts, by path.

        Files that the scripts name stay where they are. Raises NpuprofError.
        """
        exclude_passed, _ = set_callers_apart(script.imported for script in scripts.values())
        marked = {}
        for path, script in scripts.items():
            with isolate_faults(path, problems):
                marked[path] = blocks.find_blocks(path, script.data)
        drafts = list_drafts(
            {path: script for path, script in scripts.items() if path in marked},
            exclude_passed,
            problems,
        )
        return select_unmarked(drafts, lambda path: marked.get(path, []), workspace)


def _find_rejected(
    family: Family | None, below: str, injector: Injector
) -> dict[str, list[Finding]]:
    """Return the findings of presets that ``render`` would reject, by script.

    The findings are moved to the lines of the scripts.
    """
    rejected: dict[str, list[Finding]] = {}
    for leaf in family.leaves if family else ():
        try:
            require_exportable(injector.resolve_config(f"{below}{leaf.name}", {}))
        except NpuprofError as error:
            faults = select_errors(error.findings)
            for draft in leaf.drafts:
                rejected.setdefault(draft.file, []).extend(
                    _place_in_script(fault, draft) for fault in faults
                )
    return rejected


def _place_in_script(finding: Finding, draft: Draft) -> Finding:
    """Return a finding about a preset, moved to the lines of the script that set the values."""
    setting = draft.origins.get(finding.key) or next(iter(draft.origins.values()))
    # the other lines are of presets that are not written
    why = re.sub(
        r"(\S+) is set in .+?\d\.(?!\S)",
        lambda found: f"{found[1]} is set in {draft.origins.get(found[1], setting).file_line}.",
        finding.why,
    )
    where = Place(setting.file, setting.line, setting.column)
    return finding._replace(origin=None, profiles=(), where=where, why=why)


def _locate_presets(home: Folder, names: list[str]) -> dict[str, NewFile]:
    """Return the files of new presets. Raises NpuprofError if the store has one of their names."""
    files = {}
    problems = []
    for name in names:
        try:
            files[name] = locate_new_file(home, name)
            require_free_name(home, name)
            files[name].require_absent()
        except NpuprofError as error:
            hint = "put the new presets below another name, as with --under adopted"
            problems += [
                finding._replace(hint=hint) if finding.code == "NP923" else finding
                for finding in error.findings
            ]
    raise_any(dict.fromkeys(problems))
    return files


def _require_writable(path: str, folders: list[str]) -> None:
    """Raise NpuprofError for a read-only script, or a link that leads out of its folder."""
    target = writing.find_target(path, _find_folder(path, folders))
    # the folder too: the replacement is first written next to the old file
    folder = os.path.dirname(target) or os.curdir
    for what, location in ((path, target), (f"the folder of {path}", folder)):
        if not os.stat(location).st_mode & 0o222 or not os.access(location, os.W_OK):
            raise build_error(
                "NP830",
                f"{what} is read-only",
                "It stays as it is.",
                "make it writable first",
                where=Place(path),
            )


def _find_folder(path: str, folders: list[str]) -> str:
    """Return the first of some folders that contains a path, else an empty string."""
    for folder in folders:
        if folder == os.curdir or path.startswith(os.path.join(folder, "")):
            return folder
    return ""


def _list_scripts(adoption: Adoption, folders: list[str]) -> list[PlannedWrite]:
    """Return the new scripts; links may not lead out of a named folder."""
    return [
        PlannedWrite(script.path, script.data, script.known, _find_folder(script.path, folders))
        for script in adoption.adopted
        if script.data != script.known
    ]


def _write(home: Folder, new: dict[str, NewFile], writes: list[PlannedWrite]) -> None:
    """Write all files, or none, and then remove the new folders again."""
    folders = []
    for file in new.values():
        folders += writing.make_folder_below(os.path.dirname(file.path), file.folder)
    try:
        writing.write_planned_files(writes)
    except NpuprofError:
        # the innermost first: a folder with another in it is not empty
        for folder in sorted(folders, key=len, reverse=True):
            writing.remove_empty_folders(os.path.join(folder, "x"), home.root)
        raise


class _Report(Record):
    """The result of an adoption: new presets, their scripts, and notes on other scripts.

    ``stays`` are lines of scripts without presets, each with the reason. ``has_all`` means that,
    without new presets, the store has those of all scripts.
    """

    texts: dict[str, str]
    sources: dict[str, list[str]]
    adoption: Adoption
    other_notes: dict[str, str]
    stays: list[str]
    dry_run: bool
    has_all: bool

    def format_notes(self, store: str) -> list[str]:
        """Return the summary: unchanged scripts with reasons, new presets, adopted scripts."""
        adopted = self.adoption.adopted
        unchanged = self.adoption.unchanged
        notes = [
            f"{path}{f':{each.where.line}' if each.where and each.where.line else ''} keeps its "
            f"lines: {each.message}. {each.why}".rstrip()
            for path, findings in unchanged.items()
            for each in findings
        ]
        notes += [f"{path}: {what}" for path, what in self.other_notes.items()]
        stays = [note for script in adopted for note in script.notes] + self.stays
        notes += stays
        if not adopted and not any(unchanged.values()):
            what = "nothing else" if stays else "nothing"
            return [*notes, f"{what} in the scripts is written by hand that a preset could hold"]
        return [*notes, self._describe_counts(store)]

    def _describe_counts(self, store: str) -> str:
        """Return the numbers of presets, shared parts and adopted scripts as one sentence."""
        adopted = self.adoption.adopted
        unchanged = self.adoption.unchanged
        leaves = sum(name in self.texts for name in self.sources)
        verb = "would write" if self.dry_run else "wrote"
        done = f"{verb} no preset{f', as {store} has those of the scripts' * self.has_all}"
        if leaves:
            parts = len(self.texts) - leaves
            shared = f" and {format_count(parts, 'shared part')}" if parts else ""
            done = f"{verb} {format_count(leaves, 'preset')}{shared} below {store}"
        some = f"{len(adopted)} of {format_count(len(adopted) + len(unchanged), 'script')}"
        return f"{done}; generated blocks in {some}"

    def build_fields(self) -> Fields:
        """Return the adoption as the fields of the JSON form."""
        return {
            "schema": "npuprof.adopt/1",
            "written": not self.dry_run,
            "presets": [
                {"name": name, "scripts": self.sources.get(name, []), "text": text}
                for name, text in self.texts.items()
            ],
            "adopted": [
                {"file": item.path, "presets": list(item.presets), "stays": list(item.notes)}
                for item in self.adoption.adopted
            ],
            "kept": [
                {"file": path, "findings": [build_finding_dict(item) for item in findings]}
                for path, findings in self.adoption.unchanged.items()
            ],
            "stays": self.stays,
            "beside": [{"file": path, "what": what} for path, what in self.other_notes.items()],
        }


def _format_differences(writes: list[PlannedWrite]) -> str:
    return "".join(
        format_difference(
            file.path,
            decode_safely(file.known) if file.known else None,
            decode_safely(file.content or b""),
        )
        for file in writes
    )


VERB = Adopt
