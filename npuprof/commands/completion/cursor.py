"""The parameter under the cursor, and the hint for values without candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from npuprof.commands.framework import Parameter, Verb, load_verb
from npuprof.document import keys
from npuprof.document.profile import PROFILE_KEYS

#: What ``Parameter.complete`` says of values that may be files.
_WITH_FILES = frozenset(("", "source", "spec", "store", "topic", "values"))
#: A completion candidate, and its description.
Candidate = tuple[str, str]


def offer(words: Iterable[str], before: str = "") -> Iterator[Candidate]:
    """Return words without descriptions as candidates, each after a text that is typed already."""
    return ((before + word, "") for word in words)


def first_sentence(text: str) -> str:
    """Return the description of a candidate: the first sentence of a help text."""
    return text.partition(". ")[0].rstrip(".")[:72]


class Place(NamedTuple):
    """A position on a command line: its verb, its parameter, and the words of the verb before it.

    The parameter is None if a flag or nothing is expected. ``current`` is the beginning of its
    value, ``prefix`` the text before it in the same word.
    """

    verb: type[Verb]
    parameter: Parameter | None
    given: list[str]
    current: str
    prefix: str = ""

    @property
    def store(self) -> str | None:
        """The store that the command line selects."""
        words = iter(self.given)
        for word in words:
            flag, equals, value = word.partition("=")
            if flag == "--store":
                return value if equals else next(words, None)
        return None

    @property
    def placed(self) -> list[str]:
        """The words that are neither flags nor values of flags."""
        placed = []
        words = iter(self.given)
        for word in words:
            if not word.startswith("-") or word == "-":
                placed.append(word)
            elif (parameter := self.verb.spellings.get(word)) and parameter.kind != "flag":
                next(words, None)
        return placed


def find_place(words: Sequence[str], current: str) -> Place | None:
    """Return the position after some words; None if no verb is named yet."""
    loaded = load_verb(list(words))
    if loaded is None:
        return None
    _, verb, words = loaded
    spelling, equals, value = current.partition("=")
    if equals and spelling.startswith("--") and spelling in verb.spellings:
        return Place(verb, verb.spellings[spelling], words, value, f"{spelling}=")
    place = Place(verb, verb.spellings.get(words[-1]) if words else None, words, current)
    if place.parameter is not None and place.parameter.kind != "flag":
        return place
    free = [parameter for parameter in verb.parameters.values() if not parameter.flags]
    used = len(place.placed)
    if not current.startswith("-") and free and (used < len(free) or free[-1].kind == "arguments"):
        return place._replace(parameter=free[min(used, len(free) - 1)])
    return place._replace(parameter=None)


def describe_wanted_words(words: Sequence[str], current: str) -> str:
    """Return a short description of the value at a position without candidates.

    Empty if it may be a file.
    """
    place = find_place(words, current)
    if place is None or place.verb.takes_any_word:
        return ""
    parameter = place.parameter
    if parameter is None:
        return "a flag" if current.startswith("-") else "no more words"
    if parameter.complete == "assignment":
        return _describe_value(place.current.partition("=")[0])
    if parameter.choices:
        return f"one of {', '.join(parameter.list_choices())}"
    return (
        ""
        if parameter.complete in _WITH_FILES and parameter.kind != "number"
        else parameter.metavar.rstrip(".,")
    )


def find_key_record(key: str) -> Any:
    """Return the record of a key, or None."""
    from npuprof import catalog

    section, name = catalog.find_record_place(*(keys.parse_key(key) or (key, ())))
    return None if section == "estimator" else catalog.find_record(section, name)


def _describe_value(key: str) -> str:
    """Return a short description of a key's value; empty if it is a path."""
    section, _, name = key.rpartition(".")
    record = find_key_record(key)
    if record is None:
        known = PROFILE_KEYS.get(name) if section == "profile" else None
        return known.kind if known is not None else "a value"
    if record.kind.startswith("path"):
        return ""
    if record.kind not in ("int", "float"):
        return "a text"
    wanted = "a whole number" if record.kind == "int" else "a number"
    low, high = getattr(record, "minimum", None), getattr(record, "maximum", None)
    if low is None and high is None:
        return wanted
    return f"{wanted}, {keys.format_range(low, high)}"
