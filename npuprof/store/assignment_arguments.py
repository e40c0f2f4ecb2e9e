"""Parses ``KEY=VALUE`` and ``KEY`` arguments to steps, with hints for invalid ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time
from enum import Enum

from npuprof import catalog
from npuprof.catalog.programs import spell_key
from npuprof.document import is_nested_too_deeply, keys, parse_toml_value
from npuprof.model import (
    SECTIONS,
    Any,
    Finding,
    NpuprofError,
    Place,
    Step,
    TomlValue,
    build_error,
    did_you_mean,
    is_utf8,
    raise_any,
)
from npuprof.report import format_option

_DEEPEST = 100

_LARGEST_BITS = 14_000  # Python cannot print integers with more than 4300 digits

_PLAIN: tuple[tuple[type, Any], ...] = (
    (str, str.__str__),
    (bool, bool),
    (int, int.__int__),
    (float, float.__float__),
)


def suggest_assignment(text: str) -> str:
    """Return how to write an invalid assignment."""
    if keys.parse_key(text):
        return f"write {text}=VALUE without blanks"
    return "write KEY=VALUE without blanks: hccl_timeout=600, or env.HCCL_CONNECT_TIMEOUT=600"


def suggest_bare_key(text: str) -> str:
    """Return how to write an invalid key: without its value, if it has one."""
    name, equals, _ = text.partition("=")
    return (
        f"write {name.strip()}, without a value"
        if equals and keys.parse_key(name)
        else "write the option's name, or section.name"
    )


def is_doubled(name: str, raw: str) -> bool:
    """Return whether ``KEY==VALUE`` was written, like a comparison; valid only for variables."""
    # the text of a variable may begin with "="
    return raw.startswith("=") and not name.strip().startswith("env.")


def require_closed_quote(text: str) -> None:
    """Raise NpuprofError for a ``KEY=VALUE`` whose opening quote is not closed.

    The quote would be part of the text.
    """
    name, _, value = text.partition("=")
    value = value.strip()
    # a single quote alone is a valid text, and other quotes may be inside
    if value[:1] in ("'", '"') and len(value) > 1 and value.count(value[0]) == 1:
        what = f"the quote before the value of {name.strip()} is not closed"
        hint = f"omit the quote: {name.strip()}={value[1:]}"
        raise build_error("NP009", what, "It would be part of the text.", hint)


def suggest_key(key: str, known: Collection[str], otherwise: str = "") -> str:
    """Return the hint for a missing key: its name in another section, else a similar known key."""
    elsewhere = catalog.find_key_elsewhere(key, known)
    return f"write {elsewhere}" if elsewhere else did_you_mean(key, known, otherwise)


def suggest_unknown_key(key: str, otherwise: str = "") -> str:
    """Return the hint for a key unknown to the catalogue: similar keys of its section.

    ``otherwise`` if there are none.
    """
    section, name = keys.split_section_and_name(key)
    if catalog.find_record(section, name) is not None or section not in SECTIONS:
        return otherwise
    return did_you_mean(
        key,
        [keys.format_full_key(section, record) for record in catalog.record_names(section)],
        otherwise,
    )


def require_shallow_key(text: str) -> None:
    """Raise NpuprofError for a key with more segments than any value has levels."""
    if keys.is_too_deep(text):
        what = (
            f"{keys.format_short_value(text)} is a key of "
            f"{len(keys.split_dotted_key(text) or ())} parts"
        )
        raise build_error(
            "NP009",
            what,
            "No value is nested that deeply.",
            "name the option and the key inside it",
        )


def build_profile_key_finding(key: str, argument: str = "set", in_python: bool = False) -> Finding:
    """Return the finding for changing a ``[profile]`` key, which is metadata, for one command."""
    why = "[profile] is metadata of a preset; only settings can be changed for one command."
    hint = f"write it into the preset, as in npuprof set NAME {key.strip()}=VALUE"
    return Finding(
        "NP009",
        f"{key.strip()!r} is no setting",
        why,
        hint,
        where=place_argument(argument, in_python),
    )


def place_argument(name: str, in_python: bool = False) -> Place:
    """Return the location of a one-time change: ``--set``, in Python ``set``."""
    return Place(format_option(name, in_python=in_python))


def parse_assignments(
    set_: Sequence[str], unset: Sequence[str] = (), argument: str = "set", in_python: bool = False
) -> list[Step]:
    """Return ``KEY=VALUE`` (from ``argument``) and ``KEY`` arguments as steps.

    Raises NpuprofError.
    """
    results = [
        *(_parse_assignment(text, argument) for text in set_),
        *(_parse_unset(text, in_python) for text in unset),
    ]
    raise_any([result for result in results if isinstance(result, Finding)])
    return [result for result in results if isinstance(result, Step)]


def _parse_assignment(text: str, argument: str) -> Step | Finding:
    """Return the step of ``KEY=VALUE``, or why there is none."""
    name, equals, raw = text.partition("=")
    require_shallow_key(name)
    parsed = keys.parse_key(name)
    # before the syntax: the advice for other keys would not help
    if name.strip().startswith("profile."):
        return build_profile_key_finding(name, argument)
    if not equals or parsed is None or is_doubled(name, raw):
        what = f"{text!r} is not KEY=VALUE"
        return Finding("NP009", what, "", suggest_assignment(text), where=place_argument(argument))
    require_closed_quote(text)
    key, tail = parsed
    # below a setting, the catalogue's type of the whole setting does not apply
    value = parse_assigned_value(key if not tail else "", raw.strip())
    return build_set_step(key, tail, value, argument)


def _parse_unset(text: str, in_python: bool) -> Step | Finding:
    """Return the step that unsets a key, or why there is none."""
    require_shallow_key(text)
    parsed = keys.parse_key(text)
    if text.strip().startswith("profile."):
        return build_profile_key_finding(text, "unset", in_python)
    if parsed is None:
        where = place_argument("unset", in_python)
        return Finding("NP009", f"{text!r} is not a key", "", suggest_bare_key(text), where=where)
    key, tail = spell_key(parsed[0]) or parsed[0], parsed[1]
    return Step("unset", key, None, (format_option("unset", in_python=in_python), key), tail)


def build_set_step(
    key: str,
    tail: tuple[str, ...],
    value: TomlValue,
    argument: str = "set",
    in_python: bool = False,
) -> Step:
    """Return a step that sets a key, or a path below it.

    The step's path begins with the argument.
    """
    key = spell_key(key) or key
    # a set of a table is merged, so that other parts of the value stay
    for part in reversed(tail):
        value = {part: value}
    return Step("set", key, value, (format_option(argument, in_python=in_python), key))


def parse_assigned_value(key: str, text: str) -> TomlValue:
    """Return the value in ``KEY=VALUE``: parsed as TOML if possible, else text.

    Always text for text settings.
    """
    try:
        value = parse_toml_value(text)
    except (ValueError, RecursionError):
        return text
    # as in a preset, where such a value is rejected
    if is_nested_too_deeply({key: value}):
        return text
    option = catalog.find_option(key) if key else None
    wants_text = option is not None and option.field == "s"
    section = keys.split_section_and_name(key)[0] if key else "options"
    # "0012" or "1e3" is a text there: a number would be written differently
    if (wants_text or section == "env") and not isinstance(value, (str, dict, list)):
        return text
    return value


class _UnfitError(Exception):
    """Raised for a value that no preset can contain."""


def build_plain_steps(changes: Mapping[str, object], unset: Sequence[str]) -> list[Step]:
    """Return changes given as Python values as steps.

    Raises NpuprofError for invalid keys and values.
    """
    cleared = parse_assignments([], unset, in_python=True)
    steps = []
    for name, value in changes.items():
        require_shallow_key(name)
        parsed = keys.parse_key(name)
        if name.strip().startswith("profile."):
            raise NpuprofError(build_profile_key_finding(name, in_python=True))
        if parsed is None:
            hint = suggest_bare_key(name)
            where = place_argument("set", in_python=True)
            raise build_error("NP009", f"{name!a} is not a key", "", hint, where=where)
        try:
            steps.append(build_set_step(*parsed, _convert_value(value, 0), in_python=True))
        except _UnfitError as unfit:
            what = f"{ascii(name)[1:-1]} cannot be {unfit}"
            hint = (
                "give text, a number, a truth value, a date, a list, or a table with texts as "
                "keys; to omit a key, list it in unset"
            )
            where = place_argument("set", in_python=True)
            raise build_error(
                "NP202", what, "No preset could hold it.", hint, where=where
            ) from None
    return steps + cleared


def _convert_value(value: Any, depth: int) -> TomlValue:
    """Return a value as TOML: arrays as lists, enum members and number types as plain values."""
    if depth > _DEEPEST:
        raise _UnfitError("nested so deeply, or inside itself")
    # before the plain types: an IntEnum is an int, too
    if isinstance(value, Enum):
        return _convert_value(value.value, depth + 1)
    for kind, convert in _PLAIN:
        if isinstance(value, kind):
            # subclasses of str or int would keep their own __str__
            return _require_writable(convert(value))
    if isinstance(value, (list, tuple)):
        return [_convert_value(item, depth + 1) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {
            _convert_value(key, depth + 1): _convert_value(item, depth + 1)
            for key, item in value.items()
        }
    # subclasses may have other texts, such as the timestamps of pandas
    if type(value) in (date, datetime, time):
        return value
    # numbers, booleans and arrays of numpy
    plain = value.tolist() if callable(getattr(value, "tolist", None)) else value
    # no progress: converting it again would not end
    if type(plain) is type(value):
        raise _UnfitError(f"of the type {type(value).__name__}")
    return _convert_value(plain, depth + 1)


def _require_writable(value: TomlValue) -> TomlValue:
    if isinstance(value, str) and not is_utf8(value):
        raise _UnfitError("a text with half a character, which UTF-8 has no bytes for")
    if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        raise _UnfitError("a number of thousands of digits")
    return value
