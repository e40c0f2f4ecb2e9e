"""Flags of an ``atc`` command line: session options if one can express them, else flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from npuprof import catalog
from npuprof.catalog import Flag, Option
from npuprof.catalog.readers import is_taken
from npuprof.document.keys import format_full_key
from npuprof.scripts.script_records import (
    EMPTY,
    NO_VALUE,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
    remove_script_folder,
)
from npuprof.scripts.shell_lexer import Word

#: Marks a flag's text without an equivalent option value.
_MISFIT = object()
_TRUTHS = {"true": True, "false": False}
_FLAG = re.compile(r"--|-[A-Za-z]{2}")


def read_flags(path: str, words: Iterable[Word], scope: str) -> Iterator[ScriptSetting]:
    """Yield the settings of ``atc`` arguments.

    A word that is entirely a placeholder may be any flag, and has no name.
    """
    waiting = list(words)[::-1]
    while waiting:
        word = waiting.pop()
        name, equals, _ = word.text.partition("=")
        if _FLAG.match(name) and str(word.parts[0]).startswith(name):
            value = word.value if equals else None
            # a value may begin with one dash, as a negative number does
            if value is None and waiting and not waiting[-1].text.startswith("--"):
                value = waiting.pop()
            # as ``ParseCommandLine`` in hicann/ge api/atc/cmd_flag_info.cc
            spelled = f"--{name.lstrip('-').replace('-', '_')}"
            yield _build_flag_setting(path, word, spelled, value, scope)
        elif word.open_part:
            unknown = ScriptValue(None, f"depends on {word.open_part}")
            yield ScriptSetting(
                ScriptLocation(path, *word.position), "atc", "", "", unknown, scope=scope
            )


def _build_flag_setting(
    path: str, word: Word, name: str, value: Word | None, scope: str
) -> ScriptSetting:
    """Return one flag of a command line as a setting; ``written`` is its text."""
    plain = name.removeprefix("--")
    twin = catalog.options_by_spelling("atc").get(name)
    flag = catalog.find_flag(plain)
    option = (
        catalog.find_option(twin) if twin and not (flag is not None and flag.required) else None
    )  # else part of the conversion
    reason = (
        NO_VALUE if value is None else f"depends on {value.open_part}" if value.open_part else ""
    )
    text, relative = remove_script_folder(None if reason or value is None else value.text)
    got = _read_as_option(option, flag, text) if option is not None and text is not None else None
    if option is None or got is _MISFIT:
        key, got = format_full_key("atc", plain), None if text is None else read_as_flag(flag, text)
    else:
        key = option.name
    result = ScriptValue(got, reason, "" if reason else "str", text, relative=relative)
    unused = EMPTY if text == "" and flag is not None and ignores_empty(flag) else ""
    return ScriptSetting(
        ScriptLocation(path, *word.position),
        "atc",
        key,
        name,
        result,
        scope=scope,
        unused=unused,
    )


def ignores_empty(flag: Flag) -> bool:
    """Return whether ``atc`` treats an empty text as a missing flag.

    It does if no other default is documented.
    """
    return flag.kind in ("str", "path") and flag.default is None and not flag.required


def _read_as_option(option: Option, flag: Flag | None, text: str) -> Any:
    """Return the option value of a flag's text.

    It is ``_MISFIT`` if there is none, or if the flag accepts more.
    """
    spelt = option.surface_values.get("atc")
    if spelt is not None:
        fitting = [value for value, written in spelt.items() if written == text]
        if not fitting:
            return _MISFIT
        text = fitting[0]
    if option.field == "b" or (option.field is None and option.kind == "bool"):
        return _TRUTHS.get(text, _MISFIT)
    if option.field == "i":
        return read_number(text, _MISFIT)
    return (
        _MISFIT if flag is not None and spelt is None and _takes_more(flag, option, text) else text
    )


def _takes_more(flag: Flag, option: Option, text: str) -> bool:
    """Return whether a flag accepts a text that its option rejects."""
    if option.choices:
        return text not in (*option.choices, *option.tolerated, *option.choices_until) and is_taken(
            flag, text
        )
    known = not option.pattern or any(
        pattern and re.fullmatch(pattern, text) for pattern in (option.pattern, option.lax_pattern)
    )
    return not known and is_taken(flag, text)


def read_as_flag(flag: Flag | None, text: str) -> Any:
    """Return the flag value of a text, the text itself if there is none."""
    if flag is not None and flag.kind == "bool":
        return _TRUTHS.get(text, text)
    return read_number(text, text) if flag is not None and flag.kind == "int" else text


def read_number(text: str, otherwise: Any) -> Any:
    """Return the integer that a text is, ``otherwise`` if it is none."""
    # int() raises ValueError for texts with more than 4,300 digits
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,30}", text, re.ASCII) else otherwise
