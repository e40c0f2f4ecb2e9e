"""Names of the presets of a family, such as a person would choose: by the model, and where many models share one, by what it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from npuprof.scripts.distinctions import name_apart
from npuprof.scripts.draft import Draft, Source
from npuprof.scripts.naming import find_covering_folder, name_drafts, name_files, number_names
from npuprof.scripts.sharing import Pair
from npuprof.scripts.topics import drop_said_topics, find_page, find_topic, is_deed, name_topics

#: The name of a base, by the kind of the presets that extend it.
BASES = {"session": "base", "environment": "base-environment", "conversion": "base-conversion"}
_MIXINS = "mixins"
_MOST_TOPICS = 2  #: in the name of a mix-in


class NamedLeaf(Protocol):
    """What the name of a leaf is made of."""

    name: str
    drafts: list[Draft]
    facts: dict[str, Any]
    own: frozenset[Pair]

    @property
    def sources(self) -> list[Source]:
        """The configurations that it stands for."""


def name_leaves(leaves: Sequence[NamedLeaf], taken: Iterable[str] = ()) -> None:
    """Name the leaves of a family, those of most scripts first; what they say for themselves has to be settled.

    A leaf of one script has the name of that. One of several is called by the folder that holds just these, else by what it does,
    and if others do the same by what it has besides, else as the first of its scripts. ``taken`` names are those of the bases.
    """
    members = [list(dict.fromkeys(draft.file for draft in leaf.drafts)) for leaf in leaves]
    holders = Counter(file for files in members for file in files)
    everything = sorted(holders)
    files = [these[0] for these in members]  #: what a leaf is called by if it is not called by what it does
    wanted = [""] * len(leaves)
    doing: dict[str, list[int]] = {}
    for at, leaf in enumerate(leaves):
        if len(members[at]) > 1:
            alone = all(holders[file] == 1 for file in members[at])
            folder = find_covering_folder(members[at], everything) if alone else ""
            if folder:
                files[at] = f"{folder}/main.py"
            else:
                doing.setdefault(_name_deed(leaf), []).append(at)
    for deed, places in doing.items():
        for at, name in zip(places, name_apart(deed, [leaves[at].facts for at in places], (*doing, *wanted)), strict=True):
            wanted[at] = name if name not in wanted else ""
    by_file: dict[str, list[int]] = {}
    for at, file in enumerate(files):
        if not wanted[at]:
            by_file.setdefault(file, []).append(at)
    stems = name_files(sorted(by_file))
    for file, places in by_file.items():
        drafts = [leaves[at].drafts[0] for at in places]
        name_drafts(stems[file], drafts)
        for at, draft in zip(places, drafts, strict=True):
            wanted[at] = draft.name
    singles = [at for at, these in enumerate(members) if len(these) == 1]  # the names of scripts go before what they do
    order = [*singles, *(at for at in range(len(leaves)) if at not in set(singles))]
    for at, name in zip(order, number_names([wanted[at] for at in order], (*BASES.values(), *taken, _MIXINS)), strict=True):
        leaves[at].name = name


def _name_deed(leaf: NamedLeaf) -> str:
    """Return what a leaf does that its base does not: ``mixed-precision``, ``profiling-training``; what its base does where that is all."""
    own = [(key, leaf.facts[key]) for key in sorted({key for key, _ in leaf.own} or leaf.facts)]
    claims = {find_topic(key, value) for key, value in own if key.startswith("profile.")}
    plain = [(key, value) for key, value in own if find_topic(key, value) not in claims]
    return "-".join(drop_said_topics([*name_topics(plain, 2), *sorted(claims)]))


def name_mixins(parts: Sequence[dict[str, Any]]) -> list[str]:
    """Return a name for each mix-in: what it switches on and is about, where it is about much what most of it is about.

    Where several are, what tells them apart comes behind it. Who lays a mix-in over a preset reads its name only: it hides nothing
    that is shared.
    """
    alike: dict[str, list[int]] = {}
    for at, facts in enumerate(parts):
        alike.setdefault(f"{_MIXINS}/{'-'.join(_list_shared_topics(facts))}", []).append(at)
    names = [""] * len(parts)
    for name, places in alike.items():
        for at, apart in zip(places, name_apart(name, [parts[at] for at in places], (*alike, *names)), strict=True):
            names[at] = apart
    return number_names(names)


def _list_shared_topics(facts: dict[str, Any]) -> list[str]:
    """Return what a mix-in switches on, and what else it sets that is no detail of that: of another page, where it is about few things."""
    deeds = [(key, value) for key, value in facts.items() if is_deed(key, value)]
    switched = dict.fromkeys(find_topic(key, value) for key, value in deeds)
    pages = {find_page(key) for key, _ in deeds}
    others = sorted({find_topic(key, value) for key, value in facts.items() if find_page(key) not in pages} - {*switched})
    if len(switched) + len(others) <= _MOST_TOPICS:
        return [*switched, *others]
    return list(switched) or name_topics(facts.items(), 1)
