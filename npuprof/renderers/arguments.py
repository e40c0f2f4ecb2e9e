"""The arguments of a program as words of its command; those of verl are overrides of Hydra."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from npuprof import catalog
from npuprof.catalog.programs import spell_flag
from npuprof.document import keys
from npuprof.model import LONGEST_WORD, TYPE_CHECKING, NpuprofError, Path, is_utf8, raise_any
from npuprof.renderers import (
    ARGUMENT_SECTIONS,
    ARGUMENTS,
    build_formless_finding,
    build_setting_finding,
)
from npuprof.renderers.shell import quote_posix
from npuprof.resolve.config import Config
from npuprof.system import lazy_pattern

if TYPE_CHECKING:
    from typing import Any

    #: Takes section, path and value of an argument; returns its rows. Raises ValueError.
    Writer = Callable[[str, Path, Any], list[Any]]

_FORMLESS = "There is no form in which the program reads this value."
_UNSTARTABLE = (
    "No program starts with NUL characters, invalid UTF-8 or more than "
    f"{LONGEST_WORD} bytes in an argument."
)
_NEGATIVE = lazy_pattern(r"-\d+|-\d*\.\d+")
# Hydra's grammar of keys: a path, or a group of files, and a package
_NAME = "[A-Za-z_][A-Za-z0-9_-]*"
_PART = r"[A-Za-z_$][A-Za-z0-9_$-]*"
_STEP = rf"(?:{_PART}|0|[1-9](?:_?[0-9])*)"
_PACKAGE = rf"(?:{_STEP}(?:\.{_STEP})+|{_PART})"
_HYDRA_KEY = lazy_pattern(rf"(?:~|\+\+?)?(?:{_PACKAGE}|{_NAME}(?:/{_NAME})+)(?:@(?:{_PACKAGE})?)?")
#: Texts that Hydra reads as texts without quotes.
_HYDRA_TEXT = lazy_pattern(r"(?!(?i:null|true|false|inf|nan)\Z)[A-Za-z_/][A-Za-z0-9_/.-]*")
#: The places of a quoted text in which backslashes count: before a quote, and before the end.
_QUOTED = lazy_pattern(r"(\\*)('|\Z)")


def fill_command(config: Config, command: Sequence[str]) -> list[str]:
    """Return a command with the arguments of a config in place of each word ``{args}``.

    Raises NpuprofError for unfit values.
    """
    if ARGUMENTS not in command:
        return [*command]
    words = list_words(config)
    return [part for word in command for part in (words if word == ARGUMENTS else (word,))]


def list_words(config: Config) -> list[str]:
    """Return the arguments of a config as words of a command. Raises NpuprofError."""
    return [word for row in _list_arguments(config) for word in row]


def format_array(config: Config) -> str:
    """Return the arguments of a config as an array of bash and zsh. Raises NpuprofError."""
    # zsh replaces =NAME by the path of a program
    rows = [
        [quote_posix(word, bare=not word.startswith("=")) for word in row]
        for row in _list_arguments(config)
    ]
    return "\n".join(["ARGS=(", *(f"  {' '.join(row)}" for row in rows), ")\n"])


def _list_arguments(config: Config) -> list[list[str]]:
    """Return the words of each argument. Raises NpuprofError."""
    # Hydra's parser takes its own flags only before or after all overrides
    rows = list_rows(config, list_argument_words, ARGUMENT_SECTIONS, "args")
    return sorted(rows, key=lambda row: not row[0].startswith("-"))


def list_rows(config: Config, write: Writer, sections: Sequence[str], target: str) -> list[Any]:
    """Return the rows of all arguments, if they are of one of the sections.

    Raises NpuprofError for arguments of two programs, and for unfit values.
    """
    used = [name for name in ARGUMENT_SECTIONS if config.shared_sections[name]]
    if len(used) > 1:
        key = keys.format_full_key(used[1], next(iter(config.shared_sections[used[1]])))
        what = f"{' and '.join(f'[{name}]' for name in used)} are arguments of different programs"
        why = "A command starts one program."
        hint = "keep each of them in a preset of its own"
        raise NpuprofError(build_setting_finding(config, "NP901", key, what, why, hint))
    rows = []
    problems = []
    for section in used if used and used[0] in sections else ():
        for path, value in keys.list_table_leaves(config.shared_sections[section]):
            try:
                rows += write(section, path, value)
            except ValueError as error:
                key = keys.format_full_key(section, path[0])
                shown = keys.format_key_path(key, path[1:])
                finding = build_formless_finding(config, shown, target, str(error))
                problems.append(finding._replace(origin=config.origin(key, path[1:])))
    raise_any(problems)
    return rows


def list_argument_words(section: str, path: Path, value: Any) -> list[list[str]]:
    """Return the words of an argument, for each time that it is repeated. Raises ValueError."""
    name = ".".join(path)
    if section == "verl" and not name.startswith("-"):
        rows = _list_overrides(name, value)
    else:
        rows = _list_flags(section, name, value)
    for word in (word for row in rows for word in row):
        if "\0" in word or not is_utf8(word) or len(word.encode()) > LONGEST_WORD:
            raise ValueError(_UNSTARTABLE)
    return rows


def _list_flags(section: str, name: str, value: Any) -> list[list[str]]:
    """Return flags with their values, as argparse reads them. Raises ValueError."""
    flag = spell_flag(name)
    if value is True:
        return [[flag]]
    if value is False:
        record = catalog.find_setting(section, name)
        return [[negation] for negation in record.negations[:1]] if record else []
    if value == {}:
        return []
    rows = value if isinstance(value, list) else [[value]]
    if not rows or not all(isinstance(row, list) for row in rows):
        rows = [rows]
    return [_join_flag(flag, [*map(format_text, row)]) for row in rows]


def _join_flag(flag: str, texts: list[str]) -> list[str]:
    # argparse of Python 3.11 fails at this one even behind =
    if texts == ["--"]:
        raise ValueError(_FORMLESS)
    # argparse would take it as a flag, or as the name of a file
    if len(texts) == 1 and texts[0].startswith(("-", "@")):
        return [f"{flag}={texts[0]}"]
    if any(text.startswith("-") and not _NEGATIVE.fullmatch(text) for text in texts):
        raise ValueError("Among several values, argparse takes one with a dash as a flag.")
    return [flag, *texts]


def format_text(value: Any) -> str:
    """Return a text or number as text. Raises ValueError for others."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(_FORMLESS)
    return str(value)


def _list_overrides(name: str, value: Any) -> list[list[str]]:
    """Return the override of Hydra that sets a key, or deletes it. Raises ValueError."""
    if not _HYDRA_KEY.fullmatch(name):
        raise ValueError("Hydra's grammar has no such key.")
    if name.startswith("~") and isinstance(value, bool):
        return [[name]] if value else []
    return [[f"{name}={_format_hydra_value(value)}"]]


def _format_hydra_value(value: Any) -> str:
    """Return a value in Hydra's grammar. Raises ValueError."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(map(_format_hydra_value, value))}]"
    if isinstance(value, dict):
        if not all(map(_HYDRA_TEXT.fullmatch, value)):
            raise ValueError("Hydra's grammar has no such key of a table.")
        pairs = [f"{key}:{_format_hydra_value(item)}" for key, item in value.items()]
        return f"{{{','.join(pairs)}}}"
    text = format_text(value)
    if not isinstance(value, str) or text == "null" or _HYDRA_TEXT.fullmatch(text):
        return text
    return f"'{_QUOTED.sub(_escape_quote, text)}'"


def _escape_quote(match: re.Match[str]) -> str:
    return match[1] * 2 + ("\\'" if match[2] else "")
