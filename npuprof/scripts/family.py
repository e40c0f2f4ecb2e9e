"""Many scripts to a family of presets: a leaf for each distinct configuration, and a base with the settings that all leaves share.

There is a base for each kind of leaves: sessions, environments, conversions. The result does not depend on the order of the scripts.
Every leaf is resolved again and compared with the settings of its scripts.

A leaf says ``scenario`` where its settings do, and ``cann`` where some of its settings are read by a part of the releases only and
it is certain by which: then the range of those that read them all; or where files beside all its scripts name a release, which is
a guess and told as one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Origin, Record
from npuprof.resolve import Resolver
from npuprof.resolve.digests import compute_digest
from npuprof.scripts.draft import Draft, Source, cite_script, simplify_test
from npuprof.scripts.leaf_names import BASES, name_leaves, name_mixins
from npuprof.scripts.named_releases import guess_releases
from npuprof.scripts.naming import number_names
from npuprof.scripts.needed_releases import find_needed_releases
from npuprof.scripts.preset_text import describe_assumed, describe_notes, escape_file_name, format_preset
from npuprof.scripts.sharing import Pair, find_shared_pairs, list_pairs
from npuprof.scripts.switches import Switch, collect_switches, describe_switch, describe_switched, select_untold
from npuprof.scripts.topics import describe_topics

_SCENARIO = "profile.scenario"
_MOST_NOTES = 30


#: The digest of a leaf, and its scenario.
Proof = tuple[str, "str | None"]


class Leaf:
    """One distinct configuration: what it sets, and the drafts that say so, the first one first."""

    def __init__(self, drafts: list[Draft], pairs: frozenset[Pair]) -> None:
        self.name = ""
        self.drafts = drafts
        self.facts = {**drafts[0].settings, **({_SCENARIO: drafts[0].scenario} if drafts[0].scenario else {})}
        self.pairs = pairs
        self.base = ""
        self.own = self.pairs

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by full key, without the scenario."""
        return self.drafts[0].settings

    @property
    def sources(self) -> list[Source]:
        """Every configuration of a script that is this one."""
        return [source for draft in self.drafts for source in draft.sources or [Source(draft.file)]]

    @property
    def kind(self) -> str:
        """What the settings are for: a conversion, the environment, or a session."""
        if any("atc" in draft.surfaces for draft in self.drafts):
            return "conversion"
        return "environment" if all(key.startswith("env.") for key in self.settings) else "session"


class Base(Record):
    """A base preset: what it sets, and how many leaves extend it."""

    facts: dict[str, Any]
    dependents: int


class Family:
    """The files of a family by preset name, and for each leaf its digest and scenario before and after."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.leaves: list[Leaf] = []
        self.bases: dict[str, Base] = {}
        self.switches: dict[str, Switch] = {}
        self.proof: dict[str, tuple[Proof, Proof]] = {}

    @property
    def is_proven(self) -> bool:
        """Whether every leaf resolves as before."""
        return all(before == after for before, after in self.proof.values())


def build_family(drafts: Iterable[Draft], folder: str = "", known: Mapping[frozenset[Pair], str] | None = None) -> Family:
    """Return a family that resolves to the drafts, those without a setting aside.

    ``folder`` is where in a store its files are to be (``zoo/``), ``known`` what its presets set: such mix-ins are not made again, and
    a base gets another name than theirs.
    """
    result = Family()
    drafts = list(drafts)
    leaves = result.leaves = _find_distinct(draft for draft in drafts if draft.settings)
    taken = [name.removeprefix(folder) for name in (known or {}).values()]
    for kind, plain_name in BASES.items():
        members = [leaf for leaf in leaves if leaf.kind == kind]
        (base_name,) = number_names([plain_name], taken)
        if pairs := find_shared_pairs([leaf.pairs for leaf in members]):
            result.bases[base_name] = Base({key: members[0].facts[key] for key, _ in sorted(pairs)}, len(members))
            for leaf in members:
                leaf.own, leaf.base = leaf.own - pairs, base_name
    name_leaves(leaves, result.bases)
    switches = collect_switches(drafts)
    standing = {at: name for at, switch in enumerate(switches) if (name := (known or {}).get(list_pairs(switch.facts)))}
    due = [switch for at, switch in enumerate(switches) if at not in standing]
    result.switches = dict(zip(name_mixins([switch.facts for switch in due]), due, strict=True))
    cite = _build_citation(leaves)
    leaves.sort(key=lambda leaf: leaf.name)
    for name, base in result.bases.items():
        result.files[name] = _format_base(base)
    switched = {id(note): name for at, name in standing.items() for note in switches[at].notes}
    for name, switch in result.switches.items():
        description, comments = describe_switch(switch, cite)
        result.files[name] = _format_facts({"description": escape_file_name(description)}, switch.facts, {"abstract": True}, comments)
        switched |= {id(note): f"{folder}{name}" for note in switch.notes}
    for leaf in leaves:
        result.files[leaf.name] = _format_leaf(leaf, folder, cite, switched)
    result.proof = _prove_leaves(leaves, {f"{folder}{name}": text for name, text in result.files.items()}, folder)
    return result


def _find_distinct(drafts: Iterable[Draft]) -> list[Leaf]:
    """Return one leaf for each distinct configuration, those of most scripts first."""
    found: dict[frozenset[Pair], list[Draft]] = {}
    order = sorted(drafts, key=lambda draft: (draft.file, draft.sources[0].line if draft.sources else 0, draft.name))
    for draft in order:
        pairs = _list_pairs(draft)
        found.setdefault(pairs, []).append(draft)
    return sorted((Leaf(same, pairs) for pairs, same in found.items()), key=lambda leaf: -len(leaf.drafts))


def _list_pairs(draft: Draft) -> frozenset[Pair]:
    facts = {**draft.settings, **({_SCENARIO: draft.scenario} if draft.scenario else {})}
    return list_pairs(facts)


def _build_citation(leaves: list[Leaf]) -> Any:
    """Return how scripts are named: from the top of their repository, else from the folder that holds all of them."""
    files = {source.file for leaf in leaves for source in leaf.sources}
    bare = [os.path.realpath(file) for file in files if not os.path.dirname(cite_script(file))]
    top = os.path.commonpath([os.path.dirname(file) for file in bare]) if bare else ""

    def cite(file: str) -> str:
        cited = cite_script(file)
        return cited if os.path.dirname(cited) or len(files) == 1 else os.path.relpath(os.path.realpath(file), top)

    return cite


def _format_leaf(leaf: Leaf, folder: str, cite: Any, switched: dict[int, str]) -> str:
    """Return a leaf as TOML: the scripts that are this configuration, and what they set that is not carried over."""
    told = list_scripts(leaf, cite)
    shared = len(told) > 1
    description = f"{describe_topics(leaf.facts.items())}, as {len(told)} scripts have it" if shared else f"imported from {told[0]}"
    listed = ["", f"Imported from {len(told)} scripts:", *told] if shared else []
    notes = [note for draft in leaf.drafts for note in draft.notes]
    left = [note for draft in leaf.drafts for note in select_untold(draft.notes)]
    assumed = [note for draft in leaf.drafts for note in draft.assumed]
    head = {
        "description": escape_file_name(description),
        **({"extends": [f"{folder}{leaf.base}"]} if leaf.base else {}),
    }
    facts = {key: leaf.facts[key] for key, _ in leaf.own}
    surfaces = sorted(set().union(*(draft.surfaces for draft in leaf.drafts)))
    needed = find_needed_releases(leaf.settings, surfaces)
    cann, told_releases = guess_releases(needed, [draft.release for draft in leaf.drafts], cite)
    return _format_facts(
        head,
        facts,
        {"cann": cann} if cann else {},
        [
            *listed,
            *_describe_tests(leaf, cite),
            *told_releases,
            *describe_switched(notes, switched, cite),
            *describe_assumed(assumed, cite),
            *describe_notes(left, _MOST_NOTES if shared else None, cite),
        ],
    )


def _describe_tests(leaf: Leaf, cite: Any) -> list[str]:
    """Return under which tests of the scripts the configuration is made at all."""
    told = list(dict.fromkeys(f"{cite(one.file)}:{one.line}: if {simplify_test(one.condition)}" for one in leaf.sources if one.condition))
    return ["", "Made only under a test:", *told] if told else []


def list_scripts(leaf: Leaf, cite: Any = cite_script) -> list[str]:
    """Return the scripts that a leaf stands for, each once, with the functions where a script has several configurations."""
    found: dict[str, list[str]] = {}
    for draft in leaf.drafts:
        for source in draft.sources or [Source(draft.file)]:
            functions = found.setdefault(cite(source.file), [])
            if draft.is_one_of_several and source.function and f"{source.function}()" not in functions:
                functions.append(f"{source.function}()")
    return [f"{file}: {', '.join(functions)}" if functions else file for file, functions in found.items()]


def _format_base(base: Base) -> str:
    description = f"{describe_topics(base.facts.items())}, what {base.dependents} of the imported presets have in common"
    return _format_facts({"description": description}, base.facts, {"abstract": True})


def _format_facts(head: dict[str, Any], facts: dict[str, Any], tail: dict[str, Any], comments: Iterable[str] = ()) -> str:
    scenario = {"scenario": facts[_SCENARIO]} if _SCENARIO in facts else {}
    return format_preset({**head, **scenario, **tail}, {key: value for key, value in facts.items() if key != _SCENARIO}, comments)


class _MemoryStore:
    """A store in memory."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.read: dict[str, Profile] = {}

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        if name not in self.read:
            self.read[name] = Profile(parse_document(name, f"{name}.toml", self.files[name]), home=self)
        return self.read[name]

    def find_policy(self, name: str) -> None:
        """Return nothing: these presets belong to no team yet."""


def _prove_leaves(leaves: list[Leaf], files: dict[str, str], folder: str) -> dict[str, tuple[Proof, Proof]]:
    """Return what each leaf was and is: the digest of what it sets, and its scenario."""
    store = _MemoryStore(files)
    resolver = Resolver(lambda reference, _referrer, _index: store.profile(reference))
    found = {}
    for leaf in leaves:
        config = resolver.resolve_profile(store.profile(f"{folder}{leaf.name}"))
        found[leaf.name] = (compute_digest(leaf.settings), leaf.drafts[0].scenario), (config.digest, config.scenario)
    return found
