"""The settings of one configuration to a preset in the making: what always holds is carried, the rest is noted with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.catalog.values import is_same_typed_value
from npuprof.scripts.configurations import Group
from npuprof.scripts.draft import Draft, Note, Source
from npuprof.scripts.obstacles import (
    count_shared_branches,
    find_obstacle,
    find_steady_settings,
    format_condition,
    read_preset_value,
    suggest_override,
)
from npuprof.scripts.reading.found import TAKEN_BACK, UNSET, FoundSetting


def build_draft(name: str, file: str, group: Group, folders: Sequence[str] | None, take_defaults: bool = False) -> Draft:
    """Return what the settings of one group come to."""
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


def are_compatible(home: Draft, draft: Draft) -> bool:
    """Return whether two drafts set nothing to different values."""
    return all(key not in home.settings or is_same_typed_value(home.settings[key], value) for key, value in draft.settings.items())


def absorb_draft(home: Draft, draft: Draft) -> None:
    """Add to a draft what another one sets."""
    for key, value in draft.settings.items():
        home.settings.setdefault(key, value)
        home.origins.setdefault(key, draft.origins[key])
    home.notes += draft.notes
    home.assumed += draft.assumed
    home.surfaces |= draft.surfaces - {"env"}


def absorb_session(home: Draft, session: Draft) -> None:
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
