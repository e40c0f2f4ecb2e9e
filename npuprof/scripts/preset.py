"""Settings of scripts to presets: what always holds is carried over, the rest is said with place and reason."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.checks.judgement import judge_value_alone
from npuprof.model import Finding, Place
from npuprof.scripts.configurations import Layout
from npuprof.scripts.draft import Draft, Note, Source, describe_sources
from npuprof.scripts.drafting import absorb_draft, absorb_session, are_compatible, build_draft
from npuprof.scripts.naming import name_drafts, preset_name
from npuprof.scripts.objects import build_variants, find_used_at
from npuprof.scripts.preset_text import describe_assumed, describe_notes, escape_file_name, format_preset
from npuprof.scripts.reading.found import ImportedFile

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
    layout = Layout(imported)
    given = layout.find_given_sessions()
    drafts = {group.scope: build_draft(stem, imported.file, group, folders, take_defaults) for group in layout.groups}
    for group in layout.groups:
        drafts[group.scope].labels = layout.describe_object(group)
    variants, taken = build_variants(layout, given, lambda group: build_draft(stem, imported.file, group, folders, take_defaults))
    for group in layout.groups:
        home = layout.find_home(group) if group.scope not in taken else None
        if home is None:
            continue
        homes = taken.get(home.scope, [drafts[home.scope]])
        if all(are_compatible(one, drafts[group.scope]) for one in homes):
            for one in homes:
                absorb_draft(one, drafts[group.scope])
            taken[group.scope] = homes
    for scope, (heirs, used) in layout.list_inherited().items():
        if scope in taken:
            continue
        fitting = [
            parts
            for parts in ([one.scope for one in ones] for ones in heirs)
            if all(part not in taken and are_compatible(drafts[scope], drafts[part]) for part in parts)
        ]
        for first, *rest in fitting:
            for part in (*rest, scope):
                absorb_draft(drafts[first], drafts[part])
            taken |= {part: [drafts[first]] for part in rest}
        if len(fitting) == len(heirs) and not used:
            taken[scope] = []
    for whole in layout.list_wholes():
        line = drafts[whole].sources[0].line
        session = given.get(whole)
        several = taken.get(session.scope, []) if session is not None else variants
        chosen = find_used_at(several, line, session is not None) if several else drafts[session.scope] if session is not None else None
        if chosen is not None:
            absorb_session(drafts[whole], chosen)
            variants = [draft for draft in variants if draft is not chosen]
        if session is not None:
            taken.setdefault(session.scope, [])
    made = [*(drafts[group.scope] for group in layout.groups if group.scope not in taken), *variants]
    shared = [draft for draft in made if draft.surfaces == {"env"}]
    kept = _unite_equal_drafts([draft for draft in made if draft.surfaces != {"env"}])
    if shared and not any(draft.settings for draft in kept):
        alone = Draft(stem, imported.file)
        alone.sources = [Source(imported.file)]
        kept.insert(0, alone)
    for draft in shared:
        for home_draft in kept:
            if home_draft.settings or home_draft is kept[0]:
                absorb_draft(home_draft, draft)
    full = [draft for draft in kept if draft.settings] or kept[:1]
    for draft in kept:
        if draft not in full:
            full[0].notes += draft.notes
    full = _bound_drafts([draft for draft in full if draft.settings or draft.notes])
    name_drafts(stem, full)
    for draft in full:
        draft.is_one_of_several = len(full) > 1
    return full


def build_site_drafts(imported: ImportedFile, folders: Sequence[str] | None = ()) -> dict[str, Draft]:
    """Return what each configuration of a file comes to by itself, by its scope."""
    stem = preset_name(imported.file)
    return {group.scope: build_draft(stem, imported.file, group, folders) for group in Layout(imported).groups}


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


def format_draft(draft: Draft) -> str:
    """Return a preset as TOML, with what was left out as comments."""
    head = {"description": f"imported from {escape_file_name(describe_sources(draft))}"}
    return format_preset(
        head | ({"scenario": draft.scenario} if draft.scenario else {}),
        draft.settings,
        [*describe_assumed(draft.assumed), *describe_notes(draft.notes)],
    )
