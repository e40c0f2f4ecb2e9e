"""Creates presets from many scripts: a leaf for each distinct configuration, and bases with the
settings that all leaves share.

There is a base for each kind of leaf: sessions, environments, conversions. The result is
independent of the order of scripts. Every leaf is resolved again and compared with its scripts'
settings. A leaf sets ``scenario`` if its settings determine it, and ``cann`` if they need certain
releases.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Record
from npuprof.report.text import count_rest, format_count
from npuprof.resolve import Resolver
from npuprof.resolve.digests import compute_digest
from npuprof.scripts.grouping import group_by
from npuprof.scripts.naming import name_all_drafts, name_covering_folder, number_names
from npuprof.scripts.preset_draft import Draft, Note, Pair, cite_script, list_pairs
from npuprof.scripts.preset_text import (
    describe_assumed,
    describe_notes,
    escape_file_name,
    format_preset,
)
from npuprof.scripts.topics import describe_topics, join_topics

_SCENARIO = "profile.scenario"
_MOST_NOTES = 30
#: A base with fewer settings is not worth an ``extends`` in every preset.
_FEWEST_SHARED = 2

#: The name of a base, by the kind of its dependents.
_BASES = {"session": "base", "environment": "base-environment", "conversion": "base-conversion"}

#: Returns the path of a script for a preset.
Citation = Callable[[str], str]


class Leaf:
    """One distinct configuration: its settings, and its drafts."""

    def __init__(self, drafts: list[Draft], pairs: frozenset[Pair]) -> None:
        self.name = ""
        self.drafts = drafts
        self.facts = _collect_facts(drafts[0])
        self.pairs = pairs
        self.base = ""
        self.own = self.pairs
        self.settings = drafts[0].settings  #: by full key, without the scenario
        self.sources = [
            source for draft in drafts for source in draft.sources
        ]  #: every configuration of a script that equals this one
        plain = "environment" if all(key.startswith("env.") for key in self.settings) else "session"
        self.kind = (
            "conversion" if any("atc" in draft.surfaces for draft in drafts) else plain
        )  #: the purpose of the settings


class Family:
    """The files of the presets by name, the leaves, the settings of each base, and conditional
    settings.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.leaves: list[Leaf] = []
        self.bases: dict[str, dict[str, Any]] = {}
        self.switches: dict[str, Switch] = {}


def build_family(
    drafts: Iterable[Draft], folder: str = "", known: Mapping[frozenset[Pair], str] | None = None
) -> Family:
    """Return presets that resolve to the drafts, without empty ones.

    ``folder`` is the prefix of their names (``zoo/``), ``known`` the existing presets by settings:
    equal mix-ins are not created again, and bases get other names.
    """
    result, drafts, known = Family(), list(drafts), dict(known or {})
    result.leaves = _find_distinct(draft for draft in drafts if draft.settings)
    result.bases = _share_settings(
        result.leaves, [name.removeprefix(folder) for name in known.values()]
    )
    _name_leaves(result.leaves, result.bases)
    result.leaves.sort(key=lambda leaf: leaf.name)
    switches = collect_switches(drafts)
    new = [switch for switch in switches if list_pairs(switch.facts) not in known]
    result.switches = dict(
        zip(
            number_names([f"mixins/{join_topics(switch.facts.items())}" for switch in new]),
            new,
            strict=True,
        )
    )
    names = known | {
        list_pairs(switch.facts): f"{folder}{name}" for name, switch in result.switches.items()
    }
    switched = {
        id(note): names[list_pairs(switch.facts)] for switch in switches for note in switch.notes
    }
    cite = _build_citation(result.leaves)
    extended = Counter(leaf.base for leaf in result.leaves)
    result.files = {
        name: _format_base(facts, extended[name]) for name, facts in result.bases.items()
    }
    result.files |= {name: _format_mixin(switch, cite) for name, switch in result.switches.items()}
    result.files |= {
        leaf.name: _format_leaf(leaf, folder, cite, switched) for leaf in result.leaves
    }
    _prove_leaves(
        result.leaves, {f"{folder}{name}": text for name, text in result.files.items()}, folder
    )
    return result


def _find_distinct(drafts: Iterable[Draft]) -> list[Leaf]:
    """Return one leaf for each distinct configuration, most scripts first."""
    order = sorted(drafts, key=lambda draft: (draft.file, draft.sources[0].line, draft.name))
    groups = group_by(order, lambda draft: list_pairs(_collect_facts(draft)))
    return sorted(
        (Leaf(same, pairs) for pairs, same in groups.items()), key=lambda leaf: -len(leaf.drafts)
    )


def _collect_facts(draft: Draft) -> dict[str, Any]:
    """Return the settings of a draft, with its scenario."""
    return draft.settings | ({_SCENARIO: draft.scenario} if draft.scenario else {})


def _share_settings(leaves: list[Leaf], taken: list[str]) -> dict[str, dict[str, Any]]:
    """Move the shared settings of each kind of leaf to a base; return the bases by name."""
    bases = {}
    for kind, plain_name in _BASES.items():
        members = [leaf for leaf in leaves if leaf.kind == kind]
        pairs = (
            frozenset.intersection(*(leaf.pairs for leaf in members))
            if len(members) > 1
            else frozenset()
        )
        if len(pairs) >= _FEWEST_SHARED:
            (name,) = number_names([plain_name], taken)
            bases[name] = {key: members[0].facts[key] for key, _ in sorted(pairs)}
            for leaf in members:
                leaf.own, leaf.base = leaf.own - pairs, name
    return bases


def _name_leaves(leaves: list[Leaf], taken: Iterable[str]) -> None:
    """Name the leaves, whose own settings must be final. ``taken`` are the names of the bases.

    A leaf of one script has that script's name. A leaf of several is named after a folder with
    exactly these scripts, else after the topic of its settings.
    """
    files = [sorted({draft.file for draft in leaf.drafts}) for leaf in leaves]
    leaves_of = Counter(file for names in files for file in names)
    name_all_drafts(
        [leaf.drafts[0] for leaf, names in zip(leaves, files, strict=True) if len(names) == 1]
    )
    for leaf, names in zip(leaves, files, strict=True):
        folder = (
            name_covering_folder(names, leaves_of)
            if all(leaves_of[file] == 1 for file in names)
            else ""
        )
        own = [(key, leaf.facts[key]) for key in sorted({key for key, _ in leaf.own} or leaf.facts)]
        leaf.name = leaf.drafts[0].name if len(names) == 1 else folder or join_topics(own)
    order = sorted(
        leaves, key=lambda leaf: len({draft.file for draft in leaf.drafts}) > 1
    )  # the names of scripts go first
    for leaf, name in zip(
        order,
        number_names([leaf.name for leaf in order], (*_BASES.values(), *taken, "mixins")),
        strict=True,
    ):
        leaf.name = name


def _build_citation(leaves: list[Leaf]) -> Citation:
    """Return the paths of scripts: relative to their repository, else to their common folder."""
    files = {source.file for leaf in leaves for source in leaf.sources}
    bare = [os.path.realpath(file) for file in files if not os.path.dirname(cite_script(file))]
    top = os.path.commonpath([os.path.dirname(file) for file in bare]) if bare else ""

    def cite(file: str) -> str:
        cited = cite_script(file)
        return (
            cited
            if os.path.dirname(cited) or len(files) == 1
            else os.path.relpath(os.path.realpath(file), top)
        )

    return cite


def _format_leaf(leaf: Leaf, folder: str, cite: Citation, switched: dict[int, str]) -> str:
    """Return a leaf as TOML: its scripts, and the omitted settings."""
    scripts = _list_scripts(leaf, cite)
    shared = len(scripts) > 1
    description = (
        f"{describe_topics(leaf.facts.items())}, as {len(scripts)} scripts have it"
        if shared
        else f"imported from {scripts[0]}"
    )
    head = {
        "description": escape_file_name(description),
        **({"extends": [f"{folder}{leaf.base}"]} if leaf.base else {}),
    }
    cann = find_needed_releases(
        leaf.settings, sorted(set().union(*(draft.surfaces for draft in leaf.drafts)))
    )
    tests = dict.fromkeys(
        f"{cite(source.file)}:{source.line}: if {source.condition}"
        for source in leaf.sources
        if source.condition
    )
    notes = [note for draft in leaf.drafts for note in draft.notes]
    others = list(
        dict.fromkeys(setting for draft in leaf.drafts for setting in draft.other_variables)
    )
    comments = [
        *(["", f"Imported from {len(scripts)} scripts:", *scripts] if shared else []),
        *(["", "Made only under a test:", *tests] if tests else []),
        *describe_switched(notes, switched, cite),
        *describe_assumed([note for draft in leaf.drafts for note in draft.assumed], cite),
        *describe_notes(
            [note for note in notes if not note.condition],
            others,
            _MOST_NOTES if shared else None,
            cite,
        ),
    ]
    return _format_facts(
        head,
        {key: leaf.facts[key] for key, _ in leaf.own},
        {"cann": cann} if cann else {},
        comments,
    )


def _list_scripts(leaf: Leaf, cite: Citation) -> list[str]:
    """Return the scripts of a leaf, without duplicates, with functions for scripts with several
    configurations.
    """
    functions_of: dict[str, dict[str, None]] = {}
    for draft in leaf.drafts:
        for source in draft.sources:
            own = [f"{source.function}()"] if draft.is_one_of_several and source.function else []
            functions_of.setdefault(cite(source.file), {}).update(dict.fromkeys(own))
    return [
        f"{file}: {', '.join(functions)}" if functions else file
        for file, functions in functions_of.items()
    ]


def _format_base(facts: dict[str, Any], dependents: int) -> str:
    description = (
        f"{describe_topics(facts.items())}, what "
        f"{dependents} of the imported presets have in common"
    )
    return _format_facts({"description": description}, facts, {"abstract": True})


def _format_mixin(switch: Switch, cite: Citation) -> str:
    """Return a mix-in as TOML: its condition as the description, and its places as comments."""
    listed = [
        f"{cite(note.setting.file)}:{note.setting.line}: if {note.condition}"
        for note in switch.notes
    ]
    count = Counter(note.condition for note in switch.notes)
    more = f" and {len(count) - 1} more" if len(count) > 1 else ""
    description = (
        f"{describe_topics(switch.facts.items())} if "
        f"{count.most_common(1)[0][0]}{more}: composed over a preset with --with"
    )
    head = {"description": escape_file_name(description)}
    return _format_facts(head, switch.facts, {"abstract": True}, ["", "Switched on in:", *listed])


def _format_facts(
    head: dict[str, Any], facts: dict[str, Any], tail: dict[str, Any], comments: Iterable[str] = ()
) -> str:
    scenario = {"scenario": facts[_SCENARIO]} if _SCENARIO in facts else {}
    return format_preset(
        {**head, **scenario, **tail},
        {key: value for key, value in facts.items() if key != _SCENARIO},
        comments,
    )


class _Drafts:
    """The lookups of drafts: each other, and no policy."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles

    def find_parent(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        """Return the draft with a name."""
        return self._profiles[reference]

    def find_policy(self, profile: Profile) -> None:
        """Return None."""


def _prove_leaves(leaves: list[Leaf], files: dict[str, str], folder: str) -> None:
    """Raise RuntimeError unless each leaf resolves to the settings and scenario of its
    first draft.
    """
    profiles = {
        name: Profile(parse_document(name, f"{name}.toml", text)) for name, text in files.items()
    }
    resolver = Resolver(_Drafts(profiles))
    configs = [resolver.resolve_profile(profiles[f"{folder}{leaf.name}"]) for leaf in leaves]
    wanted = [(compute_digest(leaf.settings), leaf.drafts[0].scenario) for leaf in leaves]
    if [(config.digest, config.scenario) for config in configs] != wanted:
        raise RuntimeError("a leaf of the family does not resolve as before")


def describe_family(family: Family) -> str:
    """Return a summary in one line: the numbers of leaves, scripts, bases and mix-ins."""
    scripts = len({source.file for leaf in family.leaves for source in leaf.sources})
    count = len(family.leaves)
    leaves = f"{count} {'leaf' if count == 1 else 'leaves'} for {format_count(scripts, 'script')}"
    bases = format_count(len(family.bases), "base") if family.bases else "no base"
    mixins = (
        f", {format_count(len(family.switches), 'mix-in')} for conditional settings"
        if family.switches
        else ""
    )
    return f"{leaves}, {bases}{mixins}; every leaf resolves to the settings of its scripts"


def build_family_fields(family: Family) -> dict[str, Any]:
    """Return the fields of the JSON form: the file of each preset, and for leaves all scripts."""
    leaves = {
        leaf.name: [
            {key: text or None for key, text in place._asdict().items()} for place in leaf.sources
        ]
        for leaf in family.leaves
    }
    presets = []
    for name, text in family.files.items():
        kind = "leaf" if name in leaves else "base" if name in family.bases else "mix-in"
        conditions = (
            [note.condition for note in family.switches[name].notes]
            if name in family.switches
            else []
        )
        presets.append(
            {
                "name": name,
                "kind": kind,
                "conditions": conditions,
                "sources": leaves.get(name, []),
                "text": text,
            }
        )
    return {"presets": presets}


class Switch(Record):
    """Settings under a condition: ``facts`` by full key, and the first note of each condition in
    each script.
    """

    facts: dict[str, Any]
    notes: tuple[Note, ...]


def collect_switches(drafts: Iterable[Draft]) -> list[Switch]:
    """Return the groups of settings under a common condition, most places first."""
    switched: dict[frozenset[Pair], tuple[dict[str, Any], list[Note]]] = {}
    for draft in drafts:
        for notes in group_switched(draft.notes).values():
            facts = {note.setting.key: note.value for note in notes}
            switched.setdefault(list_pairs(facts), (facts, []))[1].append(notes[0])
    rows = sorted(switched.items(), key=lambda row: (-len(row[1][1]), sorted(row[0])))
    return [
        Switch(facts, tuple(sorted(notes, key=lambda note: (note.setting.file, note.setting.line))))
        for _, (facts, notes) in rows
    ]


def group_switched(notes: Sequence[Note]) -> dict[tuple[str, str, str], list[Note]]:
    """Return the notes on settings that only a condition excludes: by file, configuration and
    condition.
    """
    return group_by(
        (note for note in notes if note.condition),
        lambda note: (note.setting.file, note.setting.scope, note.condition),
    )


def describe_switched(notes: Sequence[Note], names: dict[int, str], cite: Citation) -> list[str]:
    """Return the mix-ins for conditional settings of scripts as comments.

    ``names`` by a group's first note.

    Equal settings at several places are listed once: the mix-in lists all places.
    """
    places_of: dict[str, list[str]] = {}
    for first, *_ in group_switched(notes).values():
        text = f"if {first.condition}: --with {names[id(first)]}"
        places_of.setdefault(text, []).append(f"{cite(first.setting.file)}:{first.setting.line}")
    lines = [f"{count_rest(places, 1)}: {text}" for text, places in places_of.items()]
    return ["", "Under a condition:", *lines] if lines else []


def find_needed_releases(settings: dict[str, Any], surfaces: Iterable[str] = ()) -> str:
    """Return the release range from which on every setting is read (``>=6.3.RC2``).

    Empty for all releases, or if uncertain.

    If a setting was removed later, there is no range: it would hide from checks what needs fixing.
    Options read by the earliest release do not limit the range: if such an option was missing in
    between, the script may be older.
    """
    known = releases.load_releases()
    rows = []
    for key, value in settings.items():
        if option := catalog.find_option(key):
            states = {
                option.surface_states.get(surface, option.states) for surface in surfaces
            } or {option.states}
            rows += [row for row in states if "Y" in row and not row.startswith("Y")]
            rows.append(_list_value_states(option, value, known))
    start = max((len(row.rstrip("Y")) for row in rows), default=0)
    return (
        f">={known[start]}"
        if 0 < start < len(known) and any(row[start - 1] == "." for row in rows)
        else ""
    )


def _list_value_states(option: catalog.Option, value: Any, known: tuple[str, ...]) -> str:
    """Return, for each release, whether it accepts a value, if the value has a history."""
    text = str(value)
    since = (
        releases.release_index(option.choices_since[text]) if text in option.choices_since else 0
    )
    until = (
        releases.release_index(option.choices_until[text])
        if text in option.choices_until
        else len(known)
    )
    return "." * since + "Y" * (until - since) + "." * (len(known) - until)
