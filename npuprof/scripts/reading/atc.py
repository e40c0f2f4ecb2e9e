"""Flags of an ``atc`` command line: session options where they are twins, flags of their own otherwise."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.document.keys import full
from npuprof.scripts.reading.found import Branch, Found
from npuprof.scripts.reading.words import Word


def flag(path: str, word: Word, name: str, value: Word | None, scope: str, branches: tuple[Branch, ...]) -> Found:
    """Return one flag of a command line as a setting."""
    plain = name.removeprefix("--")
    option = catalog.by_spelling("atc").get(name)
    if plain == "soc_version":
        option = None
    key = option or full("atc", plain)
    reason = "the flag has no value" if value is None else f"depends on {value.open}" if value.open else ""
    got = None if reason or value is None else converted(option, plain, value.text)
    return Found(path, word.line, word.column, "atc", key, name, None, got, reason, "" if reason else "str", branches, scope)


def converted(option: str | None, name: str, text: str) -> Any:
    """Return the text of a flag as the value a preset holds."""
    record = catalog.option(option) if option else catalog.flag(name)
    if record is None:
        return text
    for choice in record.choices:
        if str(choice).lower() == text.lower() and (not isinstance(choice, str) or choice == text):
            return choice
    kind = "" if isinstance(record, catalog.Option) and record.field == "s" else record.kind
    if isinstance(record, catalog.Option) and record.field in ("i", "b"):
        kind = {"i": "int", "b": "bool"}[record.field]
    if kind == "bool" and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if kind in ("int", "float"):
        try:
            return int(text) if kind == "int" else float(text)
        except ValueError:
            return text
    return text
