"""Creates presets from many scripts: leaves for distinct configurations, and shared bases.

There is a base for each kind of leaf: sessions, environments, conversions, and each section of
training programs. The base of a program has what most of its leaves have, and each folder of
scripts has a base of its own below it. The result is independent of the order of scripts. Every
leaf is resolved again and compared with its scripts' settings. A leaf sets ``scenario`` if its
settings determine it, and ``cann`` if they need certain releases.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Record, TomlTable
from npuprof.report.text import count_rest, format_count
from npuprof.resolve import Resolver
from npuprof.resolve.digests import compute_digest
from npuprof.scripts.configuration import nest_settings
from npuprof.scripts.grouping import group_by
from npuprof.scripts.naming import (
    name_all_drafts,
    name_covering_folder,
    name_for_folder,
    number_names,
)
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

#: The names of mix-ins by their settings.
Mixins = Mapping[frozenset[Pair], str]
#: The name of a base, by the kind of its dependents.
_BASES = {
    "session": "base",
    "environment": "base-environment",
    "conversion": "base-conversion",
    "megatron": "base-megatron",
    "verl": "base-verl",
    "args": "base-args",
}
#: The kinds of training programs, which are sections.
_PROGRAMS = ("megatron", "verl", "args")
#: Keys that a preset can unset.
_PLAIN_KEY = re.compile(r"[\w.-]+")


class Derived:
    """A preset that may extend a base: ``own`` and ``unset`` are its differences."""

    def __init__(self, facts: TomlTable) -> None:
        self.name = ""
        self.title = ""
        self.facts = facts
        self.pairs = list_pairs(facts)
        self.base = ""
        self.own = self.pairs
        self.unset: list[str] = []

    def extend(self, base: Derived) -> None:
        """Make it extend a base."""
        self.base = base.name
        self.own = self.pairs - base.pairs
        self.unset = sorted(base.facts.keys() - self.facts.keys())

    def format(self, folder: str, tail: TomlTable, comments: Iterable[str] = ()) -> str:
        """Return it as TOML; ``tail`` are the last fields of its profile."""
        head: TomlTable = {"description": escape_file_name(self.title)}
        if self.base:
            head["extends"] = [f"{folder}{self.base}"]
        if self.unset:
            head["unset"] = self.unset
        own = {key: self.facts[key] for key, _ in self.own}
        if _SCENARIO in own:
            head["scenario"] = own.pop(_SCENARIO)
        return format_preset(head | tail, own, comments)


class Leaf(Derived):
    """One distinct configuration: its settings, and its drafts."""

    def __init__(self, drafts: list[Draft]) -> None:
        super().__init__(_collect_facts(drafts[0]))
        self.drafts = drafts
        self.settings = drafts[0].settings  #: by full key, without the scenario
        #: every configuration of a script that equals this one
        self.sources = [source for draft in drafts for source in draft.sources]
        self.files = sorted({draft.file for draft in drafts})

    @cached_property
    def kind(self) -> str:
        """The purpose of the settings, a key of ``_BASES``."""
        sections = {key.partition(".")[0] for key in self.settings}
        if programs := sections.intersection(_PROGRAMS):
            return min(programs)
        if any("atc" in draft.surfaces for draft in self.drafts):
            return "conversion"
        return "environment" if sections == {"env"} else "session"


class Switch(Derived):
    """Settings under a condition, as a mix-in.

    ``notes`` are the first note of each condition in each script.
    """

    def __init__(self, groups: list[list[Note]]) -> None:
        super().__init__(_collect_switched(groups[0]))
        by_line = attrgetter("setting.file", "setting.line")
        self.notes = sorted((first for first, *_ in groups), key=by_line)
        count = Counter(note.condition for note in self.notes)
        ((condition, _),) = count.most_common(1)
        more = f" and {len(count) - 1} more" if len(count) > 1 else ""
        topics = describe_topics(self.facts.items())
        self.title = f"{topics} if {condition}{more}: composed over a preset with --with"


class Family(Record):
    """The files of the presets by name, the leaves, the bases, and the conditional settings."""

    files: dict[str, str]
    leaves: list[Leaf]
    bases: dict[str, Derived]
    switches: dict[str, Switch]


def build_family(drafts: Iterable[Draft], folder: str = "", known: Mixins | None = None) -> Family:
    """Return presets that resolve to the drafts, without empty ones.

    ``folder`` is the prefix of their names (``zoo/``), ``known`` the existing presets by settings:
    equal mix-ins are not created again, and bases get other names.
    """
    drafts = list(drafts)
    mixin_of = dict(known or {})  # the name of a mix-in, by its settings
    order = sorted(
        (draft for draft in drafts if draft.settings),
        key=lambda draft: (draft.file, draft.sources[0].line, draft.name),
    )
    # one leaf for each distinct configuration, most scripts first
    groups = group_by(order, lambda draft: list_pairs(_collect_facts(draft)))
    leaves = sorted(map(Leaf, groups.values()), key=lambda leaf: -len(leaf.drafts))
    bases = _share_settings(leaves, [name.removeprefix(folder) for name in mixin_of.values()])
    _name_leaves(leaves, bases)
    leaves.sort(key=attrgetter("name"))
    switches = collect_switches(drafts)
    new = [switch for switch in switches if switch.pairs not in mixin_of]
    names = number_names([f"mixins/{join_topics(switch.facts.items())}" for switch in new])
    mixins = dict(zip(names, new, strict=True))
    mixin_of |= {switch.pairs: f"{folder}{name}" for name, switch in mixins.items()}
    cite = _build_citation(leaves)
    files = {
        **{name: base.format(folder, {"abstract": True}) for name, base in bases.items()},
        **{name: _format_mixin(switch, cite) for name, switch in mixins.items()},
        **{leaf.name: _format_leaf(leaf, folder, cite, mixin_of) for leaf in leaves},
    }
    _verify_leaves(leaves, {f"{folder}{name}": text for name, text in files.items()}, folder)
    return Family(files, leaves, bases, mixins)


def _collect_facts(draft: Draft) -> TomlTable:
    """Return the settings of a draft, with its scenario."""
    return draft.settings | ({_SCENARIO: draft.scenario} if draft.scenario else {})


def _share_settings(leaves: list[Leaf], taken: list[str]) -> dict[str, Derived]:
    """Move the shared settings of each kind of leaf to bases; return the bases by name."""
    bases: dict[str, Derived] = {}

    def add_base(name: str, members: list[Leaf], above: Derived) -> Derived:
        base = _build_base(members, above)
        # a base with one dependent shares nothing
        if len(members) < 2 or len(base.own) + len(base.unset) < _FEWEST_SHARED:
            return above
        (base.name,) = number_names([name], [*taken, *bases])
        bases[base.name] = base
        some = "most" if members[0].kind in _PROGRAMS else "all"
        topics = describe_topics(base.facts.items())
        base.title = f"{topics}, what {some} of {len(members)} imported presets have"
        for leaf in members:
            leaf.extend(base)
        return base

    for kind, name in _BASES.items():
        members = [leaf for leaf in leaves if leaf.kind == kind]
        top = add_base(name, members, Derived({}))
        if kind in _PROGRAMS:
            groups = group_by(members, lambda leaf: os.path.dirname(leaf.files[0]))
            for folder, group in sorted(groups.items()):
                add_base(name_for_folder(name, folder), group, top)
    return bases


def _build_base(leaves: list[Leaf], above: Derived) -> Derived:
    """Return the base of leaves below another base.

    It has the settings of all leaves, for a program of more than half of them. Others are those of
    the base above, without those that most leaves lack.
    """
    having = Counter(key for leaf in leaves for key in leaf.facts)
    counts = Counter(pair for leaf in leaves for pair in leaf.pairs)
    facts = {key: value for key, value in above.facts.items() if 2 * having[key] >= len(leaves)}
    for leaf in leaves:
        for pair in leaf.pairs:
            key, _ = pair
            is_most = leaf.kind in _PROGRAMS and 2 * counts[pair] > len(leaves)
            # others unset or replace it; a table would be merged
            is_plain = _PLAIN_KEY.fullmatch(key) and not isinstance(leaf.facts[key], dict)
            if counts[pair] == len(leaves) or (is_most and is_plain and key != _SCENARIO):
                facts[key] = leaf.facts[key]
    base = Derived(facts)
    base.extend(above)
    return base


def _name_leaves(leaves: list[Leaf], taken: Iterable[str]) -> None:
    """Name the leaves, whose own settings must be final. ``taken`` are the names of the bases.

    A leaf of one script has that script's name. A leaf of several is named after a folder with
    exactly these scripts, else after the topic of its settings.
    """
    order = sorted(leaves, key=lambda leaf: len(leaf.files) > 1)  # the names of scripts go first
    leaves_of_file = Counter(file for leaf in leaves for file in leaf.files)
    name_all_drafts([leaf.drafts[0] for leaf in leaves if len(leaf.files) == 1])
    for leaf in order:
        if len(leaf.files) == 1:
            leaf.name = leaf.drafts[0].name
        # a folder is no name for a leaf if one of its scripts has another leaf, too
        elif all(leaves_of_file[file] == 1 for file in leaf.files):
            leaf.name = name_covering_folder(leaf.files, leaves_of_file)
        if not leaf.name:
            own = sorted({key for key, _ in leaf.own} or leaf.facts)
            leaf.name = join_topics([(key, leaf.facts[key]) for key in own])
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


def _format_leaf(leaf: Leaf, folder: str, cite: Citation, mixin_of: Mixins) -> str:
    """Return a leaf as TOML: its scripts, and the omitted settings."""
    scripts = _list_scripts(leaf, cite)
    comments = []
    if is_shared := len(scripts) > 1:
        topics = describe_topics(leaf.facts.items())
        leaf.title = f"{topics}, as {len(scripts)} scripts have it"
        comments += ["", f"Imported from {len(scripts)} scripts:", *scripts]
    else:
        leaf.title = f"imported from {scripts[0]}"
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
    comments += describe_switched(notes, mixin_of, cite)
    comments += describe_assumed(assumed, cite)
    omitted = [note for note in notes if not note.condition]
    most = _MOST_NOTES if is_shared else None
    comments += describe_notes(omitted, list(other_variables), most, cite)
    cann = find_needed_releases(leaf.settings, surfaces)
    return leaf.format(folder, {"cann": cann} if cann else {}, comments)


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
    """Return a mix-in as TOML, with its places as comments."""
    listed = [
        f"{cite(note.setting.file)}:{note.setting.line}: if {note.condition}"
        for note in switch.notes
    ]
    return switch.format("", {"abstract": True}, ["", "Switched on in:", *listed])


class _Drafts(Record):
    """The lookups of drafts: each other, and no policy."""

    profiles: Mapping[str, Profile]

    def find_parent(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        """Return the draft with a name."""
        return self.profiles[reference]

    def find_policy(self, profile: Profile) -> None:
        """Return None."""

    def find_axes(self, profile: Profile) -> None:
        """Return None: drafts name no axes."""


def _verify_leaves(leaves: list[Leaf], files: dict[str, str], folder: str) -> None:
    """Raise RuntimeError unless each leaf resolves as its first draft."""
    profiles = {
        name: Profile(parse_document(name, f"{name}.toml", text)) for name, text in files.items()
    }
    resolver = Resolver(_Drafts(profiles))
    for leaf in leaves:
        config = resolver.resolve_profile(profiles[f"{folder}{leaf.name}"])
        has_same_settings = config.digest == compute_digest(nest_settings(leaf.settings))
        if not has_same_settings or config.scenario != leaf.drafts[0].scenario:
            raise RuntimeError("a leaf of the family does not resolve as before")


def describe_family(family: Family) -> str:
    """Return a summary in one line: the numbers of leaves, scripts, bases and mix-ins."""
    scripts = len({source.file for leaf in family.leaves for source in leaf.sources})
    count = len(family.leaves)
    leaves = f"{count} {'leaf' if count == 1 else 'leaves'} for {format_count(scripts, 'script')}"
    bases = format_count(len(family.bases), "base") if family.bases else "no base"
    mixins = ""
    if family.switches:
        mixins = f", {format_count(len(family.switches), 'mix-in')} for conditional settings"
    return f"{leaves}, {bases}{mixins}; every leaf resolves to the settings of its scripts"


def build_family_fields(family: Family) -> TomlTable:
    """Return the fields of the JSON form: the file of each preset, and for leaves all scripts."""
    sources = {leaf.name: leaf.sources for leaf in family.leaves}
    notes = {name: switch.notes for name, switch in family.switches.items()}
    return {
        "presets": [
            {
                "name": name,
                "kind": "base" if name in family.bases else "mix-in" if name in notes else "leaf",
                "conditions": [note.condition for note in notes.get(name, ())],
                "sources": [
                    {field: value or None for field, value in source._asdict().items()}
                    for source in sources.get(name, ())
                ],
                "text": text,
            }
            for name, text in family.files.items()
        ]
    }


def _collect_switched(notes: Iterable[Note]) -> TomlTable:
    return {note.setting.key: note.value for note in notes}


def collect_switches(drafts: Iterable[Draft]) -> list[Switch]:
    """Return the groups of settings under a common condition, most places first."""
    groups = group_by(
        (notes for draft in drafts for notes in group_switched(draft.notes)),
        lambda notes: list_pairs(_collect_switched(notes)),
    )
    order = sorted(groups.items(), key=lambda group: (-len(group[1]), sorted(group[0])))
    return [Switch(same) for _, same in order]


def group_switched(notes: Sequence[Note]) -> Collection[list[Note]]:
    """Return the notes on settings that only a condition excludes.

    Those of one file, configuration and condition are together.
    """
    groups = group_by(
        (note for note in notes if note.condition),
        lambda note: (note.setting.file, note.setting.scope, note.condition),
    )
    return groups.values()


def describe_switched(notes: Sequence[Note], mixin_of: Mixins, cite: Citation) -> list[str]:
    """Return the mix-ins for conditional settings of scripts as comments.

    ``mixin_of`` are names of mix-ins by their settings. Equal settings of several lines are listed
    once: the mix-in lists all lines.
    """
    lines_of = group_pairs(
        (
            f"if {group[0].condition}: --with {mixin_of[list_pairs(_collect_switched(group))]}",
            f"{cite(group[0].setting.file)}:{group[0].setting.line}",
        )
        for group in group_switched(notes)
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
            if str(value) in option.choices_until:
                return ""
            since = option.choices_since.get(str(value), known[0])
            histories.append(("." * known.index(since)).ljust(len(known), "Y"))
            of_surfaces = option.surface_states
            states = {of_surfaces.get(surface, option.states) for surface in surfaces or ("",)}
            histories += [row for row in states if "Y" in row and not row.startswith("Y")]
    start = max((len(history.rstrip("Y")) for history in histories), default=0)
    is_limited = 0 < start < len(known)
    # "?", an unknown state, before the first "Y" is no limit
    if is_limited and any(history[start - 1] == "." for history in histories):
        return f">={known[start]}"
    return ""
