"""Which configurations of a file a preset equals, and the blocks that take the place of their lines; proven before anything is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from npuprof.catalog.values import is_equivalent_setting
from npuprof.document.keys import format_short_value, split_section_and_name
from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.resolve.config import Config
from npuprof.scripts import blocks
from npuprof.scripts.block_files import FileBlocks
from npuprof.scripts.blocks import Block, Injector, RefreshedBlock
from npuprof.scripts.draft import Draft
from npuprof.scripts.following import open_modules
from npuprof.scripts.obstacles import read_preset_value
from npuprof.scripts.preset import build_drafts, build_site_drafts
from npuprof.scripts.reading import import_script
from npuprof.scripts.reading.files import KINDS, detect_script_kind, is_shell_kind
from npuprof.scripts.reading.found import FoundSetting, ImportedFile
from npuprof.scripts.reading.modules import Modules
from npuprof.scripts.replacing.atc import plan_flags
from npuprof.scripts.replacing.calls import plan_arguments
from npuprof.scripts.replacing.cuts import Stand, build_refusal, open_stands
from npuprof.scripts.replacing.proof import find_differences
from npuprof.scripts.replacing.python import PythonFile, plan_assignments
from npuprof.scripts.replacing.shell import plan_exports

#: For each surface the target of its block, and the sections that it sets.
_SURFACES = {
    "session": ("session", ("options",)),
    "run_config": ("estimator", ("options", "estimator")),
    "global_options": ("global-options", ("options",)),
    "env": ("env", ("env",)),
    "atc": ("atc", ("options", "atc")),
}
_MOST_DIFFERENCES = 5


class Replacement(Record):
    """What becomes of a file: its blocks as ``block_files`` writes them. Without ``file`` nothing is left to replace.

    ``remarks`` are on lines that stay, ``others`` on whole configurations that do. ``now`` is what the file holds then.
    """

    file: FileBlocks | None
    now: ImportedFile
    remarks: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class _Difference(Record):
    """A key that a preset and a script do not say alike, and whether the script leaves it to the preset."""

    text: str
    in_preset_only: bool = False


class _Candidate(Record):
    """A configuration that stands in a script by hand, and how the preset differs from it."""

    scope: str
    surface: str
    draft: Draft
    differences: tuple[_Difference, ...]

    @property
    def is_part_of_preset(self) -> bool:
        """Whether it sets nothing that the preset does not set."""
        return all(one.in_preset_only for one in self.differences)


def plan_replacement(
    path: str,
    data: bytes,
    spec: str,
    injector: Injector,
    given: dict[str, str],
    folders: Sequence[str] = (),
    modules: Modules | None = None,
    before: ImportedFile | None = None,
) -> Replacement:
    """Return the file with a block of the preset in place of each configuration that equals it.

    ``modules`` are the files that it may import, those of the folders or of the repository otherwise; ``before`` is what it holds,
    where that is known. Raises NpuprofError: NP830
    where no configuration equals the preset, where one cannot be taken out, or where it is not certain that the script would set the
    same.
    """
    kind = KINDS.get(detect_script_kind(path, data), KINDS["python"])
    if not kind.holds_blocks:
        raise build_refusal(path, "a block stands in Python and shell scripts only", f"{path} is none of them ({kind.shown}).")
    modules = modules or open_modules(folders)
    before = before or import_script(path, data, modules=modules)
    marked = blocks.find_blocks(path, data)
    candidates = _list_candidates(path, before, marked, spec, injector, given, folders)
    equal = [one for one in candidates if not one.differences]
    if not equal:
        if any(block.spec == spec for block in marked):
            return Replacement(None, before, others=_tell_others(candidates))
        _refuse_foreign_lines(path, spec, [one for one in candidates if one.is_part_of_preset])
        _refuse_spread_lines(path, before, candidates, spec, injector, given)
        raise _build_mismatch(path, before, candidates, spec)
    _refuse_foreign_lines(path, spec, equal)
    file = None if equal[0].surface in ("env", "atc") else PythonFile(path, data)
    stands = [_plan_python(file, one, before) for one in equal] if file else _plan_shell(path, data, before, equal)
    opened, lines = open_stands(data, stands)
    fresh = [block for block in blocks.find_blocks(path, opened) if block.first in set(lines)]
    ordered = sorted(stands, key=lambda stand: stand.start)
    changes = [injector.refresh_block(block, {**stand.facts, **given}, spec) for block, stand in zip(fresh, ordered, strict=True)]
    _refuse_sidecars(path, changes)
    after = blocks.replace_blocks(opened, changes, {change.block.first: spec for change in changes})
    now = import_script(path, after, modules=modules)
    _prove_equal(path, before, now)
    if file is not None:
        _check_names(file, ordered, changes)
    remarks = (*(remark for stand in stands for remark in stand.left), *_tell_python_env(before))
    return Replacement(FileBlocks(data, opened, changes), now, remarks, _tell_others(candidates))


def _list_candidates(
    path: str, imported: ImportedFile, marked: list[Block], spec: str, injector: Injector, given: dict[str, str], folders: Sequence[str]
) -> list[_Candidate]:
    shell = is_shell_kind(path, b"") or bool(blocks.detect_shell(path, b""))
    found: list[_Candidate] = []
    for scope, draft in build_site_drafts(imported, None).items():
        surface = next(iter(draft.surfaces), "")
        standing = [one for one in draft.carried if one.call or not any(block.first < one.line <= block.last for block in marked)]
        if not standing or surface not in _SURFACES or (surface == "env" and not shell):
            continue
        target, sections = _SURFACES[surface]
        config = injector.resolve_config(spec, given.get("cann", ""), given.get("product", ""), target)
        found.append(_Candidate(scope, surface, draft, tuple(_compare_settings(config, sections, draft, folders))))
    return found


def _refuse_foreign_lines(path: str, spec: str, candidates: list[_Candidate]) -> None:
    """Raise NpuprofError where lines that a preset stands for are in files that the script imports from."""
    foreign = [found for one in candidates for found in one.draft.carried if found.call]
    if not foreign:
        return
    files = list(dict.fromkeys(one.file for one in foreign))
    first = foreign[0]
    what = f"its lines stand in {', '.join(files)}"
    does, calls = ("sources", "sources") if any(one.surface in ("env", "atc") for one in foreign) else ("calls there", "calls")
    why = f"{path} {does} what sets {first.name} ({first.file_line}); a block in {path} would come on top of that."
    hint = f"if every script that {calls} it shall have these settings: npuprof inject {files[0]} {spec} --replace"
    raise build_refusal(path, what, why, first.call[0] if first.call else 0, hint)


def _refuse_spread_lines(
    path: str, imported: ImportedFile, candidates: list[_Candidate], spec: str, injector: Injector, given: dict[str, str]
) -> None:
    """Raise NpuprofError where a preset equals one configuration of a script that several functions fill."""
    if len(candidates) < 2:
        return
    for draft in build_drafts(imported, None, None):
        if not draft.settings or len(draft.surfaces) != 1:
            continue
        target, sections = _SURFACES[next(iter(draft.surfaces))]
        config = injector.resolve_config(spec, given.get("cann", ""), given.get("product", ""), target)
        if not _compare_settings(config, sections, draft, ()):
            lines = sorted({one.line for one in draft.origins.values()})
            why = f"Lines {', '.join(str(line) for line in lines[:5])} fill one configuration, in functions of their own."
            hint = "bring these lines together in one function"
            raise build_refusal(path, f"the lines that {spec} stands for cannot become one block", why, lines[0], hint)


def _compare_settings(config: Config, sections: tuple[str, ...], draft: Draft, folders: Sequence[str]) -> list[_Difference]:
    """Return how a preset differs from what a script sets, key by key; a file that is named may be written out in the preset."""
    wanted = {key: value for key, value in config.settings.items() if split_section_and_name(key)[0] in sections}
    told = []
    for key in dict.fromkeys((*wanted, *draft.settings)):
        if key not in draft.settings:
            told.append(_Difference(f"{key} = {format_short_value(wanted[key])} is in the preset only", True))
        elif key not in wanted:
            text = f"{key} = {format_short_value(draft.settings[key])} is in {_cite_line(draft.origins[key])} only"
            told.append(_Difference(text))
        elif not _says_the_same(key, wanted[key], draft, sections, folders):
            ours, theirs = format_short_value(wanted[key]), format_short_value(draft.settings[key])
            told.append(_Difference(f"{key} is {ours} in the preset, {theirs} in {_cite_line(draft.origins[key])}"))
    return told


def _says_the_same(key: str, wanted: Any, draft: Draft, sections: tuple[str, ...], folders: Sequence[str]) -> bool:
    value = draft.settings[key]
    if is_equivalent_setting(key, wanted, value) or ("env" in sections and str(wanted) == value):
        return True
    return isinstance(wanted, (dict, list)) and is_equivalent_setting(key, wanted, read_preset_value(draft.origins[key], folders))


def _cite_line(one: FoundSetting) -> str:
    """Return where a setting stands, with the file where that is another than the script."""
    return f"line {one.line} of {one.file}" if one.call else f"line {one.line}"


def _find_first(draft: Draft) -> FoundSetting:
    """Return the first setting of a configuration, one of the script itself before others."""
    return min(draft.carried, key=lambda one: (bool(one.call), one.line))


def _build_mismatch(path: str, imported: ImportedFile, candidates: list[_Candidate], spec: str) -> NpuprofError:
    if not candidates:
        what = f"{path} has no hand-written lines that {spec} could stand for"
        why = "Nothing that it sets always holds." if imported.found else "It sets no option."
        return NpuprofError([Finding("NP830", what, why, "npuprof import --format text tells what it sets", where=Place(path))])
    closest = min(candidates, key=lambda one: len(one.differences))
    line = min(one.call[0] if one.call else one.line for one in closest.draft.carried)
    more = len(closest.differences) - _MOST_DIFFERENCES
    why = "; ".join(one.text for one in closest.differences[:_MOST_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "") + "."
    what = f"{spec} does not set what {path} sets"
    hint = f"npuprof import {path} makes a preset that does, or change the one or the other first"
    return NpuprofError([Finding("NP830", what, why, hint, where=Place(path, line))])


def _plan_shell(path: str, data: bytes, imported: ImportedFile, equal: list[_Candidate]) -> list[Stand]:
    sites = {site.scope: site for site in imported.sites}
    shell = blocks.detect_shell(path, data)
    if not shell:
        raise build_refusal(path, "no shell is known that reads the file", "Its ending and its first line name none.")
    has_flags = any(one.surface == "atc" for one in equal)
    return [
        plan_exports(path, data, one.draft, shell, has_flags)
        if one.surface == "env"
        else plan_flags(path, data, one.draft, sites[one.scope], shell)
        for one in equal
    ]


def _plan_python(file: PythonFile, one: _Candidate, imported: ImportedFile) -> Stand:
    site = next((site for site in imported.sites if site.scope == one.scope), None)
    if site is None:
        raise file.refuse(one.draft.carried[0], "What it is set on is not followed.")
    if one.surface == "run_config":
        return plan_arguments(file, one.draft, site)
    return plan_assignments(file, one.draft, site, one.surface)


def _refuse_sidecars(path: str, changes: list[RefreshedBlock]) -> None:
    for name in (name for change in changes for name in change.sidecars):
        what = f"the block would write {name} beside {path}, and name that"
        why = "The script names a file that is there already; its path would be another."
        raise build_refusal(path, what, why, 0, "write the path in the preset, as the script has it")


def _prove_equal(path: str, before: ImportedFile, now: ImportedFile) -> None:
    """Raise NpuprofError unless the file sets what it set, and says all it said."""
    if differences := list(dict.fromkeys(find_differences(before, now))):
        why = f"{'; '.join(differences[:_MOST_DIFFERENCES])}."
        raise build_refusal(path, "it is not certain that the script would set the same", why)


def _check_names(file: PythonFile, stands: list[Stand], changes: list[RefreshedBlock]) -> None:
    """Raise NpuprofError where a block would use a name that is not certain to be there."""
    data = file.lines.data
    for stand, change in zip(stands, changes, strict=True):
        removed = b"\n".join(data[edit.start : edit.end] for edit in stand.edits)
        line = data.count(b"\n", 0, stand.start) + 1
        for name in sorted(_list_needed_names(change.text)):
            if not file.knows_name(name, line, re.search(rf"(?<![\w.]){name}\b".encode(), removed) is not None):
                why = f"The block uses {name}, which is not certain to be there by that name."
                hint = "import tensorflow as tf first" if name == "tf" else f"import {name} first"
                raise build_refusal(file.path, f"{name} is not known where the block would stand", why, line, hint)


def _list_needed_names(text: str) -> set[str]:
    """Return the names of modules and classes that the lines of a block use."""
    import ast

    tree = ast.parse(text)
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return {name for name in used - stored if name == "tf" or name.endswith("Config")}


def _tell_others(candidates: list[_Candidate]) -> tuple[str, ...]:
    """Return a remark on each configuration that stays, for it is another than the preset."""
    return tuple(
        f"{_cite_line(_find_first(one.draft))}: another configuration stays as it is: {one.differences[0].text}"
        for one in candidates
        if one.differences
    )


def _tell_python_env(imported: ImportedFile) -> tuple[str, ...]:
    names = sorted({one.name for one in imported.found if one.surface == "env" and not one.commented and one.scope.endswith("os.environ")})
    return (f"{', '.join(names)}: set in os.environ, which stays as it is",) if names else ()
