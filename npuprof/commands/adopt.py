"""``adopt``: a tree of scripts to a family of presets, and in each script a block in the place of its lines."""

from __future__ import annotations

import os
from typing import Any

from npuprof.commands.parameters import DRY_RUN, STORE, TRUST, formats
from npuprof.commands.verb import Verb, arguments, flag, option
from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.report.answer import Answer
from npuprof.report.findings import build_finding_dict
from npuprof.report.text import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.edit.preset_file import NewFile
    from npuprof.report.writing import Wanted
    from npuprof.scripts.adopting import Adoption, Script
    from npuprof.scripts.family import Family
    from npuprof.store import Folder

_MOST_TOLD = 10


class Adopt(Verb):
    """Take the settings of existing scripts over: presets in the store, blocks in the scripts.

    Presets and scripts are written together or not at all. A script keeps its lines where it is not certain that a block would set the same.
    """

    usage_hint = "npuprof adopt src/ --dry-run shows the presets and the scripts as they would be."
    group = "scripts"
    undoable = True

    paths: list[str] = arguments("PATH...", "Scripts, or folders of them.", required=True)
    under: str | None = option("--under", metavar="NAME", text="Put the presets below this name: NAME/bert-train.")
    format: str = formats("text", "json")
    dry_run: bool = DRY_RUN
    strict: bool = flag("--strict", text="Exit 1 where a script keeps lines that a preset could hold.")
    store: str | None = STORE
    trust: bool = TRUST

    def run(self) -> Answer:
        """Return what becomes of the scripts. Exit 1 with ``strict`` where one keeps its lines. Raises NpuprofError, and writes nothing then."""
        from npuprof.report.locks import lock_folders
        from npuprof.scripts.adopting import build_opener, plan_adoption
        from npuprof.scripts.blocks import Injector
        from npuprof.store import spec

        home = spec.Workspace(self.store).store
        problems: list[Finding] = []
        scripts = self._read_scripts(problems)
        folders = [path for path in self.paths if os.path.isdir(path)]
        family, beside = self._build_family(scripts, folders)
        if family is None:
            remarks = [f"{path}: {what}" for path, what in beside.items()]
            return Answer(None, (*remarks, "nothing in the scripts is written by hand that a preset could hold"), problems=tuple(problems))
        new = self._locate_presets(home, family)
        texts = {name: (file.source, family.files[name]) for name, file in new.items()}
        with lock_folders([home.root, *{os.path.dirname(os.path.realpath(path)) for path in scripts}]):
            injector = Injector(self.store, trusting=self.trust, open_store=build_opener(self.store, texts))
            adoption = plan_adoption(scripts, family, injector, folders)
            wanted = self._list_wanted(new, family, adoption, folders)
            if not self.dry_run:
                self._write(home, new, wanted)
        told = _Told(family, adoption, beside, self.dry_run)
        code = int(self.strict and bool(adoption.kept or beside))
        shown = _format_differences(wanted) if self.dry_run else None
        text = {"json": lambda: told.build_fields()} if self.format == "json" else shown
        remarks = [] if self.format == "json" else told.format_remarks(home.label)
        return Answer(text, tuple(remarks), code, problems=tuple(problems))

    def _read_scripts(self, problems: list[Finding]) -> dict[str, Script]:
        from npuprof.model import Place
        from npuprof.report.terminal import track_items
        from npuprof.scripts.adopting import Script
        from npuprof.scripts.files import find_script_files
        from npuprof.scripts.reading import import_script, may_hold_settings

        found: dict[str, Script] = {}
        named = set(self.paths)
        for file in track_items(list(find_script_files(self.paths, problems)), "files"):
            try:
                data = output.read_plain_file(file)
            except OSError as error:
                what = f"cannot read the file: {output.describe_os_error(error, file)}"
                severity = "error" if file in named else "warning"
                problems.append(Finding("NP801", what, "", "check the path", where=Place(file), severity=severity))
                continue
            if file in named or may_hold_settings(file, data):
                found[file] = Script(file, data, import_script(file, data))
                problems += found[file].imported.problems
        return found

    def _build_family(self, scripts: dict[str, Script], folders: list[str]) -> tuple[Family | None, dict[str, str]]:
        """Return the family of what no block stands for yet, None where there is nothing, and what stands beside blocks."""
        from npuprof.scripts import blocks
        from npuprof.scripts.adopting import select_unmarked
        from npuprof.scripts.family import build_family
        from npuprof.scripts.preset import build_drafts

        drafts = [draft for script in scripts.values() for draft in build_drafts(script.imported, None, folders) if draft.settings]
        marked = {path: blocks.find_blocks(path, script.data) for path, script in scripts.items()}
        due, beside = select_unmarked(drafts, lambda path: marked.get(path, []))
        if not due:
            return None, beside
        family = build_family(due, f"{self.under}/" if self.under else "")
        if not family.is_proven:
            raise RuntimeError("a leaf of the family does not resolve as before")
        return family, beside

    def _locate_presets(self, home: Folder, family: Family) -> dict[str, NewFile]:
        """Return where the presets go. Raises NpuprofError where the store has one of these names."""
        from npuprof.edit.preset_file import locate_new_file, refuse_taken_name

        found: dict[str, NewFile] = {}
        problems: list[Finding] = []
        for name in family.files:
            try:
                found[name] = locate_new_file(home, name)
                refuse_taken_name(home, name)
                found[name].refuse_existing()
            except NpuprofError as error:
                hint = f"put the new ones below a name: --under {'more' if self.under else 'adopted'}"
                problems += [one._replace(hint=hint) if one.code == "NP923" else one for one in error.findings]
        if problems:
            raise NpuprofError(problems)
        return found

    def _list_wanted(self, new: dict[str, NewFile], family: Family, adoption: Adoption, folders: list[str]) -> list[Wanted]:
        from npuprof.report.writing import Wanted

        presets = [file.build_wanted(family.files[name].encode()) for name, file in new.items()]
        below = {one.path: next((top for top in folders if one.path.startswith(os.path.join(top, ""))), "") for one in adoption.adopted}
        return [*presets, *(Wanted(one.path, one.data, one.known, below[one.path]) for one in adoption.adopted)]

    def _write(self, home: Folder, new: dict[str, NewFile], wanted: list[Wanted]) -> None:
        from npuprof.report import writing

        made: list[str] = []
        for file in new.values():
            made += writing.make_folder_below(os.path.dirname(file.path), file.folder)
        try:
            writing.write_wanted_files(wanted)
        except NpuprofError:
            for folder in sorted(made, key=len, reverse=True):
                writing.remove_empty_folders(os.path.join(folder, "x"), home.root)
            raise


class _Told:
    """What an adoption comes to, for people and for programs."""

    def __init__(self, family: Family, adoption: Adoption, beside: dict[str, str], dry_run: bool) -> None:
        self.family, self.adoption, self.beside, self.dry_run = family, adoption, beside, dry_run

    def format_remarks(self, store: str) -> list[str]:
        """Return the summary: what was made, which scripts take part, which keep their lines and why."""
        adopted, kept = self.adoption.adopted, self.adoption.kept
        told: list[str] = []
        for path, findings in list(kept.items())[:_MOST_TOLD]:
            one = findings[0]
            line = f":{one.where.line}" if one.where and one.where.line else ""
            told.append(f"{path}{line} keeps its lines: {one.message}. {one.why}".rstrip())
        if len(kept) > _MOST_TOLD:
            told.append(f"and {len(kept) - _MOST_TOLD} more keep theirs, which --format json lists")
        told += [f"{path}: {what}" for path, what in list(self.beside.items())[:_MOST_TOLD]]
        stays = sum(len(one.remarks) for one in adopted)
        if stays:
            told.append(f"{format_count(stays, 'line')} in scripts with blocks {'stays' if stays == 1 else 'stay'}: --format json lists them")
        leaves = len(self.family.leaves)
        shared = len(self.family.files) - leaves
        made = f"{format_count(leaves, 'preset')} for {format_count(len(adopted) + len(kept), 'script')}"
        parts = f" and {format_count(shared, 'shared part')}" if shared else ""
        verb = "would write" if self.dry_run else "wrote"
        told.append(f"{verb} {made}{parts} below {store}; {format_count(len(adopted), 'script')} {_take(len(adopted))} settings from blocks")
        return told

    def build_fields(self) -> dict[str, Any]:
        """Return the adoption as the fields of the JSON form."""
        leaves = {leaf.name: [source.file for source in leaf.sources] for leaf in self.family.leaves}
        return {
            "schema": "npuprof.adopt/1",
            "written": not self.dry_run,
            "presets": [{"name": name, "scripts": leaves.get(name, []), "text": text} for name, text in self.family.files.items()],
            "adopted": [{"file": one.path, "presets": list(one.presets), "stays": list(one.remarks)} for one in self.adoption.adopted],
            "kept": [{"file": path, "findings": [build_finding_dict(one) for one in found]} for path, found in self.adoption.kept.items()],
            "beside": [{"file": path, "what": what} for path, what in self.beside.items()],
        }


def _take(count: int) -> str:
    return "takes its" if count == 1 else "take their"


def _format_differences(wanted: list[Wanted]) -> str:
    from npuprof.edit.preset_file import format_difference

    shown = []
    for one in wanted:
        before = one.known.decode(errors="replace") if one.known else None
        shown.append(format_difference(one.path, before, (one.content or b"").decode(errors="replace")))
    return "".join(shown)


VERB = Adopt
