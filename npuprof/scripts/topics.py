"""Topics of settings, from the catalogue: used in names and descriptions of presets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from npuprof import catalog
from npuprof.document import keys

_MOST_TOPICS, _MOST_LISTED = 2, 5  #: in a name, in a description
#: Pages of the catalogue about an option's status rather than its purpose.
_VAGUE = frozenset(("deprecated", "undocumented", "removed", "basic"))


def find_topic(key: str, value: Any) -> str:
    """Return the topic of a setting: that of its value, else of its option."""
    section, name = keys.split_section_and_name(key)
    if section == "profile":  # the scenario belongs to the option with the same meaning
        return str(value).rpartition("-")[2]
    option = catalog.find_option(key)
    if option is not None:
        plain = option.topic or ("options" if option.page in _VAGUE else option.page)
        return (
            option.value_topics.get(str(value).lower(), plain)
            if isinstance(value, (str, int))
            else plain
        )
    variable = catalog.find_variable(name) if section == "env" else None
    if variable is not None:
        return variable.topic or variable.scope.partition(",")[0] or "environment"
    return {"env": "environment", "atc": "conversion"}.get(section, section.replace("_", "-"))


def _list_topics(settings: Iterable[tuple[str, Any]], most: int | None = None) -> list[str]:
    """Return the topics of settings: enabled ones first, then by frequency.

    No ``device`` together with ``on-device``.
    """
    known = list(settings)
    count: Counter[str] = Counter()
    switched = set()
    for key, value in [
        pair for pair in known if pair[1] is not False
    ] or known:  # disabled settings matter less
        topic, option = find_topic(key, value), catalog.find_option(key)
        count[topic] += 1
        if value is True or (option is not None and str(value).lower() in option.value_topics):
            switched.add(topic)
    topics = sorted(count, key=lambda topic: (topic not in switched, -count[topic], topic))[:most]
    return [topic for topic in topics if not any(other.endswith(f"-{topic}") for other in topics)]


def join_topics(settings: Iterable[tuple[str, Any]]) -> str:
    """Return the topics of settings as a name: ``mixed-precision-on-device``."""
    return "-".join(_list_topics(settings, _MOST_TOPICS))


def describe_topics(settings: Iterable[tuple[str, Any]]) -> str:
    """Return the topics of settings as text: ``mixed precision, on device and training``."""
    every = [topic.replace("-", " ") for topic in _list_topics(settings)]
    listed = every if len(every) <= _MOST_LISTED else [*every[: _MOST_LISTED - 1], "more"]
    return f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else listed[0]
