"""Plans which configurations of a file equal a preset and are replaced by blocks.

Verified before writing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from operator import attrgetter

from npuprof.catalog.values import is_equivalent_setting
from npuprof.document.keys import format_short_value, split_section_and_name
from npuprof.model import NpuprofError, Record
from npuprof.resolve.config import Config
from npuprof.scripts import blocks
from npuprof.scripts.block_files import FileBlocks
from npuprof.scripts.blocks import Block, Injector
from npuprof.scripts.launches import list_launches
from npuprof.scripts.preset import build_draft, carry_known_variables, leave_to_commands
from npuprof.scripts.preset_draft import Draft
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import import_script
from npuprof.scripts.reading.file_kinds import KINDS, detect_script_kind
from npuprof.scripts.replacing.edits import NEW, Cut, build_refusal, open_blocks
from npuprof.scripts.replacing.proof import find_differences
from npuprof.scripts.replacing.python_parts import PythonFile, plan_arguments, plan_assignments
from npuprof.scripts.replacing.shell_parts import plan_exports, plan_flags
from npuprof.scripts.script_records import ImportedFile

#: For each surface, the target of its block, and its sections.
_SURFACES = {
    "session": ("session", ("options",)),
    "run_config": ("estimator", ("options", "estimator")),
    "global_options": ("global-options", ("options",)),
    "env": ("env", ("env",)),
    "atc": ("atc", ("options", "atc")),
}
_MOST_DIFFERENCES = 5
#: A function with a parameter ``tf``, which may not be the module.
_TF_PARAMETER = re.compile(rb"\bdef\b[^:]*\btf\b(?!\.)")


class Replacement(Record):
    """The new content of a file, with its blocks for ``block_files``.

    Without ``file``, nothing is left to replace.

    ``notes`` are about lines that stay, ``other_configurations`` about those that differ from the
    preset. ``now`` are the file's settings afterwards.
    """

    file: FileBlocks | None
    now: ImportedFile
    notes: tuple[str, ...] = ()
    other_configurations: tuple[str, ...] = ()


class _Candidate(Record):
    """A hand-written configuration of a script, and its differences from the preset."""

    scope: str
    surface: str
    draft: Draft
    differences: tuple[str, ...]


def plan_replacement(
    data: bytes,
    spec: str,
    injector: Injector,
    facts: dict[str, str],
    modules: Modules,
    before: ImportedFile,
) -> Replacement:
    """Return a file with a block of the preset in place of each configuration that equals it.

    ``before`` are the file's settings, ``modules`` the modules it may import, ``facts`` those of
    the blocks' headers. Raises NpuprofError (NP830) if no configuration equals the preset, if one
    cannot be removed, or if the script would then set something else.
    """
    path = before.file
    resolve = partial(injector.resolve_config, spec, facts)
    shell = detect_block_shell(path, data)
    marked = blocks.find_blocks(path, data)
    keys = resolve("env").settings if shell else ()
    complete = carry_known_variables(before, keys)
    of_exports = leave_to_commands(complete, keys)
    candidates = list(_list_candidates(of_exports, shell, marked, resolve))
    others = tuple(_describe_other(candidate) for candidate in candidates if candidate.differences)
    equal = [candidate for candidate in candidates if not candidate.differences]
    if not equal and any(block.spec == spec for block in marked):
        return Replacement(None, before, other_configurations=others)
    if not equal:
        raise _build_mismatch(path, before, candidates, spec)
    _reject_foreign_lines(path, spec, equal)
    cuts = sorted(_plan_cuts(path, data, shell, before, equal), key=attrgetter("start"))
    opened = open_blocks(data, cuts)
    fresh = [block for block in blocks.find_blocks(path, opened) if block.spec == NEW]
    changes = [
        injector.refresh_block(block, cut.facts | facts, spec)
        for block, cut in zip(fresh, cuts, strict=True)
    ]
    for change, cut in zip(changes, cuts, strict=True):
        _require_names(path, data, cut, change.text)
    file = FileBlocks(data, opened, changes)
    now = _verify_settings(file, complete, modules, keys)
    return Replacement(file, now, _list_notes(before, equal), others)


def _verify_settings(
    file: FileBlocks, before: ImportedFile, modules: Modules, keys: Collection[str]
) -> ImportedFile:
    """Return a file's settings with its blocks.

    Raises NpuprofError unless they are the same as before.
    """
    now = import_script(
        before.file, blocks.replace_blocks(file.data, file.changes), modules=modules
    )
    found = find_differences(before, carry_known_variables(now, keys))
    if differences := list(dict.fromkeys(found)):
        why = f"{'; '.join(differences[:_MOST_DIFFERENCES])}."
        raise build_refusal(
            before.file, "it is not certain that the script would set the same", why
        )
    return now


def detect_block_shell(path: str, data: bytes) -> str:
    """Return the shell of a script, empty for Python. Raises NpuprofError for any other file."""
    shell = blocks.detect_shell(path, data)
    kind = KINDS.get(detect_script_kind(path, data), KINDS["python"])
    if not kind.holds_blocks or not (shell or kind is KINDS["python"]):
        what = "blocks are supported in Python and shell scripts only"
        hint = f"npuprof import {path} makes a preset of it"
        raise build_refusal(path, what, f"{path} is none of them ({kind.shown}).", hint=hint)
    return shell


def _list_candidates(
    imported: ImportedFile, shell: str, marked: list[Block], resolve: Callable[[str], Config]
) -> Iterator[_Candidate]:
    """Yield the configurations outside blocks; ``resolve`` returns the preset for a target."""
    for launch in list_launches(imported):
        draft = build_draft(imported.file, launch, None)
        surface = next(iter(draft.surfaces), "")
        # os.environ of a Python script cannot become a block
        if surface not in _SURFACES or (surface == "env" and not shell):
            continue
        # outside the blocks of the script
        if any(
            setting.location.call or not any(block.has_line(setting.line) for block in marked)
            for setting in draft.carried
        ):
            target, sections = _SURFACES[surface]
            differences = tuple(_compare_settings(resolve(target), sections, draft))
            yield _Candidate(launch.scope, surface, draft, differences)


def _reject_foreign_lines(path: str, spec: str, candidates: list[_Candidate]) -> None:
    """Raise NpuprofError if the preset's settings are in files that the script imports."""
    foreign = [
        setting
        for candidate in candidates
        for setting in candidate.draft.carried
        if setting.location.call
    ]
    if foreign:
        first = foreign[0]
        what = f"its lines are in {', '.join(dict.fromkeys(setting.file for setting in foreign))}"
        calls = "sources" if candidates[0].surface in ("env", "atc") else "calls"
        why = (
            f"{path} {calls} code that sets {first.name} ({first.file_line}); a block in {path} "
            "would set it a second time."
        )
        hint = (
            f"if every script that {calls} it shall have these settings: npuprof inject "
            f"{first.file} {spec} --replace"
        )
        raise build_refusal(path, what, why, first.position[0], hint)


def _compare_settings(config: Config, sections: tuple[str, ...], draft: Draft) -> Iterator[str]:
    """Yield the differences between a preset and a script's settings, key by key."""
    preset = {
        key: value
        for key, value in config.settings.items()
        if split_section_and_name(key)[0] in sections
    }
    is_env = "env" in sections
    for key, value in preset.items():
        ours = format_short_value(value)
        if key not in draft.settings:
            yield f"{key} = {ours} is in the preset only"
            continue
        exported = draft.settings[key]
        is_same_text = is_env and str(value) == exported
        if not is_same_text and not is_equivalent_setting(key, value, exported):
            theirs = f"{format_short_value(exported)} in {draft.origins[key].cited_line}"
            yield f"{key} is {ours} in the preset, {theirs}"
    for key, value in draft.settings.items():
        if key not in preset:
            where = draft.origins[key].cited_line
            yield f"{key} = {format_short_value(value)} is in {where} only"


def _describe_other(candidate: _Candidate) -> str:
    """Return a note on a configuration that stays, as it differs from the preset."""
    first = min(
        candidate.draft.carried, key=lambda setting: (bool(setting.location.call), setting.line)
    )
    return f"{first.cited_line}: another configuration stays as it is: {candidate.differences[0]}"


def _build_mismatch(
    path: str, imported: ImportedFile, candidates: list[_Candidate], spec: str
) -> NpuprofError:
    if not candidates:
        what = f"{path} has no hand-written lines that {spec} could replace"
        why = (
            "It sets nothing in every run that a block could set."
            if imported.settings
            else "It sets no option."
        )
        return build_refusal(path, what, why, 0, "npuprof import --format text shows its settings")
    closest = min(candidates, key=lambda candidate: len(candidate.differences))
    line = min(setting.position[0] for setting in closest.draft.carried)
    hidden = len(closest.differences) - _MOST_DIFFERENCES
    more = f"; and {hidden} more" if hidden > 0 else ""
    why = f"{'; '.join(closest.differences[:_MOST_DIFFERENCES])}{more}."
    hint = f"npuprof import {path} makes a preset that does, or change the one or the other first"
    return build_refusal(path, f"{spec} does not set all settings of {path}", why, line, hint)


def _plan_cuts(
    path: str, data: bytes, shell: str, imported: ImportedFile, equal: list[_Candidate]
) -> Iterator[Cut]:
    """Yield the removals for each configuration.

    Raises NpuprofError for one that cannot be removed.
    """
    sites = {site.scope: site for site in imported.sites}
    has_flags = any(candidate.surface == "atc" for candidate in equal)
    file = None if shell else PythonFile(path, data)
    for candidate in equal:
        if candidate.surface == "env":
            yield plan_exports(path, data, candidate.draft, shell, has_flags)
        elif file is None:
            yield plan_flags(path, data, candidate.draft, sites[candidate.scope], shell)
        elif candidate.scope not in sites:
            raise file.build_refusal(
                candidate.draft.carried[0], "The object it is set on is not traced."
            )
        elif candidate.surface == "run_config":
            yield plan_arguments(file, candidate.draft, sites[candidate.scope])
        else:
            yield plan_assignments(file, candidate.draft, candidate.surface)


def _require_names(path: str, data: bytes, cut: Cut, text: str) -> None:
    """Raise NpuprofError if a block uses an undefined name.

    Imports above and the replaced lines may define it.
    """
    lines = data[: cut.start].splitlines(keepends=True) if not _TF_PARAMETER.search(data) else []
    # imports inside functions do not define names elsewhere
    above = b"".join(line for line in lines if line[:1].strip())
    removed = b"\n".join(data[edit.start : edit.end] for edit in cut.edits)
    for name in blocks.find_missing_names(above, text):
        if not re.search(rf"(?<![\w.]){name}\b".encode(), removed):
            why = f"The block uses {name}, which is not certain to be there by that name."
            hint = "import tensorflow as tf first" if name == "tf" else f"import {name} first"
            what = f"{name} is not defined at the place of the block"
            line = data.count(b"\n", 0, cut.start) + 1
            raise build_refusal(path, what, why, line, hint)


def _list_notes(imported: ImportedFile, equal: list[_Candidate]) -> tuple[str, ...]:
    """Return notes on hand-written lines that stay, on arguments, and on variables of Python."""
    texts = [
        note.remark for candidate in equal for note in candidate.draft.notes if not note.overruled
    ]
    for launch in list_launches(imported):
        if launch.surface not in _SURFACES:
            names = ", ".join(dict.fromkeys(setting.name for setting in launch.settings))
            what = f"{names} of {launch.surface} stay as they are: no block contains them"
            texts.append(f"{imported.file}:{launch.settings[0].position[0]}: {what}")
    set_names = {
        setting.name
        for setting in imported.settings
        if setting.surface == "env"
        and not setting.commented
        and setting.scope.endswith("os.environ")
    }
    if set_names:
        texts.append(f"{', '.join(sorted(set_names))}: set in os.environ, which stays as it is")
    return tuple(texts)
