"""Names of the presets of a family: by the script, by the folder of several scripts, or by what their settings are about.

The words for what a setting is about are the catalogue's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from npuprof import catalog
from npuprof.document import keys
from npuprof.scripts.draft import Draft
from npuprof.scripts.naming import name_covering_folder, name_drafts, name_files, number_names
from npuprof.scripts.sharing import Pair

#: The name of a base, by the kind of the presets that extend it.
BASES = {"session": "base", "environment": "base-environment", "conversion": "base-conversion"}
_MIXINS = "mixins"
_MOST_TOPICS = 2  #: in a name
_MOST_LISTED = 5  #: in a description
#: Pages of the catalogue that say how well an option is known, and not what it is for.
_VAGUE = frozenset(("deprecated", "undocumented", "removed", "basic"))


class NamedLeaf(Protocol):
    """What the name of a leaf is made of."""

    name: str
    drafts: list[Draft]
    facts: dict[str, Any]
    own: frozenset[Pair]


def name_leaves(leaves: Sequence[NamedLeaf], taken: Iterable[str] = ()) -> None:
    """Name the leaves of a family, those of most scripts first; what they set themselves has to be settled.

    A leaf of one script has the name of that. One of several is called by the folder that has just these in it, else by what its own
    settings are about. ``taken`` names are those of the bases.
    """
    members = [sorted({draft.file for draft in leaf.drafts}) for leaf in leaves]
    leaves_of = Counter(file for files in members for file in files)
    by_file: dict[str, list[NamedLeaf]] = {}
    for leaf, files in zip(leaves, members, strict=True):
        if len(files) == 1:
            by_file.setdefault(files[0], []).append(leaf)
        else:
            folder = name_covering_folder(files, leaves_of) if all(leaves_of[file] == 1 for file in files) else ""
            own = [(key, leaf.facts[key]) for key in sorted({key for key, _ in leaf.own} or leaf.facts)]
            leaf.name = folder or join_topics(own)
    for file, stem in name_files(sorted(by_file)).items():
        name_drafts(stem, [leaf.drafts[0] for leaf in by_file[file]])
        for leaf in by_file[file]:
            leaf.name = leaf.drafts[0].name
    order = sorted(leaves, key=lambda leaf: len({draft.file for draft in leaf.drafts}) > 1)  # the names of scripts go first
    for leaf, name in zip(order, number_names([leaf.name for leaf in order], (*BASES.values(), *taken, _MIXINS)), strict=True):
        leaf.name = name


def name_mixins(parts: Sequence[dict[str, Any]]) -> list[str]:
    """Return a name for each mix-in: what it is about, then with a number."""
    return number_names([f"{_MIXINS}/{join_topics(facts.items())}" for facts in parts])


def find_topic(key: str, value: Any) -> str:
    """Return what a setting is about: what its value is for, else its option."""
    section, name = keys.split_section_and_name(key)
    if section == "profile":  # the scenario goes with the option that says the same
        return str(value).rpartition("-")[2]
    option = catalog.find_option(key)
    if option is not None:
        plain = option.topic or ("options" if option.page in _VAGUE else option.page)
        return option.value_topics.get(str(value).lower(), plain) if isinstance(value, (str, int)) else plain
    variable = catalog.find_variable(name) if section == "env" else None
    if variable is not None:
        return variable.topic or variable.scope.partition(",")[0] or "environment"
    return {"env": "environment", "atc": "conversion"}.get(section, section)


def _list_topics(settings: Iterable[tuple[str, Any]]) -> list[str]:
    """Return what settings are about: what is switched on first, then what most of them are about."""
    known = list(settings)
    count: Counter[str] = Counter()
    switched: set[str] = set()
    for key, value in [pair for pair in known if pair[1] is not False] or known:  # what is off says less
        topic, option = find_topic(key, value), catalog.find_option(key)
        count[topic] += 1
        if value is True or (option is not None and str(value).lower() in option.value_topics):
            switched.add(topic)
    return sorted(count, key=lambda topic: (topic not in switched, -count[topic], topic))


def _drop_parts(topics: Sequence[str]) -> list[str]:
    """Return topics without those that another one says as well: ``device`` of ``on-device``."""
    return [topic for topic in topics if not any(other.endswith(f"-{topic}") for other in topics)]


def join_topics(settings: Iterable[tuple[str, Any]]) -> str:
    """Return what settings are about as a name: ``mixed-precision-on-device``."""
    return "-".join(_drop_parts(_list_topics(settings)[:_MOST_TOPICS]))


def describe_topics(settings: Iterable[tuple[str, Any]]) -> str:
    """Return in words what settings are about: ``mixed precision, on device and training``."""
    every = [topic.replace("-", " ") for topic in _drop_parts(_list_topics(settings))]
    listed = every if len(every) <= _MOST_LISTED else [*every[: _MOST_LISTED - 1], "more"]
    return f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else listed[0]
