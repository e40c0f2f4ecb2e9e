"""Flags of an ``atc`` command line: session options where they are twins, flags of their own otherwise."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_full_key
from npuprof.scripts.reading.found import Branch, FoundSetting
from npuprof.scripts.reading.words import Word


def build_flag_setting(path: str, word: Word, name: str, value: Word | None, scope: str, branches: tuple[Branch, ...]) -> FoundSetting:
    """Return one flag of a command line as a setting."""
    plain = name.removeprefix("--")
    option = catalog.options_by_spelling("atc").get(name)
    flag = catalog.find_flag(plain)
    if flag is not None and flag.required:
        option = None  # it belongs to the conversion
    key = option or format_full_key("atc", plain)
    reason = "the flag has no value" if value is None else f"depends on {value.open_part}" if value.open_part else ""
    got = None if reason or value is None else convert_flag_text(option, plain, value.text)
    return FoundSetting(path, word.line, word.column, "atc", key, name, None, got, reason, "" if reason else "str", branches, scope)


def convert_flag_text(option: str | None, name: str, text: str) -> Any:
    """Return the text of a flag as the value a preset holds."""
    record = catalog.find_option(option) if option else catalog.find_flag(name)
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
