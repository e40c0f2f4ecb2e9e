"""The parameter under the cursor, and the hint for values without candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from npuprof.commands.framework import Parameter, Verb, load_verb
from npuprof.document import keys
from npuprof.document.profile import PROFILE_KEYS

#: Metavars of values that are not files.
_NO_FILES = frozenset((
    "CODE", "CODE,", "COND", "KEY", "LEVEL", "N", "NAME=RELEASE", "NAME@VERSION", "NEW", "PRODUCT", "QUERY", "RELEASE", "REV", "REVS",
    "RISK", "TARGET", "TEXT", "URL", "VERSION", "WHEN",
))  # fmt: skip


#: A completion candidate, and its description.
Candidate = tuple[str, str]


def offer(words: Iterable[str], before: str = "") -> Iterator[Candidate]:
    """Return words without descriptions as candidates, each after a text that is typed already."""
    return ((before + word, "") for word in words)


class Place(NamedTuple):
    """A position on a command line: its verb, its parameter, the text before the value in the same word, and the words before it.

    The parameter is None if a flag or nothing is expected.
    """

    verb: type[Verb]
    parameter: Parameter | None
    prefix: str
    given: list[str]


def find_place(words: Sequence[str], current: str) -> Place | None:
    """Return the position after some words; None if no verb is named yet."""
    loaded = load_verb(list(words))
    if loaded is None:
        return None
    _, verb, rest = loaded
    typed = list(rest)
    waiting = _find_waiting_flag(verb, typed, current)
    if waiting is not None:
        return Place(verb, *waiting, typed)
    places = [parameter for parameter in verb.parameters.values() if parameter.kind in ("argument", "arguments")]
    used = len(list_placed_words(verb, typed))
    if not current.startswith("-") and places and (used < len(places) or places[-1].kind == "arguments"):
        return Place(verb, places[min(used, len(places) - 1)], "", typed)
    return Place(verb, None, "", typed)


def describe_wanted_words(words: Sequence[str], current: str) -> str:
    """Return a short description of the value at a position without candidates; empty if it may be a file."""
    place = find_place(words, current)
    if place is None or place.verb.takes_any_word:
        return ""
    parameter = place.parameter
    if parameter is None:
        return "a flag" if current.startswith("-") else "no more words"
    kind = parameter.metavar.rstrip(".")
    if kind == "KEY=VALUE":
        return _describe_value(current[len(place.prefix) :].partition("=")[0])
    if parameter.choices:
        return f"one of {', '.join(parameter.list_choices())}"
    return kind.rstrip(",") if kind in _NO_FILES or parameter.kind == "number" else ""


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


def _find_waiting_flag(verb: type[Verb], words: Sequence[str], current: str) -> tuple[Parameter, str] | None:
    """Return the flag whose value is being completed, with the text before the value in the same word."""
    spelling, equals, _ = current.partition("=")
    if equals and spelling.startswith("--") and spelling in verb.spellings:
        return verb.spellings[spelling], f"{spelling}="
    last = verb.spellings.get(words[-1]) if words else None
    return (last, "") if last is not None and last.kind != "flag" else None


def list_placed_words(verb: type[Verb], words: Iterable[str]) -> list[str]:
    """Return the words that are neither flags nor values of flags."""
    placed = []
    skipped = False
    for word in words:
        if skipped:
            skipped = False
        elif word.startswith("-") and word != "-":
            parameter = verb.spellings.get(word)
            skipped = parameter is not None and parameter.kind != "flag"
        else:
            placed.append(word)
    return placed
