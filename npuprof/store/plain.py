"""Changes given as Python values: made the values of TOML that they mean, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuprof.document import keys
from npuprof.model import Finding, NpuprofError, Step, TomlValue, is_utf8
from npuprof.store import one_time

_DEEPEST = 100
_LARGEST_BITS = 14_000  # Python refuses to write more than 4300 digits
_PLAIN: tuple[tuple[type, Any], ...] = ((str, str.__str__), (bool, bool), (int, int.__int__), (float, float.__float__))


class _UnfitError(Exception):
    """A value that no preset can hold: what is wrong with it."""


def build_plain_steps(changes: Mapping[str, object], unset: Sequence[str] = ()) -> list[Step]:
    """Return changes given as Python values as steps. Raises NpuprofError for what is no key, or no value of TOML."""
    cleared = one_time.parse_assignments([], unset, in_python=True)
    found: list[Step] = []
    for name, value in changes.items():
        one_time.refuse_deep_key(name)
        parsed = keys.parse_key(name)
        if name.strip().startswith("profile."):
            raise NpuprofError([one_time.build_profile_key_finding(name, in_python=True)])
        if parsed is None:
            hint = one_time.suggest_bare_key(name)
            raise NpuprofError([Finding("NP009", f"{name!a} is not a key", "", hint, where=one_time.place_argument("set", in_python=True))])
        try:
            found.append(one_time.build_set_step(*parsed, _convert_value(value, 0), in_python=True))
        except _UnfitError as unfit:
            hint = "give text, a number, a truth value, a date, a list, or a table with texts as keys; to leave a key out name it in unset"
            what, where = f"{ascii(name)[1:-1]} cannot be {unfit}", one_time.place_argument("set", in_python=True)
            raise NpuprofError([Finding("NP202", what, "No preset could hold it.", hint, where=where)]) from None
    return found + cleared


def _convert_value(value: Any, depth: int) -> TomlValue:
    """Return a value as TOML would hold it: tuples and arrays as lists, members of an enum and kinds of numbers as what they stand for."""
    from enum import Enum

    if depth > _DEEPEST:
        raise _UnfitError("nested so deeply, or inside itself")
    if isinstance(value, Enum):
        return _convert_value(value.value, depth + 1)
    for kind, convert in _PLAIN:
        if isinstance(value, kind):
            return _require_writable(convert(value))
    if isinstance(value, (list, tuple)):
        return [_convert_value(one, depth + 1) for one in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {_convert_value(key, depth + 1): _convert_value(one, depth + 1) for key, one in value.items()}
    if _is_date(value):
        return value
    plain = value.tolist() if callable(getattr(value, "tolist", None)) else value  # numbers, truth values and arrays of numpy
    if type(plain) is type(value):
        raise _UnfitError(f"of the type {type(value).__name__}")
    return _convert_value(plain, depth + 1)


def _require_writable(value: TomlValue) -> TomlValue:
    if isinstance(value, str) and not is_utf8(value):
        raise _UnfitError("a text with half a character, which UTF-8 has no bytes for")
    if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        raise _UnfitError("a number of thousands of digits")
    return value


def _is_date(value: object) -> bool:
    from datetime import date, datetime, time

    return type(value) in (date, datetime, time)
