"""Finds rules, error codes and settings by the message that a program prints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from npuprof.catalog import load_built_part, load_sections
from npuprof.catalog.wire import load_wires
from npuprof.model import Record


class ErrorCode(Record):
    """An error code, or a message without one, and its settings as full keys.

    The fields are those of ``error_codes.toml``.
    """

    meaning: str
    source: tuple[str, ...]
    code: str = ""
    releases: str = ""
    settings: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    name: str = ""


#: The consecutive words of a message by which a text is recognised, and how many such runs a text
#: has at least, unless it has all.
_SHARED_WORDS = 6
_SHARED_RUNS = 3
#: The sections whose settings CANN itself reads.
_CANN = ("env", "options", "atc")
#: A name, and the dashes or the quote before it. Parts of paths and of other names are none.
_NAMED = re.compile(r"(?<![\w./-])(?<!::)(--|[\"'`\[]?)([A-Za-z][\w.]*\w)(?![\w/-]|::)", re.ASCII)


def list_rules_with_message(text: str) -> list[str]:
    """Return the codes of the rules whose program prints a text, such as a line of a log.

    Letter case, punctuation and values around the fixed part of the message do not matter.
    """
    pasted = _normalise(text)
    rules = load_built_part("rule_texts")["rules"]
    counts = {code: _count_runs(rule.get("message", ""), pasted) for code, rule in rules.items()}
    most = max(counts.values())
    return [code for code, count in counts.items() if 0 < count == most]


def list_errors_with_message(text: str) -> list[ErrorCode]:
    """Return the error codes in a text, and those whose message or search term it contains.

    Their settings include those that the message names.
    """
    words = set(re.findall(r"[A-Z0-9_]+", text.upper()))
    pasted = _normalise(text)
    found = []
    for row in load_built_part("error_codes"):
        error = ErrorCode(**row)
        if (
            error.code in words
            or any(term in text for term in error.terms)
            or any(_count_runs(message, pasted) for message in error.messages)
        ):
            named = [
                key
                for match in (re.finditer(error.name, text) if error.name else ())
                for name in match.groups()
                for key in _list_keys(name, _CANN)
            ]
            found.append(error._replace(settings=tuple(dict.fromkeys((*error.settings, *named)))))
    return found


def list_named_settings(text: str) -> list[str]:
    """Return the settings that a text names, as full keys.

    They are variables, flags with their dashes, and quoted settings that only one framework has. A
    name without underscores may be a word.
    """
    frameworks = [name for name, section in load_sections().items() if section.dotted]
    named = []
    for mark, name in _NAMED.findall(text):
        is_plain = name.isupper() or mark == "--"
        if "_" in name and (is_plain or mark):
            keys = _list_keys(name, _CANN if is_plain else frameworks)
            named += keys if is_plain or len(keys) == 1 else []
    return list(dict.fromkeys(named))


@cache
def _list_engine_names() -> dict[str, str]:
    """Return the options by the keys that GE has for them."""
    return {
        key: wire.name
        for wire in load_wires().values()
        for key in (*wire.init, *wire.session, *wire.graph)
    }


def _list_keys(name: str, sections: Iterable[str]) -> list[str]:
    """Return the full keys that sections have for a name, or for the option that it is in GE."""
    plain = _list_engine_names().get(name, name)
    found = [load_sections()[section] for section in sections]
    return [section.format_key(plain) for section in found if section.find(plain)]


def _count_runs(message: str, pasted: str) -> int:
    """Return how many runs of words a message shares with a text, 0 if they are too few."""
    words = _normalise(message).split()
    last = max(len(words) - _SHARED_WORDS, 0)
    runs = [" ".join(words[at : at + _SHARED_WORDS]) for at in range(last + 1)]
    count = sum(bool(run) and f" {run} " in f" {pasted} " for run in runs)
    return count if count >= min(len(runs), _SHARED_RUNS) else 0


def _normalise(text: str) -> str:
    """Return the words of a text, in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))
