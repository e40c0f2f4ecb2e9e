"""What settings are about, in a word: by it presets that are made of scripts are named. The words are the catalogue's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from npuprof import catalog
from npuprof.document import keys

#: Pages of the catalogue that say how well an option is known, and not what it is for.
_VAGUE = frozenset(("deprecated", "undocumented", "removed", "basic"))

_MOST_TOLD = 5  #: in a description


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


def find_page(key: str) -> str:
    """Return the page of the catalogue that an option is on, or what stands for it where it is none."""
    option = catalog.find_option(key)
    return find_topic(key, None) if option is None or option.page in _VAGUE else option.page


def is_deed(key: str, value: Any) -> bool:
    """Return whether a setting does something by itself, and is no detail of another one: a switch that is on, a way to compute."""
    option = catalog.find_option(key)
    return value is True or (option is not None and str(value).lower() in option.value_topics)


def name_topics(settings: Iterable[tuple[str, Any]], most: int) -> list[str]:
    """Return what settings are about, what is switched on first, then what most of them are about; no more than so many words."""
    switched: dict[str, bool] = {}
    count: dict[str, int] = {}
    known = list(settings)
    for key, value in [pair for pair in known if pair[1] is not False] or known:  # what is off says less
        topic = find_topic(key, value)
        count[topic] = count.get(topic, 0) + 1
        switched[topic] = switched.get(topic, False) or is_deed(key, value)
    order = sorted(count, key=lambda topic: (not switched[topic], -count[topic], topic))
    return order[:most]


def drop_said_topics(topics: Sequence[str]) -> list[str]:
    """Return topics without those that another one says as well: ``device`` beside ``on-device``."""
    return [topic for topic in topics if not any(other.endswith(f"-{topic}") for other in topics)]


def describe_topics(settings: Iterable[tuple[str, Any]]) -> str:
    """Return in words what settings are about: ``mixed precision, on device and training``."""
    known = list(settings)
    every = [topic.replace("-", " ") for topic in drop_said_topics(name_topics(known, len(known)))]
    told = every if len(every) <= _MOST_TOLD else [*every[: _MOST_TOLD - 1], "more"]
    return f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]
