"""Scripts adopted as a whole: a family of presets of all of them, and in each script a block in place of its lines.

A script whose lines cannot be proven to be the preset keeps them, with the reason; the presets and all the others are written
together or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report.isolating import isolate_faults
from npuprof.scripts import blocks
from npuprof.scripts.blocks import Injector
from npuprof.scripts.draft import Draft
from npuprof.scripts.family import Family
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import import_script
from npuprof.scripts.reading.found import ImportedFile
from npuprof.scripts.reading.modules import Modules
from npuprof.scripts.replacing.plan import plan_replacement
from npuprof.scripts.replacing.proof import find_differences
from npuprof.scripts.sharing import Pair, list_pairs
from npuprof.store import spec


class Script(Record):
    """A script as it was read, and what was found in it."""

    path: str
    data: bytes
    imported: ImportedFile


class Adopted(Record):
    """A script that uses generated blocks: the names of their presets, its new bytes and its old ones, remarks on lines that stay."""

    path: str
    presets: tuple[str, ...]
    data: bytes
    known: bytes
    remarks: tuple[str, ...] = ()


class Adoption(Record):
    """What becomes of scripts: those with blocks, for each that keeps its lines the reason, and where npuprof failed."""

    adopted: list[Adopted]
    kept: dict[str, list[Finding]]
    faults: list[Finding]


def list_drafts(scripts: Mapping[str, Script], take_out: Callable[[ImportedFile], ImportedFile], problems: list[Finding]) -> list[Draft]:
    """Return what scripts set: each by itself, without what ``take_out`` finds to belong to those that call its functions.

    What a script has only by calling functions of another of the scripts is of that one: a block can be there only.
    """
    whole: dict[str, list[Draft]] = {}
    own: dict[str, list[Draft]] = {}
    for path, script in scripts.items():
        with isolate_faults(path, problems):
            rest = take_out(script.imported)
            whole |= {path: build_drafts(script.imported, None, None)} if rest is not script.imported else {}
            own[path] = build_drafts(rest, None, None)
    holders = {os.path.normpath(path): path for path, drafts in whole.items() if any(draft.settings for draft in drafts)}
    helpers: set[str] = set()
    while True:
        found: list[Draft] = []
        called: set[str] = set()
        for path in own:
            for draft in whole[path] if path in helpers else own[path]:
                places = {os.path.normpath(one.file) if one.call else "" for one in draft.origins.values()}
                if places and places <= holders.keys():
                    called |= {holders[place] for place in places}
                else:
                    found.append(draft)
        if called <= helpers:
            return found
        helpers |= called


def select_unmarked(
    drafts: Iterable[Draft], marked: Callable[[str], list[blocks.Block]], workspace: spec.Workspace
) -> tuple[list[Draft], dict[str, str]]:
    """Return the drafts that have no block yet, and for scripts with lines outside of their block what to do about them.

    What the preset of the block has as well needs nothing to be done: another surface of it says so.
    """
    found: list[Draft] = []
    beside: dict[str, str] = {}
    for draft in drafts:
        inside = {one.key for one in draft.origins.values() if _find_block(marked(one.file), one.line)}
        if not inside:
            found.append(draft)
        elif outside := [one for one in draft.origins.values() if one.key not in inside]:
            block = next(block for one in draft.origins.values() if (block := _find_block(marked(one.file), one.line)))
            known = _list_preset_pairs(workspace, block)
            if outside := [one for one in outside if list_pairs({one.key: draft.settings[one.key]}) - known]:
                lines = ", ".join(str(one.line) for one in outside[:5])
                beside[draft.file] = f"lines {lines} set more beside the block of {block}: move them into that preset"
    return found, beside


def _list_preset_pairs(workspace: spec.Workspace, name: str) -> frozenset[Pair]:
    try:
        return list_pairs(workspace.resolve_spec(name).settings)
    except NpuprofError:
        return frozenset()  # check reports it


def _find_block(found: list[blocks.Block], line: int) -> str:
    return next((block.spec for block in found if block.first < line <= block.last), "")


def list_wanted_blocks(family: Family | None, below: str, standing: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the presets that each script is to have blocks of: those of the family, and those that the store has."""
    wanted = {file: list(names) for file, names in standing.items()}
    for leaf in family.leaves if family else ():
        for source in leaf.sources:
            names = wanted.setdefault(source.file, [])
            if f"{below}{leaf.name}" not in names:
                names.append(f"{below}{leaf.name}")
    return wanted


def index_presets(workspace: spec.Workspace, problems: list[Finding]) -> dict[frozenset[Pair], str]:
    """Return the presets of a store without overrides, by what they set."""
    known: dict[frozenset[Pair], str] = {}
    for name in workspace.store.names():
        try:
            with isolate_faults(workspace.store.cite_file(f"{name}.toml"), problems, name):
                if not workspace.profile(name).overrides:
                    known.setdefault(list_pairs(workspace.resolve_spec(name).settings), name)
        except NpuprofError:
            continue  # check reports it
    return known


def find_standing(drafts: Iterable[Draft], known: Mapping[frozenset[Pair], str]) -> tuple[list[Draft], dict[str, list[str]]]:
    """Return the drafts that no preset of the store equals, and for scripts the presets that do."""
    rest: list[Draft] = []
    standing: dict[str, list[str]] = {}
    for draft in drafts:
        name = known.get(list_pairs(draft.settings), "") if draft.settings else ""
        if not name:
            rest.append(draft)
        for source in draft.sources if name else ():
            names = standing.setdefault(source.file, [])
            names += [name] if name not in names else []
    return rest, standing


def plan_adoption(
    scripts: dict[str, Script],
    wanted: dict[str, list[str]],
    injector: Injector,
    folders: Sequence[str],
    refuse: Callable[[str], None],
    modules: Modules | None = None,
) -> Adoption:
    """Return what becomes of scripts that are to have blocks of some presets.

    ``refuse`` raises NpuprofError for a script that cannot be written.
    """
    adopted: list[Adopted] = []
    kept: dict[str, list[Finding]] = {}
    faults: list[Finding] = []
    for path, names in wanted.items():
        failed: list[Finding] = []
        try:
            with isolate_faults(path, failed):
                refuse(path)
                adopted.append(_adopt_script(scripts[path], names, injector, folders, modules))
        except NpuprofError as error:
            kept[path] = list(error.findings)
        kept |= {path: failed} if failed else {}
        faults += failed
    return _settle_callers(Adoption(adopted, kept, faults), scripts, modules)


def _settle_callers(adoption: Adoption, scripts: Mapping[str, Script], modules: Modules | None) -> Adoption:
    """Return an adoption in which no script that calls functions of another sets anything else for the blocks in that one."""
    adopted, kept, faults = list(adoption.adopted), dict(adoption.kept), list(adoption.faults)
    while modules is not None:
        texts = {one.path: one.data for one in adopted}
        files = {os.path.normpath(path): path for path in texts}
        shown = modules.lay_over(texts)
        spoilt: dict[str, list[Finding]] = {}
        for script in scripts.values():
            called = {files[name] for one in script.imported.followed if (name := os.path.normpath(one.file)) in files}
            if not called:
                continue
            failed: list[Finding] = []
            with isolate_faults(script.path, failed):
                now = import_script(script.path, texts.get(script.path, script.data), modules=shown)
                for difference in list(find_differences(script.imported, now))[:1]:
                    why = f"{script.path} uses it, where {difference}."
                    for path in called:
                        what = "a block in it would change what another script sets"
                        spoilt[path] = [Finding("NP830", what, why, "write the value where it is used", where=Place(path))]
            spoilt |= dict.fromkeys(called, failed) if failed else {}
            faults += failed
        if not spoilt:
            break
        adopted = [one for one in adopted if one.path not in spoilt]
        kept |= spoilt
    return Adoption(adopted, kept, list(dict.fromkeys(faults)))


def _adopt_script(script: Script, names: list[str], injector: Injector, folders: Sequence[str], modules: Modules | None = None) -> Adopted:
    """Return a script with a block for each of its presets. Raises NpuprofError where one of them cannot replace its lines."""
    data, imported = script.data, script.imported
    remarks: dict[str, None] = {}
    for name in names:
        found = plan_replacement(script.path, data, name, injector, {}, folders, modules, imported)
        remarks |= dict.fromkeys(found.remarks)
        imported = found.now
        if found.file is not None:
            changes = found.file.changes
            data = blocks.replace_blocks(found.file.data, changes, {change.block.first: name for change in changes})
    return Adopted(script.path, tuple(names), data, script.data, tuple(remarks))
