"""Moves the settings of many scripts into presets, and replaces them by blocks.

A script whose block is not provably equivalent keeps its lines, with the reason; the presets and
all other scripts are written together or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report.isolating import isolate_faults
from npuprof.scripts import blocks
from npuprof.scripts.blocks import Injector
from npuprof.scripts.preset import build_drafts, leave_to_commands
from npuprof.scripts.preset_draft import Draft, Pair, list_pairs
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import import_script
from npuprof.scripts.replacing.plan import plan_replacement
from npuprof.scripts.replacing.proof import find_differences
from npuprof.scripts.script_records import ImportedFile
from npuprof.scripts.shared_bases import Family
from npuprof.store import spec


class Script(Record):
    """A script and its parsed content."""

    path: str
    data: bytes
    imported: ImportedFile


class Adopted(Record):
    """A script with generated blocks.

    ``presets`` are the names of their presets, ``data`` and ``known`` its new and old content,
    ``notes`` the reasons for lines that stay.
    """

    path: str
    presets: tuple[str, ...]
    data: bytes
    known: bytes
    notes: tuple[str, ...]


class Adoption(Record):
    """The result for scripts: those with blocks, those that are unchanged, and internal errors.

    ``unchanged`` scripts have the reasons why they keep their lines.
    """

    adopted: list[Adopted]
    unchanged: dict[str, list[Finding]]
    faults: list[Finding]


def list_drafts(
    scripts: Mapping[str, Script],
    exclude_passed: Callable[[ImportedFile], ImportedFile],
    problems: list[Finding],
) -> list[Draft]:
    """Return the settings of scripts, without those that ``exclude_passed`` gives to callers.

    Settings that a script has only by calling another script's functions belong to that one: only
    there a block is possible.
    """
    complete = {}  #: with the settings that callers have too
    own = {}
    for path, script in scripts.items():
        with isolate_faults(path, problems):
            imported = leave_to_commands(script.imported)
            rest = exclude_passed(imported)
            # exclude_passed returns the same object for a file that nothing calls
            if rest is not imported:
                complete[path] = build_drafts(imported, None)
            own[path] = build_drafts(rest, None)
    path_of_file = {
        os.path.normpath(path): path
        for path, drafts in complete.items()
        if any(draft.settings for draft in drafts)
    }

    def list_called(drafts: Iterable[Draft]) -> set[str]:
        """Return the scripts that contain all settings of one of the drafts."""
        called: set[str] = set()
        for draft in drafts:
            files = {
                # the empty path is in no table, so one line of the script keeps the draft its own
                os.path.normpath(origin.file) if origin.location.call else ""
                for origin in draft.origins.values()
            }
            if files <= path_of_file.keys():
                called.update(path_of_file[file] for file in files)
        return called

    helpers = set()
    called = set().union(*map(list_called, own.values()))
    # a helper may have its settings by calling another one; known ones end a cycle of callers
    while called:
        helpers |= called
        called = set().union(*(list_called(complete[path]) for path in called)) - helpers
    listed = []
    for path, drafts in own.items():
        candidates = complete[path] if path in helpers else drafts
        listed += [draft for draft in candidates if not list_called([draft])]
    return listed


def select_unmarked(
    drafts: Iterable[Draft], marked: Callable[[str], list[blocks.Block]], workspace: spec.Workspace
) -> tuple[list[Draft], dict[str, str]]:
    """Return the drafts without a block, and notes for scripts with lines outside their block.

    Lines that the block's preset covers need no note: another surface contains them.
    """
    unmarked = []
    notes = {}
    for draft in drafts:
        origins = draft.origins.values()
        specs = {
            origin.key: block.spec
            for origin in origins
            for block in marked(origin.file)
            if block.has_line(origin.line)
        }
        if not specs:
            unmarked.append(draft)
            continue
        block = next(iter(specs.values()))
        known: frozenset[Pair] = frozenset()
        with suppress(NpuprofError):  # check reports it
            known = list_pairs(workspace.resolve_spec(block).settings)
        outside = [
            origin
            for origin in origins
            if origin.key not in specs
            and list_pairs({origin.key: draft.settings[origin.key]}) - known
        ]
        if outside:
            lines = ", ".join(str(origin.line) for origin in outside[:5])
            notes[draft.file] = (
                f"lines {lines} set more outside the block of {block}: move them into that preset"
            )
    return unmarked, notes


def list_planned_blocks(
    family: Family | None, below: str, existing: list[tuple[str, str]]
) -> dict[str, dict[str, None]]:
    """Return the presets for the blocks of each script: existing ones, and new ones.

    ``existing`` are pairs of a script and a preset; new presets are in the folder ``below``.
    """
    planned: dict[str, dict[str, None]] = {}
    for file, name in existing:
        planned.setdefault(file, {})[name] = None
    for leaf in family.leaves if family else ():
        for source in leaf.sources:
            planned.setdefault(source.file, {})[f"{below}{leaf.name}"] = None
    return planned


def index_presets(workspace: spec.Workspace, problems: list[Finding]) -> dict[frozenset[Pair], str]:
    """Return the presets of a store without overrides, by their settings."""
    known: dict[frozenset[Pair], str] = {}
    for name in workspace.store.names():
        with (
            suppress(NpuprofError),
            isolate_faults(workspace.store.cite_file(f"{name}.toml"), problems, name),
        ):  # check reports it
            if not workspace.profile(name).overrides:
                known.setdefault(list_pairs(workspace.resolve_spec(name).settings), name)
    return known


def match_presets(
    drafts: Iterable[Draft], known: Mapping[frozenset[Pair], str]
) -> tuple[list[Draft], list[tuple[str, str]]]:
    """Return the drafts that equal no preset of the store, and the scripts of the others.

    Each of these scripts is paired with the name of its preset.
    """
    unmatched = []
    existing = []
    for draft in drafts:
        # a draft without settings would equal every empty preset
        name = known.get(list_pairs(draft.settings), "") if draft.settings else ""
        if name:
            existing += [(source.file, name) for source in draft.sources]
        else:
            unmatched.append(draft)
    return unmatched, existing


def plan_adoption(
    scripts: dict[str, Script],
    planned: Mapping[str, Iterable[str]],
    injector: Injector,
    check_writable: Callable[[str], None],
    modules: Modules,
) -> Adoption:
    """Return the result for scripts that get blocks of the ``planned`` presets.

    ``check_writable`` raises NpuprofError for a script that cannot be written.
    """
    result = Adoption([], {}, [])
    for path, names in planned.items():
        failed: list[Finding] = []
        # NpuprofError is a reason to keep the lines; any other exception is an internal error
        try:
            with isolate_faults(path, failed):
                check_writable(path)
                result.adopted.append(_adopt_script(scripts[path], names, injector, modules))
        except NpuprofError as error:
            result.unchanged[path] = list(error.findings)
        if failed:
            result.unchanged[path] = failed
        result.faults.extend(failed)
    return _exclude_changed_callees(result, scripts, modules)


def _exclude_changed_callees(
    adoption: Adoption, scripts: Mapping[str, Script], modules: Modules
) -> Adoption:
    """Return an adoption without blocks in scripts whose callers would get other settings."""
    texts = {script.path: script.data for script in adoption.adopted}
    path_of_file = {os.path.normpath(path): path for path in texts}
    # with all blocks at once: only then each caller is read as it will be
    modules_with_blocks = modules.replace_texts(texts)
    excluded = {}
    faults = list(adoption.faults)
    for script in scripts.values():
        files = {os.path.normpath(followed.file) for followed in script.imported.followed}
        called = {path_of_file[file] for file in files & path_of_file.keys()}
        if not called:
            continue
        failed: list[Finding] = []
        with isolate_faults(script.path, failed):
            text = texts.get(script.path, script.data)
            now = import_script(script.path, text, modules=modules_with_blocks)
            if difference := next(find_differences(script.imported, now), ""):
                what = "a block in it would change the settings of another script"
                why = f"{script.path} uses it, where {difference}."
                hint = "write the value where it is used"
                for path in called:
                    excluded[path] = [Finding("NP830", what, why, hint, where=Place(path))]
        if failed:
            excluded |= dict.fromkeys(called, failed)
        faults += failed
    adopted = [script for script in adoption.adopted if script.path not in excluded]
    return Adoption(adopted, adoption.unchanged | excluded, list(dict.fromkeys(faults)))


def _adopt_script(
    script: Script, names: Iterable[str], injector: Injector, modules: Modules
) -> Adopted:
    """Return a script with a block for each of its presets.

    Raises NpuprofError if a block cannot replace its lines.
    """
    data, imported = script.data, script.imported
    notes: dict[str, None] = {}
    for name in names:
        replacement = plan_replacement(data, name, injector, {}, modules, imported)
        notes |= dict.fromkeys(replacement.notes)
        imported = replacement.now
        if replacement.file is not None:
            data = blocks.replace_blocks(replacement.file.data, replacement.file.changes)
    return Adopted(script.path, tuple(names), data, script.data, tuple(notes))
