"""Settings of scripts to presets: what always counts is carried over, the rest is listed with place and reason."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, takewhile
from typing import Any

from npuprof.catalog.values import is_same_typed_value
from npuprof.checks.judgement import judge_value_alone
from npuprof.model import Finding
from npuprof.scripts.config_groups import ConfigGroup, find_given_sessions, list_config_groups
from npuprof.scripts.draft import Draft, Note, Source, describe_sources
from npuprof.scripts.lint.worlds import place_fault
from npuprof.scripts.naming import name_drafts, preset_name
from npuprof.scripts.portability import find_obstacle, read_preset_value
from npuprof.scripts.preset_text import describe_assumed, describe_notes, escape_file_name, format_preset
from npuprof.scripts.records import GOES_NOWHERE, TAKEN_BACK, UNSET, ImportedFile, ScriptSetting

_MIXIN = "a mix-in preset, laid over this one with --with"


def build_drafts(imported: ImportedFile, folders: Sequence[str] | None = (), take_defaults: bool = False) -> list[Draft]:
    """Return the presets that one file makes: one for each configuration that differs from the others.

    What the file exports counts for each of them. Files that the script names are read from its folder, or from below the folders;
    without folders (None) their path is the value. What is left out of a configuration that has nothing else is listed with the first
    one that has. ``take_defaults`` takes the defaults of flags of the command line for their values.
    """
    stem = preset_name(imported.file)
    groups = list_config_groups(_keep_only_config(imported))
    drafts = {group.scope: build_draft(stem, imported.file, group, folders, take_defaults) for group in groups}
    given = {scope: session.scope for scope, session in find_given_sessions(imported, groups).items() if scope in drafts}
    for scope, session in given.items():
        _absorb_session(drafts[scope], drafts[session])
    kept = _add_exports(stem, imported.file, [draft for scope, draft in drafts.items() if scope not in given.values()])
    full = [draft for draft in kept if draft.settings] or kept[:1]
    for draft in [one for one in kept if one not in full]:
        full[0].notes += draft.notes
    made = [draft for draft in full if draft.settings or draft.notes]
    name_drafts(stem, made)
    for draft in made:
        draft.is_one_of_several = len(made) > 1
        draft.others = imported.others
    return made


def _add_exports(stem: str, file: str, drafts: list[Draft]) -> list[Draft]:
    """Return the drafts that differ, each with what the file exports; that alone where there is nothing else."""
    shared = [draft for draft in drafts if draft.surfaces == {"env"}]
    kept = _unite_equal_drafts([draft for draft in drafts if draft.surfaces != {"env"}])
    if shared and not any(draft.settings for draft in kept):
        kept.insert(0, Draft(stem, file))
    for draft, home in product(shared, [home for home in kept if home.settings or home is kept[0]]):
        _absorb_draft(home, draft)
    return kept


def _keep_only_config(imported: ImportedFile) -> ImportedFile:
    """Return a file in which the configuration that nothing is given counts, where it has no other: somebody wrote it down."""
    idle = {setting.scope for setting in imported.found if setting.unused.startswith(GOES_NOWHERE)}
    others = (one for one in imported.found if one.surface != "env" and not one.commented and not one.dead and one.scope not in idle)
    if not idle or any(setting.key for setting in others):
        return imported
    found = (setting._replace(unused="") if setting.unused.startswith(GOES_NOWHERE) else setting for setting in imported.found)
    return imported._replace(found=tuple(found))


def build_draft(name: str, file: str, group: ConfigGroup, folders: Sequence[str] | None, take_defaults: bool = False) -> Draft:
    """Return what the settings of one group come to; tests around the whole configuration are no conditions of theirs."""
    draft = Draft(name, file, group.surface)
    draft.labels = group.labels
    around = group.site.branches if group.site else ()
    draft.sources = [Source(file, group.line, group.function, " and ".join(text for _, _, text in around))]
    for setting in group.settings:
        if setting.reason == UNSET:
            continue
        if take_defaults and setting.reason and setting.given.default is not None:
            draft.assumed.append(Note(setting, setting.reason, value=setting.given.default))
            setting = setting.with_value(reason="", value=setting.given.default)
        base = len(list(takewhile(lambda pair: pair[0][2] == pair[1][2], zip(around, setting.branches, strict=False))))
        if setting.reason and not setting.dead and not setting.unused:
            _take_back(draft, setting, base)
        value = read_preset_value(setting, folders)
        why, hint = _find_reason(setting, value)
        if not why and setting.branches[base:]:
            condition = setting._replace(branches=setting.branches[base:]).condition
            draft.notes.append(Note(setting, f"only if {condition}", _MIXIN, condition, value))
        elif why:
            draft.notes.append(Note(setting, why, hint))
        else:
            _carry_over(draft, setting, value)
    return draft


def _find_reason(setting: ScriptSetting, value: Any) -> tuple[str, str]:
    """Return why a setting is in no preset, and what to do; empty where at most a condition keeps it out."""
    if setting.dead:
        return (f"never runs: {setting.condition}" if setting.condition else "never runs"), find_obstacle(setting)[1]
    if setting.unused and setting.reason in ("", TAKEN_BACK):
        return setting.unused, ""
    why, hint = find_obstacle(setting)
    if setting.given.relative and not why and isinstance(value, str):
        return "begins in the folder of the script", "a preset knows no script: keep the line, or write a path that holds everywhere"
    return why, hint


def _carry_over(draft: Draft, setting: ScriptSetting, value: Any) -> None:
    if setting.key in draft.settings and not is_same_typed_value(draft.settings[setting.key], value):
        why = f"line {setting.line} sets it to another value, which the preset has"
        draft.notes.append(Note(draft.origins[setting.key], why, "split them where the first is used before that", overruled=True))
    draft.settings[setting.key] = value
    draft.origins[setting.key] = setting
    draft.carried.append(setting)


def _take_back(draft: Draft, setting: ScriptSetting, base: int) -> None:
    """Leave out what a script takes back under any condition, or always sets again to what is not known."""
    is_unset = setting.reason == TAKEN_BACK
    before = draft.origins.pop(setting.key, None) if is_unset or not setting.branches[base:] else None
    if before is not None:
        del draft.settings[setting.key]
        draft.carried = [carried for carried in draft.carried if carried.key != setting.key]
        again = f"sets it again, to what {setting.reason}" if setting.reason.startswith("depends") else "sets it again"
        draft.notes.append(Note(before, f"{setting.cited_line} {'takes it back' if is_unset else again}"))


def _absorb_draft(home: Draft, draft: Draft) -> None:
    """Add to a draft what another one sets."""
    for key, value in draft.settings.items():
        home.settings.setdefault(key, value)
        home.origins.setdefault(key, draft.origins[key])
    home.notes += draft.notes
    home.assumed += draft.assumed
    home.surfaces |= draft.surfaces - {"env"}


def _absorb_session(home: Draft, session: Draft) -> None:
    """Take over the session config that an NPURunConfig is given; where both set an option, the adapter takes the argument."""
    for key, origin in session.origins.items():
        if key in home.settings and not is_same_typed_value(home.settings[key], session.settings[key]):
            why = f"the argument of NPURunConfig in line {home.origins[key].line} overrules it"
            home.notes.append(Note(origin, why, "leave one of the two"))
    _absorb_draft(home, session)


def _unite_equal_drafts(drafts: list[Draft]) -> list[Draft]:
    """Return the drafts that differ; one of several equal ones is kept, and names where each is."""
    found: dict[str, Draft] = {}
    for draft in sorted(drafts, key=lambda draft: draft.sources[0].line):
        mark = f"{sorted(draft.surfaces & {'atc'})} {sorted((key, repr(value)) for key, value in draft.settings.items())}"
        home = found.setdefault(mark, draft)
        if home is not draft:
            _absorb_draft(home, draft)
            home.sources += draft.sources
    return list(found.values())


def judge_draft(draft: Draft) -> list[Finding]:
    """Return the errors of the values that a draft carries over, at their places in the scripts."""
    judged = ((origin, judge_value_alone(key, draft.settings[key], draft.scenario)) for key, origin in draft.origins.items())
    return [place_fault(fault, origin) for origin, faults in judged for fault in faults if fault.severity == "error"]


def format_draft(draft: Draft) -> str:
    """Return a preset as TOML, with what was left out as comments."""
    head = {"description": f"imported from {escape_file_name(describe_sources(draft))}"}
    head |= {"scenario": draft.scenario} if draft.scenario else {}
    return format_preset(head, draft.settings, [*describe_assumed(draft.assumed), *describe_notes(draft.notes, draft.others)])
