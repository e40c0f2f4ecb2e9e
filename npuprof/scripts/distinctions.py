"""What tells presets apart that are about the same, in a word: a value that one of them has and the others have not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.scripts.naming import clean_label, join_names
from npuprof.scripts.topics import find_topic

#: A setting, or an entry of one that has several (``profiling_options``, ``aicpu``), and its value.
_Entry = tuple[str, str, Any]

_NAMING, _SHORT = re.compile(r"[A-Za-z][\w-]{1,24}|.*/.*"), re.compile(r"[\w|,]{1,8}")
_BREAK = re.compile(r"[^A-Za-z0-9]+")
_ON = ("on", "true", True)
_MOST_WORDS = 4  #: of one value, the last ones


def name_apart(name: str, parts: Sequence[Mapping[str, Any]], taken: Sequence[str] = ()) -> list[str]:
    """Return a name for each of several groups of settings: the first has the plain one, the others say besides what they differ in.

    Nothing is said twice; where no word is left, names are the same.
    """
    entries = [list(_list_entries(facts)) for facts in parts]
    names = [name]
    for at, own in enumerate(entries[1:], 1):
        others = [entry for number, more in enumerate(entries) if number != at for entry in more]
        unique = [entry for entry in own if entry not in others]
        differing = [entry for entry in own if entry not in entries[0]]
        usual = {(key, part): str(value) for key, part, value in entries[0]}
        more = [
            [join_names(name, word) for entry in these for word in _list_words(entry, name, usual.get(entry[:2]))]
            for these in (unique, differing)
        ]
        less = [f"{other}-only" for other, known in zip(names, entries, strict=False) if all(entry in known for entry in own)]
        names.append(next((longer for longer in (*more[0], *less, *more[1]) if longer not in (*names, *taken)), name))
    return names


def _list_entries(facts: Mapping[str, Any]) -> Iterator[_Entry]:
    for key, value in facts.items():
        plain = values.build_canonical_value(key, value)
        if isinstance(plain, dict):
            yield from ((key, str(part), item) for part, item in plain.items())
        else:
            yield key, "", value


def _list_words(entry: _Entry, name: str, usual: str | None) -> list[str]:
    """Return words for a setting, the plainest first: what it is about if that is new, its value, its key with that.

    Of a value that is words, or a path, those stand for it that neither the name has nor the value that is usual.
    """
    key, part, value = entry
    said = name.rpartition("/")[2].split("-")
    plain = clean_label(part or key.rpartition(".")[2])
    plain = next((plain.removeprefix(f"{word}-") for word in said if plain.startswith(f"{word}-")), plain)
    topic = find_topic(key, value)
    words = [topic] if usual is None and not set(topic.split("-")) <= set(said) else []
    text = str(value)
    if value in _ON:
        words.append(plain)
    elif isinstance(value, str) and _NAMING.fullmatch(value):
        known = {*said, *_BREAK.split((usual or "").lower())}
        every = [word for word in _BREAK.split(text.lower()) if word]
        telling = [word for word in every if word not in known] or (["relative"] if text.startswith("./") else every)
        words.append("-".join(telling[-_MOST_WORDS:]))
    elif usual is not None and _SHORT.fullmatch(text):
        words.append(f"{plain}-{clean_label(text)}".strip("-"))
    else:
        words += [plain, *([f"{plain}-{clean_label(text)}"] if _SHORT.fullmatch(text) else [])]
    return [word for word in (*words, plain) if word]
