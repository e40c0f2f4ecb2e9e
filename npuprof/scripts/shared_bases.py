"""Creates presets from many scripts: leaves for distinct configurations, and shared bases.

There is a base for each kind of leaf: sessions, environments, conversions. Launches with arguments
of training programs have one for each group with much in common. The result is
independent of the order of scripts. Every leaf is resolved again and compared with its scripts'
settings. A leaf sets ``scenario`` if its settings determine it, and ``cann`` if they need certain
releases.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.document import parse_document
from npuprof.document.keys import parse_key
from npuprof.document.profile import Profile
from npuprof.model import Record, TomlTable
from npuprof.report.text import count_rest, format_count
from npuprof.resolve import Resolver
from npuprof.resolve.digests import compute_digest
from npuprof.scripts.grouping import group_by
from npuprof.scripts.naming import name_all_drafts, name_covering_folder, number_names
from npuprof.scripts.preset_draft import Citation, Draft, Note, Pair, cite_script, list_pairs
from npuprof.scripts.preset_text import (
    describe_assumed,
    describe_notes,
    escape_file_name,
    format_preset,
)
from npuprof.scripts.script_records import ScriptSetting
from npuprof.scripts.topics import describe_topics, join_topics
from npuprof.system import group_pairs

_SCENARIO = "profile.scenario"
_MOST_NOTES = 30
#: A base with fewer settings is not worth an ``extends`` in every preset.
_FEWEST_SHARED = 2

#: The name of a base, by the kind of its dependents.
_BASES = {
    "session": "base",
    "environment": "base-environment",
    "conversion": "base-conversion",
    "arguments": "base-arguments",
}
#: The sections of training programs.
_PROGRAMS = ("megatron.", "verl.", "args.")
#: Keys that a preset can unset.
_PLAIN_KEY = re.compile(r"[\w.-]+")
_MOST_ROUNDS = 4


class Leaf:
    """One distinct configuration: its settings, and its drafts."""

    def __init__(self, drafts: list[Draft], pairs: frozenset[Pair]) -> None:
        self.name = ""
        self.drafts = drafts
        self.facts = _collect_facts(drafts[0])
        self.pairs = pairs
        self.base = ""
        self.own = self.pairs
        self.unset: list[str] = []
        self.settings = drafts[0].settings  #: by full key, without the scenario
        #: every configuration of a script that equals this one
        self.sources = [source for draft in drafts for source in draft.sources]
        self.kind = self._find_kind()

    def _find_kind(self) -> str:
        """Return the purpose of the settings, a key of ``_BASES``."""
        if any(key.startswith(_PROGRAMS) for key in self.settings):
            return "arguments"
        if any("atc" in draft.surfaces for draft in self.drafts):
            return "conversion"
        is_environment = all(key.startswith("env.") for key in self.settings)
        return "environment" if is_environment else "session"

    def list_files(self) -> set[str]:
        """Return the files of its scripts."""
        return {draft.file for draft in self.drafts}


class Family:
    """The files of the presets by name, the leaves, the bases, and the conditional settings."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.leaves: list[Leaf] = []
        self.bases: dict[str, TomlTable] = {}
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
    used_names = [name.removeprefix(folder) for name in known.values()]
    result.bases = _share_settings(result.leaves, used_names)
    _name_leaves(result.leaves, result.bases)
    result.leaves.sort(key=attrgetter("name"))
    switches = collect_switches(drafts)
    new = [switch for switch in switches if list_pairs(switch.facts) not in known]
    names = number_names([f"mixins/{join_topics(switch.facts.items())}" for switch in new])
    result.switches = dict(zip(names, new, strict=True))

    mixin_of = dict(known)  # the name of a mix-in, by its settings
    for name, switch in result.switches.items():
        mixin_of[list_pairs(switch.facts)] = f"{folder}{name}"
    mixin_of_note = {
        id(note): mixin_of[list_pairs(switch.facts)] for switch in switches for note in switch.notes
    }

    cite = _build_citation(result.leaves)
    dependents = Counter(leaf.base for leaf in result.leaves)
    for name, facts in result.bases.items():
        topics = describe_topics(facts.items())
        shown = f"{topics}, what {dependents[name]} of the imported presets have in common"
        result.files[name] = _format_facts({"description": shown}, facts, {"abstract": True})
    for name, switch in result.switches.items():
        result.files[name] = _format_mixin(switch, cite)
    for leaf in result.leaves:
        result.files[leaf.name] = _format_leaf(leaf, folder, cite, mixin_of_note)
    _verify_leaves(
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


def _collect_facts(draft: Draft) -> TomlTable:
    """Return the settings of a draft, with its scenario."""
    return draft.settings | ({_SCENARIO: draft.scenario} if draft.scenario else {})


def _share_settings(leaves: list[Leaf], taken: list[str]) -> dict[str, TomlTable]:
    """Move the shared settings of each kind of leaf to a base; return the bases by name."""
    bases = {}
    for kind, plain_name in _BASES.items():
        members = [leaf for leaf in leaves if leaf.kind == kind]
        if kind == "arguments":
            groups = list(_split_group(members, _find_common(members)))
            names = number_names([plain_name] * len(groups), taken)
            for name, (group, common) in zip(names, groups, strict=True):
                bases[name] = dict(sorted(common.items()))
                pairs = list_pairs(common)
                for leaf in group:
                    leaf.own, leaf.base = leaf.own - pairs, name
                    leaf.unset = sorted(common.keys() - leaf.facts.keys())
            continue
        # a base with one dependent shares nothing
        if len(members) < 2:
            continue
        shared = frozenset.intersection(*(leaf.pairs for leaf in members))
        if len(shared) >= _FEWEST_SHARED:
            (name,) = number_names([plain_name], taken)
            bases[name] = {key: members[0].facts[key] for key, _ in sorted(shared)}
            for leaf in members:
                leaf.own, leaf.base = leaf.own - shared, name
    return bases


def _split_group(leaves: list[Leaf], common: TomlTable) -> Iterator[tuple[list[Leaf], TomlTable]]:
    """Yield groups of leaves with their bases, which need the fewest lines together."""
    if len(leaves) < 2:
        return
    pairs = list_pairs(common)
    differing = [_count_own(leaf, pairs) for leaf in leaves]
    seed = leaves[differing.index(max(differing))]
    bases = [pairs, seed.pairs]
    for _ in range(_MOST_ROUNDS):
        halves: list[list[Leaf]] = [[], []]
        for leaf in leaves:
            halves[_count_own(leaf, bases[1]) < _count_own(leaf, bases[0])].append(leaf)
        tables = [_find_common(half) for half in halves]
        bases = [list_pairs(table) for table in tables]
    split = sum(
        len(base) + sum(_count_own(leaf, base) for leaf in half)
        for half, base in zip(halves, bases, strict=True)
    )
    if all(halves) and split < len(common) + sum(differing):
        for half, table in zip(halves, tables, strict=True):
            yield from _split_group(half, table)
    elif len(common) >= _FEWEST_SHARED:
        yield leaves, common


def _count_own(leaf: Leaf, base: frozenset[Pair]) -> int:
    """Return the number of a leaf's lines with a base."""
    return len(leaf.pairs - base) + len({key for key, _ in base} - leaf.facts.keys())


def _find_common(leaves: list[Leaf]) -> TomlTable:
    """Return the settings that save lines as a base: most leaves have them."""
    if len(leaves) < 2:
        return {}
    counts = Counter(pair for leaf in leaves for pair in leaf.pairs)
    having = Counter(key for leaf in leaves for key in leaf.facts)
    facts = {}
    for pair, count in sorted(counts.items(), key=lambda item: (item[1], item[0])):
        key, _ = pair
        value = next(leaf.facts[key] for leaf in leaves if pair in leaf.pairs)
        # others unset or replace it; a table would be merged
        is_replaceable = _PLAIN_KEY.fullmatch(key) and not isinstance(value, dict)
        is_around = key == _SCENARIO or any(f"{key}." in other for other in having)
        saves_lines = count > 1 + len(leaves) - having[key] and is_replaceable and not is_around
        if saves_lines or count == len(leaves):
            facts[key] = value
    return facts


def _name_leaves(leaves: list[Leaf], taken: Iterable[str]) -> None:
    """Name the leaves, whose own settings must be final. ``taken`` are the names of the bases.

    A leaf of one script has that script's name. A leaf of several is named after a folder with
    exactly these scripts, else after the topic of its settings.
    """
    single = [leaf for leaf in leaves if len(leaf.list_files()) == 1]
    several = [leaf for leaf in leaves if len(leaf.list_files()) > 1]
    leaves_of_file = Counter(file for leaf in leaves for file in leaf.list_files())
    name_all_drafts([leaf.drafts[0] for leaf in single])
    for leaf in single:
        leaf.name = leaf.drafts[0].name
    for leaf in several:
        files = sorted(leaf.list_files())
        # a folder is no name for a leaf if one of its scripts has another leaf, too
        if all(leaves_of_file[file] == 1 for file in files):
            leaf.name = name_covering_folder(files, leaves_of_file)
        if not leaf.name:
            own = sorted({key for key, _ in leaf.own} or leaf.facts)
            leaf.name = join_topics([(key, leaf.facts[key]) for key in own])
    order = [*single, *several]  # the names of scripts go first
    reserved = (*_BASES.values(), *taken, "mixins")
    names = number_names([leaf.name for leaf in order], reserved)
    for leaf, name in zip(order, names, strict=True):
        leaf.name = name


def _build_citation(leaves: list[Leaf]) -> Citation:
    """Return the paths of scripts: relative to their repository, else to their common folder."""
    files = {source.file for leaf in leaves for source in leaf.sources}
    bare = [os.path.realpath(file) for file in files if not os.path.dirname(cite_script(file))]
    top = os.path.commonpath([os.path.dirname(file) for file in bare]) if bare else ""

    def cite(file: str) -> str:
        cited = cite_script(file)
        if os.path.dirname(cited) or len(files) == 1:
            return cited
        return os.path.relpath(os.path.realpath(file), top)

    return cite


def _format_leaf(leaf: Leaf, folder: str, cite: Citation, mixin_of_note: dict[int, str]) -> str:
    """Return a leaf as TOML: its scripts, and the omitted settings."""
    scripts = _list_scripts(leaf, cite)
    comments = []
    if is_shared := len(scripts) > 1:
        topics = describe_topics(leaf.facts.items())
        description = f"{topics}, as {len(scripts)} scripts have it"
        comments += ["", f"Imported from {len(scripts)} scripts:", *scripts]
    else:
        description = f"imported from {scripts[0]}"
    head: TomlTable = {"description": escape_file_name(description)}
    if leaf.base:
        head["extends"] = [f"{folder}{leaf.base}"]
    if leaf.unset:
        head["unset"] = leaf.unset
    tests = dict.fromkeys(
        f"{cite(source.file)}:{source.line}: if {source.condition}"
        for source in leaf.sources
        if source.condition
    )
    if tests:
        comments += ["", "Made only under a test:", *tests]
    notes = []
    assumed = []
    other_variables: dict[ScriptSetting, None] = {}
    surfaces = set()
    for draft in leaf.drafts:
        notes += draft.notes
        assumed += draft.assumed
        other_variables |= dict.fromkeys(draft.other_variables)
        surfaces |= draft.surfaces
    comments += describe_switched(notes, mixin_of_note, cite)
    comments += describe_assumed(assumed, cite)
    omitted = [note for note in notes if not note.condition]
    most = _MOST_NOTES if is_shared else None
    comments += describe_notes(omitted, list(other_variables), most, cite)
    cann = find_needed_releases(leaf.settings, sorted(surfaces))
    own = {key: leaf.facts[key] for key, _ in leaf.own}
    return _format_facts(head, own, {"cann": cann} if cann else {}, comments)


def _list_scripts(leaf: Leaf, cite: Citation) -> list[str]:
    """Return the scripts of a leaf; those with several configurations have their functions."""
    functions_of: dict[str, dict[str, None]] = {}
    for draft in leaf.drafts:
        for source in draft.sources:
            functions = functions_of.setdefault(cite(source.file), {})
            if draft.is_one_of_several and source.function:
                functions[f"{source.function}()"] = None
    return [
        f"{file}: {', '.join(functions)}" if functions else file
        for file, functions in functions_of.items()
    ]


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
    head: TomlTable, facts: TomlTable, tail: TomlTable, comments: Iterable[str] = ()
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

    def find_axes(self, profile: Profile) -> None:
        """Return None: drafts name no axes."""


def _nest_arguments(settings: TomlTable) -> TomlTable:
    """Return settings with arguments that have dots in tables, as presets are resolved."""
    nested: TomlTable = {}
    for key, value in settings.items():
        parsed = parse_key(key) if key.startswith(_PROGRAMS) else None
        table, (first, rest) = nested, parsed or (key, ())
        for name in rest:
            table = table.setdefault(first, {})
            first = name
        table[first] = value
    return nested


def _verify_leaves(leaves: list[Leaf], files: dict[str, str], folder: str) -> None:
    """Raise RuntimeError unless each leaf resolves as its first draft."""
    profiles = {
        name: Profile(parse_document(name, f"{name}.toml", text)) for name, text in files.items()
    }
    resolver = Resolver(_Drafts(profiles))
    for leaf in leaves:
        config = resolver.resolve_profile(profiles[f"{folder}{leaf.name}"])
        has_same_settings = config.digest == compute_digest(_nest_arguments(leaf.settings))
        if not has_same_settings or config.scenario != leaf.drafts[0].scenario:
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


def build_family_fields(family: Family) -> TomlTable:
    """Return the fields of the JSON form: the file of each preset, and for leaves all scripts."""
    leaves = {leaf.name: leaf for leaf in family.leaves}
    presets = []
    for name, text in family.files.items():
        sources = []
        conditions = []
        if name in leaves:
            kind = "leaf"
            for source in leaves[name].sources:
                fields = source._asdict().items()
                sources.append({field: value or None for field, value in fields})
        elif name in family.bases:
            kind = "base"
        else:
            kind = "mix-in"
            conditions = [note.condition for note in family.switches[name].notes]
        presets.append(
            {
                "name": name,
                "kind": kind,
                "conditions": conditions,
                "sources": sources,
                "text": text,
            }
        )
    return {"presets": presets}


class Switch(Record):
    """Settings under a condition: ``facts`` by full key.

    ``notes`` are the first note of each condition in each script.
    """

    facts: TomlTable
    notes: tuple[Note, ...]


def collect_switches(drafts: Iterable[Draft]) -> list[Switch]:
    """Return the groups of settings under a common condition, most places first."""
    facts_of: dict[frozenset[Pair], TomlTable] = {}
    notes_of: dict[frozenset[Pair], list[Note]] = {}
    for draft in drafts:
        for notes in group_switched(draft.notes):
            facts = {note.setting.key: note.value for note in notes}
            pairs = list_pairs(facts)
            facts_of.setdefault(pairs, facts)
            notes_of.setdefault(pairs, []).append(notes[0])
    order = sorted(notes_of, key=lambda pairs: (-len(notes_of[pairs]), sorted(pairs)))
    switches = []
    for pairs in order:
        by_line = sorted(notes_of[pairs], key=attrgetter("setting.file", "setting.line"))
        switches.append(Switch(facts_of[pairs], tuple(by_line)))
    return switches


def group_switched(notes: Sequence[Note]) -> Collection[list[Note]]:
    """Return the notes on settings that only a condition excludes.

    Those of one file, configuration and condition are together.
    """
    groups = group_by(
        (note for note in notes if note.condition),
        lambda note: (note.setting.file, note.setting.scope, note.condition),
    )
    return groups.values()


def describe_switched(
    notes: Sequence[Note], mixin_of_note: dict[int, str], cite: Citation
) -> list[str]:
    """Return the mix-ins for conditional settings of scripts as comments.

    ``mixin_of_note`` are names of mix-ins by the ``id`` of a group's first note. Equal settings of
    several lines are listed once: the mix-in lists all lines.
    """
    lines_of = group_pairs(
        (
            f"if {first.condition}: --with {mixin_of_note[id(first)]}",
            f"{cite(first.setting.file)}:{first.setting.line}",
        )
        for first, *_ in group_switched(notes)
    )
    comments = [f"{count_rest(lines, 1)}: {text}" for text, lines in lines_of.items()]
    return ["", "Under a condition:", *comments] if comments else []


def find_needed_releases(settings: TomlTable, surfaces: Iterable[str] = ()) -> str:
    """Return the release range from which on every setting is read (``>=6.3.RC2``).

    Empty for all releases, or if uncertain.

    If a setting was removed later, there is no range: it would hide from checks what needs fixing.
    Options read by the earliest release do not limit the range: if such an option was missing in
    between, the script may be older.
    """
    known = releases.load_releases()
    histories = []  # one character for each release: "Y" if it reads the option or the value
    for key, value in settings.items():
        if option := catalog.find_option(key):
            states = {
                option.surface_states.get(surface, option.states) for surface in surfaces
            } or {option.states}
            histories += [row for row in states if "Y" in row and not row.startswith("Y")]
            histories.append(_list_value_states(option, value, known))
    start = max((len(history.rstrip("Y")) for history in histories), default=0)
    is_limited = 0 < start < len(known)
    # "?", an unknown state, before the first "Y" is no limit
    if is_limited and any(history[start - 1] == "." for history in histories):
        return f">={known[start]}"
    return ""


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
