"""Settings of scripts to presets: what always holds is carried over, the rest is said with place and reason."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.catalog.values import is_same_typed_value
from npuprof.checks.judgement import judge_value_alone
from npuprof.model import Finding, Place
from npuprof.scripts.configurations import Group, Layout
from npuprof.scripts.draft import Draft, Note, Source, describe_sources
from npuprof.scripts.naming import name_drafts, preset_name
from npuprof.scripts.obstacles import (
    count_shared_branches,
    find_obstacle,
    find_steady_settings,
    format_condition,
    read_preset_value,
    suggest_override,
)
from npuprof.scripts.preset_text import describe_assumed, describe_notes, escape_file_name, format_preset
from npuprof.scripts.reading.found import GOES_NOWHERE, IDLE_CONFIGS, TAKEN_BACK, UNSET, FoundSetting, ImportedFile

#: So many presets are made of one file; every setting is compared with all of them.
_MOST_DRAFTS = 200


def build_drafts(
    imported: ImportedFile, name: str | None = None, folders: Sequence[str] | None = (), take_defaults: bool = False
) -> list[Draft]:
    """Return the presets that one file makes: one for each configuration that differs from the others.

    What the file exports counts for each of them. Files that the script names are read where they lie beside it, or below the
    folders; without folders (None) they stay where they are, and their path is the value. What is left out of a configuration that
    has nothing else is told with the first one that has. ``take_defaults`` takes what flags of the command line are if nobody says
    otherwise for their values.
    """
    stem = name or preset_name(imported.file)
    layout = Layout(_keep_only_config(imported))
    given = layout.find_given_sessions()
    drafts = {group.scope: _build_draft(stem, imported.file, group, folders, take_defaults) for group in layout.groups}
    for group in layout.groups:
        drafts[group.scope].labels = layout.describe_object(group)
    taken: set[str] = set()
    for group in layout.groups:
        home = layout.find_home(group)
        if home is not None and _are_compatible(drafts[home.scope], drafts[group.scope]):
            _absorb_draft(drafts[home.scope], drafts[group.scope])
            taken.add(group.scope)
    for scope, (heirs, used) in layout.list_inherited().items():
        fitting = [
            parts
            for parts in ([one.scope for one in ones] for ones in heirs)
            if all(part not in taken and _are_compatible(drafts[scope], drafts[part]) for part in parts)
        ]
        for first, *rest in fitting:
            for part in (*rest, scope):
                _absorb_draft(drafts[first], drafts[part])
            taken.update(rest)
        if len(fitting) == len(heirs) and not used:
            taken.add(scope)
    for whole, session in given.items():
        if whole in drafts:
            _absorb_session(drafts[whole], drafts[session.scope])
            taken.add(session.scope)
    made = [drafts[group.scope] for group in layout.groups if group.scope not in taken]
    shared = [draft for draft in made if draft.surfaces == {"env"}]
    kept = _unite_equal_drafts([draft for draft in made if draft.surfaces != {"env"}])
    if shared and not any(draft.settings for draft in kept):
        alone = Draft(stem, imported.file)
        alone.sources = [Source(imported.file)]
        kept.insert(0, alone)
    for draft in shared:
        for home_draft in kept:
            if home_draft.settings or home_draft is kept[0]:
                _absorb_draft(home_draft, draft)
    full = [draft for draft in kept if draft.settings] or kept[:1]
    for draft in kept:
        if draft not in full:
            full[0].notes += draft.notes
    full = _bound_drafts([draft for draft in full if draft.settings or draft.notes])
    name_drafts(stem, full)
    for draft in full:
        draft.is_one_of_several = len(full) > 1
    return full


def _keep_only_config(imported: ImportedFile) -> ImportedFile:
    """Return a file in which the configuration that nothing is given counts, where it has no other: it is what somebody wrote down."""
    idle = {scope for config in imported.facts.get(IDLE_CONFIGS, ()) for scope in config.scopes}
    others = (one for one in imported.found if one.surface != "env" and not one.commented and not one.dead and one.scope not in idle)
    if not idle or any(one.key for one in others):
        return imported
    found = (one._replace(unused="") if one.unused.startswith(GOES_NOWHERE) else one for one in imported.found)
    return imported._replace(found=tuple(found))


def build_site_drafts(imported: ImportedFile, folders: Sequence[str] | None = ()) -> dict[str, Draft]:
    """Return what each configuration of a file comes to by itself, by its scope."""
    stem = preset_name(imported.file)
    return {group.scope: _build_draft(stem, imported.file, group, folders) for group in Layout(imported).groups}


def _unite_equal_drafts(drafts: list[Draft]) -> list[Draft]:
    """Return the drafts that differ; one of several equal ones stands for all, and names where each is."""
    found: dict[str, Draft] = {}
    for draft in sorted(drafts, key=lambda draft: draft.sources[0].line if draft.sources else 0):
        mark = f"{sorted(draft.surfaces & {'atc'})} {sorted((key, repr(value)) for key, value in draft.settings.items())}"
        home = found.setdefault(mark, draft)
        if home is not draft:
            home.notes += draft.notes
            home.assumed += draft.assumed
            home.surfaces |= draft.surfaces
            home.sources += draft.sources
    return list(found.values())


def _bound_drafts(drafts: list[Draft]) -> list[Draft]:
    """Return no more presets than anybody reads; the first one tells what is left out for that."""
    for draft in drafts[_MOST_DRAFTS:]:
        drafts[0].notes += draft.notes
        drafts[0].notes += [Note(one, f"the file makes more than {_MOST_DRAFTS} presets", "split it") for one in draft.origins.values()]
    return drafts[:_MOST_DRAFTS]


def judge_draft(draft: Draft) -> list[Finding]:
    """Return the errors of the values that a draft carries over, at their places in the scripts."""
    return [
        Finding(fault.code, fault.message, fault.why, fault.hint, key=key, where=Place(one.file, one.line, one.column))
        for key, one in draft.origins.items()
        for fault in judge_value_alone(key, draft.settings[key])
        if fault.severity == "error"
    ]


def _build_draft(name: str, file: str, group: Group, folders: Sequence[str] | None, take_defaults: bool = False) -> Draft:
    draft = Draft(name, file, group.surface)
    around = group.site.branches if group.site else ()
    condition = " and ".join(text for _, _, text in around)
    draft.sources = [Source(file, group.line, group.caller, condition)]
    steady = find_steady_settings(group.found, around)
    for one in group.found:
        if one.reason == UNSET:
            continue
        if take_defaults and one.reason and one.default is not None:
            draft.assumed.append(Note(one, one.reason, value=one.default))
            one = one._replace(reason="", value=one.default)
        base = count_shared_branches(around, one)
        why, hint = find_obstacle(one)
        if one.unused and one.reason in ("", TAKEN_BACK):
            why, hint = one.unused, ""
        if one.relative and not why and isinstance(read_preset_value(one, folders), str):
            why, hint = (
                "begins in the folder of the script",
                "a preset knows no script: keep the line, or write a path that holds everywhere",
            )
        if one.dead:
            why = f"never runs: {one.condition}" if one.condition else "never runs"
        condition = ""
        if not why and one.branches[base:] and id(one) not in steady:
            condition = format_condition(one, base)
            why, hint = f"only if {condition}", suggest_override(one, base)
        if one.reason == TAKEN_BACK and not one.dead and not one.unused:
            _take_back(draft, one)
        if why:
            draft.notes.append(Note(one, why, hint, condition, read_preset_value(one, folders) if condition else None))
            if one.key in draft.settings and not one.dead and (one.reason or one.branches[base:]):
                continue
        else:
            value = read_preset_value(one, folders)
            if one.key in draft.settings and not is_same_typed_value(draft.settings[one.key], value):
                draft.notes.append(_note_overruled(draft.origins[one.key], one))
            draft.settings[one.key] = value
            draft.origins[one.key] = one
            draft.carried.append(one)
    return draft


def _take_back(draft: Draft, one: FoundSetting) -> None:
    """Leave out what a script sets and takes back, under whatever condition: it does not always hold."""
    before = draft.origins.pop(one.key, None)
    if before is not None:
        del draft.settings[one.key]
        draft.carried = [found for found in draft.carried if found.key != one.key]
        draft.notes.append(Note(before, f"line {one.line} takes it back"))


def _note_overruled(before: FoundSetting, after: FoundSetting) -> Note:
    note = Note(
        before, f"line {after.line} sets it to another value, which the preset has", "split them where the first is used before that"
    )
    note.overruled = True
    return note


def _are_compatible(home: Draft, draft: Draft) -> bool:
    return all(key not in home.settings or is_same_typed_value(home.settings[key], value) for key, value in draft.settings.items())


def _absorb_draft(home: Draft, draft: Draft) -> None:
    for key, value in draft.settings.items():
        home.settings.setdefault(key, value)
        home.origins.setdefault(key, draft.origins[key])
    home.notes += draft.notes
    home.assumed += draft.assumed
    home.surfaces |= draft.surfaces - {"env"}


def _absorb_session(home: Draft, session: Draft) -> None:
    """Take over the session config that an NPURunConfig is given; where both set an option, the adapter takes the argument."""
    for key, one in session.origins.items():
        if key not in home.settings:
            home.settings[key], home.origins[key] = session.settings[key], one
        elif not is_same_typed_value(home.settings[key], session.settings[key]):
            winner = home.origins[key]
            home.notes.append(Note(one, f"the argument of NPURunConfig in line {winner.line} overrules it", "leave one of the two"))
    home.notes += session.notes
    home.assumed += session.assumed
    home.surfaces |= session.surfaces


def format_draft(draft: Draft) -> str:
    """Return a preset as TOML, with what was left out as comments."""
    head = {"description": f"imported from {escape_file_name(describe_sources(draft))}"}
    return format_preset(
        head | ({"scenario": draft.scenario} if draft.scenario else {}),
        draft.settings,
        [*describe_assumed(draft.assumed), *describe_notes(draft.notes)],
    )
