"""Moves the settings of many scripts into presets, and replaces them by blocks.

A script whose block is not provably equivalent keeps its lines, with the reason; the presets and
all other scripts are written together or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from operator import itemgetter

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report.isolating import isolate_faults
from npuprof.scripts import blocks
from npuprof.scripts.blocks import Injector
from npuprof.scripts.grouping import group_by
from npuprof.scripts.preset import build_drafts
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
    """A script with generated blocks: the names of their presets, its new and old content, notes on
    lines that stay.
    """

    path: str
    presets: tuple[str, ...]
    data: bytes
    known: bytes
    notes: tuple[str, ...] = ()


class Adoption(Record):
    """The result for scripts: those with blocks, reasons of those that keep their lines, and
    internal errors.
    """

    adopted: list[Adopted]
    kept: dict[str, list[Finding]]
    faults: list[Finding]


def list_drafts(
    scripts: Mapping[str, Script],
    take_out: Callable[[ImportedFile], ImportedFile],
    problems: list[Finding],
) -> list[Draft]:
    """Return the settings of scripts, each without those that ``take_out`` assigns to its callers.

    Settings that a script has only by calling another script's functions belong to that one: only
    there a block is possible.
    """
    whole: dict[str, list[Draft]] = {}
    own: dict[str, list[Draft]] = {}
    for path, script in scripts.items():
        with isolate_faults(path, problems):
            rest = take_out(script.imported)
            whole |= (
                {path: build_drafts(script.imported, None)} if rest is not script.imported else {}
            )
            own[path] = build_drafts(rest, None)
    holders = {
        os.path.normpath(path): path
        for path, drafts in whole.items()
        if any(draft.settings for draft in drafts)
    }

    def list_called(draft: Draft) -> set[str]:
        """Return the scripts of a draft's settings if all are from other scripts, else
        an empty set.
        """
        places = {
            os.path.normpath(origin.file) if origin.location.call else ""
            for origin in draft.origins.values()
        }
        return {holders[place] for place in places} if places <= holders.keys() else set()

    helpers: set[str] = set()
    called = {path for drafts in own.values() for draft in drafts for path in list_called(draft)}
    while called:
        helpers |= called
        called = {
            path for helper in called for draft in whole[helper] for path in list_called(draft)
        } - helpers
    return [
        draft
        for path in own
        for draft in (whole if path in helpers else own)[path]
        if not list_called(draft)
    ]


def select_unmarked(
    drafts: Iterable[Draft], marked: Callable[[str], list[blocks.Block]], workspace: spec.Workspace
) -> tuple[list[Draft], dict[str, str]]:
    """Return the drafts without a block, and notes for scripts with lines outside their block.

    Lines that the block's preset covers need no note: another surface contains them.
    """
    unmarked = []
    beside = {}
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
        if more := [
            one
            for one in origins
            if one.key not in specs and list_pairs({one.key: draft.settings[one.key]}) - known
        ]:
            lines = ", ".join(str(origin.line) for origin in more[:5])
            beside[draft.file] = (
                f"lines {lines} set more outside the block of {block}: move them into that preset"
            )
    return unmarked, beside


def list_wanted_blocks(
    family: Family | None, below: str, standing: list[tuple[str, str]]
) -> dict[str, dict[str, None]]:
    """Return the presets for the blocks of each script: existing ones, and new ones."""
    new = (
        (source.file, f"{below}{leaf.name}")
        for leaf in (family.leaves if family else ())
        for source in leaf.sources
    )
    return {
        file: dict.fromkeys(name for _, name in rows)
        for file, rows in group_by((*standing, *new), itemgetter(0)).items()
    }


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


def find_standing(
    drafts: Iterable[Draft], known: Mapping[frozenset[Pair], str]
) -> tuple[list[Draft], list[tuple[str, str]]]:
    """Return the drafts that equal no preset of the store, and the scripts of the others with their
    presets.
    """
    named = [
        (draft, known.get(list_pairs(draft.settings), "") if draft.settings else "")
        for draft in drafts
    ]
    return [draft for draft, name in named if not name], [
        (source.file, name) for draft, name in named if name for source in draft.sources
    ]


def plan_adoption(
    scripts: dict[str, Script],
    wanted: Mapping[str, Iterable[str]],
    injector: Injector,
    refuse: Callable[[str], None],
    modules: Modules,
) -> Adoption:
    """Return the result for scripts that get blocks of some presets.

    ``refuse`` raises NpuprofError for a script that cannot be written.
    """
    result = Adoption([], {}, [])
    for path, names in wanted.items():
        failed: list[Finding] = []
        try:
            with isolate_faults(path, failed):
                refuse(path)
                result.adopted.append(_adopt_script(scripts[path], names, injector, modules))
        except NpuprofError as error:
            result.kept[path] = list(error.findings)
        result.kept.update({path: failed} if failed else {})
        result.faults.extend(failed)
    return _settle_callers(result, scripts, modules)


def _settle_callers(
    adoption: Adoption, scripts: Mapping[str, Script], modules: Modules
) -> Adoption:
    """Return an adoption in which callers of another script's functions keep their settings despite
    its blocks.
    """
    texts = {script.path: script.data for script in adoption.adopted}
    files = {os.path.normpath(path): path for path in texts}
    shown = modules.lay_over(texts)
    is_truncated: dict[str, list[Finding]] = {}
    faults = list(adoption.faults)
    for script in scripts.values():
        called = {
            files[name]
            for followed in script.imported.followed
            if (name := os.path.normpath(followed.file)) in files
        }
        failed: list[Finding] = []
        with isolate_faults(script.path, failed):
            now = (
                import_script(script.path, texts.get(script.path, script.data), modules=shown)
                if called
                else script.imported
            )
            if difference := next(find_differences(script.imported, now), ""):
                what, why = (
                    "a block in it would change the settings of another script",
                    f"{script.path} uses it, where {difference}.",
                )
                is_truncated |= {
                    path: [
                        Finding(
                            "NP830",
                            what,
                            why,
                            "write the value where it is used",
                            where=Place(path),
                        )
                    ]
                    for path in called
                }
        is_truncated |= dict.fromkeys(called, failed) if failed else {}
        faults += failed
    adopted = [script for script in adoption.adopted if script.path not in is_truncated]
    return Adoption(adopted, adoption.kept | is_truncated, list(dict.fromkeys(faults)))


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
