"""Faults common to all values, and guesses of the intended value for hints.

No guess if it is ambiguous.

A hint never replaces a value by its opposite: if only the opposite is allowed, there is no hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from npuprof import catalog
from npuprof.checks.view import Fault
from npuprof.document.keys import format_short_value, is_no_number
from npuprof.model import Any, Fix, find_nearest_names
from npuprof.system import lazy_pattern

#: No value.
UNKNOWN: Any = object()

_YES = frozenset(
    (
        "true",
        "yes",
        "on",
        "y",
        "t",
        "1",
        "enable",
        "enabled",
        "allow",
        "allowed",
        "open",
        "opened",
        "always",
    )
)
_NO = frozenset(
    (
        "false",
        "no",
        "off",
        "n",
        "f",
        "0",
        "disable",
        "disabled",
        "none",
        "never",
        "close",
        "closed",
        "forbid",
        "forbidden",
        "not",
    )
)
#: Other names of number types, with their short names.
_TYPES = {"bfloat": "bf", "float": "fp", "hifloat": "hif", "hf": "hif"}
_NUMBER_TYPE = lazy_pattern(
    r"(?<![a-z])(?P<type>bfloat|bf|float|fp|hifloat|hif|hf|int)(?P<bits>64|32|16|8|4)(?![0-9])"
)
_NEGATION = lazy_pattern(r"(?:no|not|non|dis|un|without)(?:[-_]|(?<=dis)|(?<=un))")
_NUMBER = lazy_pattern(
    r"(?P<number>[+-]?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?(?:e\d+)?)\s*(?P<unit>[a-zµ%]*)",
    re.IGNORECASE | re.ASCII,
)
#: Longer texts are not searched for a number or name.
_LONGEST_NOISY = 500
#: A comment after a value that became part of its text: " // note", " # note", " /* note */", " --
#: note".
_COMMENT = lazy_pattern(r"\s+(?://|#|/\*|--|;).*", re.DOTALL)
_SUM = lazy_pattern(r"\d+[a-zµ]+", re.IGNORECASE | re.ASCII)
_SECONDS = {
    **dict.fromkeys(("us", "µs"), 1e-6),
    "ms": 1e-3,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_BYTES = {
    **dict.fromkeys(("b", "byte", "bytes"), 1.0),
    **dict.fromkeys(("k", "kb", "kib"), 1024.0),
    **dict.fromkeys(("m", "mb", "mib"), 1024.0**2),
    **dict.fromkeys(("g", "gb", "gib"), 1024.0**3),
    **dict.fromkeys(("t", "tb", "tib"), 1024.0**4),
}


def strip_noise(value: Any) -> Any:
    """Return a value without surrounding syntax of other files.

    Examples are a comment, a comma, quotes, and an assignment operator.
    """
    if not isinstance(value, str) or len(value) > _LONGEST_NOISY:
        return value
    plain = _COMMENT.sub("", value.strip(), 1).strip()
    while plain:
        if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'`":
            stripped = plain[1:-1]
        elif plain[-1] in ",;":
            stripped = plain.rstrip(",;")
        elif plain[0] in "=:":
            stripped = plain.lstrip("=:")
        else:
            break
        plain = stripped.strip()
    return plain


def read_truth(value: Any) -> bool | None:
    """Return a value as a boolean: ``"off"``, 0 and ``"disabled"`` are False.

    None if it is neither.
    """
    if isinstance(value, (bool, int, float)):
        return bool(value) if value in (0, 1) else None
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in _YES:
        return True
    return False if text in _NO else None


def read_number(value: Any, unit: str = "") -> int | float | None:
    """Return the number in a text, in a unit: ``"1h"`` is 3600 in seconds.

    None if there is none.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, str):
        return None
    match = _NUMBER.fullmatch(value.strip())
    if match is None:
        return _read_sum(value, unit)
    digits, suffix = match["number"], match["unit"].lower()
    number = float(re.sub(r"[_,]", "", digits))
    if suffix:
        factor = _find_factor(suffix, unit.lower())
        if factor is None:
            return None
        number *= factor
    if not -(2.0**63) <= number < 2.0**63:
        return None
    # A float has 53 bits, so a plain integer is read from its digits.
    if not suffix and re.fullmatch(r"[+-]?\d+", digits, re.ASCII):
        return int(digits)
    return int(number) if number.is_integer() else number


def _find_factor(suffix: str, unit: str) -> float | None:
    """Return the factor from one unit of time or size to another, None if they differ in kind."""
    for units in (_SECONDS, _BYTES):
        if suffix in units and unit in units:
            return units[suffix] / units[unit]
    return None


def _read_sum(text: str, unit: str) -> int | float | None:
    """Return the number in a text with several units, ``"1h30m"``; None if it is invalid."""
    parts = _SUM.findall(text) if len(text) < 100 else []
    if len(parts) < 2 or "".join(parts) != text.replace(" ", ""):
        return None
    total: int | float = 0
    for part in parts:
        number = read_number(part, unit)
        if number is None:
            return None
        total += number
    return total


def guess_choice(value: Any, choices: Sequence[Any], numbered: bool = False) -> Any:
    """Return the only choice that a value can mean, else ``UNKNOWN``.

    ``numbered`` choices are never booleans.
    """
    value = strip_noise(value)
    text = str(value).strip()
    truths = {read_truth(choice) for choice in choices}
    truth = None
    # "1" means true only among choices that also have a false.
    if not numbered and ({True, False} <= truths or len(choices) == 1):
        truth = read_truth(value)
    # The first comparison that exactly one choice passes decides.
    comparisons: tuple[Callable[[Any], bool], ...] = (
        lambda choice: str(choice) == text,
        lambda choice: str(choice).lower() == text.lower(),
        lambda choice: isinstance(choice, (int, float)) and read_number(value) == choice,
        lambda choice: truth is not None and read_truth(choice) is truth,
    )
    for is_same in comparisons:
        same = [choice for choice in choices if is_same(choice)]
        if len(same) == 1:
            return same[0]
    return UNKNOWN


def guess_plain_value(value: Any, kind: str, unit: str = "") -> Any:
    """Return a value as ``bool``, ``int``, ``float`` or ``str``; ``UNKNOWN`` if none fits."""
    value = strip_noise(value) if kind in ("bool", "int", "float") else value
    if kind == "bool":
        truth = read_truth(value)
        return UNKNOWN if truth is None else truth
    if kind in ("int", "float"):
        if isinstance(value, bool):  # true is not a number of seconds
            return UNKNOWN if unit else int(value)
        number = read_number(value, unit)
        if number is None or is_no_number(number):
            return UNKNOWN
        if kind == "float" or isinstance(number, int):
            return number
        return int(number) if number.is_integer() else UNKNOWN
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value) if is_number else UNKNOWN


def find_near_choices(value: str, choices: Sequence[str]) -> list[str]:
    """Return two choices with the number type of a text, else similar ones, except opposites."""
    parts = _split_value(value)
    types = _list_number_types(parts)
    if types:
        same = [choice for choice in choices if _list_number_types(_split_value(choice)) == types]
        same.sort(key=lambda choice: len(parts & _split_value(choice)), reverse=True)
        return same[:2]
    # Opposites are among the nearest names: "enable" and "disable".
    nearest = find_nearest_names(value, choices, 4)
    return [choice for choice in nearest if not _are_opposite(value, choice)][:2]


def _split_value(text: str) -> set[str]:
    """Return the parts of a value: ``mixed`` and ``bf16`` of ``mixed_bfloat16``.

    Number types have their short names.
    """
    plain = _NUMBER_TYPE.sub(
        lambda match: f" {_TYPES.get(match['type'], match['type'])}{match['bits']} ", text.lower()
    )
    return set(re.split(r"[^a-z0-9]", plain))


def _list_number_types(parts: set[str]) -> set[str]:
    return {part for part in parts if _NUMBER_TYPE.fullmatch(part)}


def _are_opposite(left: str, right: str) -> bool:
    truths = read_truth(left), read_truth(right)
    if None not in truths:
        return truths[0] is not truths[1]
    return (_NEGATION.match(left.lower()) is None) != (_NEGATION.match(right.lower()) is None)


def suggest_value(
    name: str, guess: Any, otherwise: str, written: Any = None
) -> tuple[str, Fix | None]:
    """Return the hint and fix that replace a ``written`` value by its guess.

    Without a guess, another hint and no fix.

    There is no fix for a value with a comment, which would be lost.
    """
    if guess is UNKNOWN:
        return otherwise, None
    hint = f"write {name} = {format_short_value(guess)}"
    is_short = isinstance(written, str) and len(written) <= _LONGEST_NOISY
    if is_short and _COMMENT.search(written.strip()):
        return f"{hint}, and the comment after # on its line", None
    return hint, Fix(guess)


def suggest_choice(
    name: str,
    value: Any,
    choices: Sequence[Any],
    listed: Sequence[Any] = (),
    numbered: bool = False,
) -> tuple[str, Fix | None]:
    """Return the hint for an invalid choice: the intended one, similar ones, or all ``listed``.

    Only an intended choice has a fix.
    """
    guess = guess_choice(value, choices, numbered)
    if guess is not UNKNOWN:
        return suggest_value(name, guess, "", value)
    if isinstance(value, str) and (
        similar := find_near_choices(strip_noise(value), list(map(str, choices)))
    ):
        return f"did you mean {' or '.join(map(format_short_value, similar))}?", None
    return f"write one of {format_choices(listed or choices)}", None


def verify_guess(guess: Any, find_faults: Callable[[Any], Any]) -> Any:
    """Return a guess without faults, else ``UNKNOWN``."""
    return guess if guess is not UNKNOWN and not find_faults(guess) else UNKNOWN


def format_choices(choices: Iterable[Any]) -> str:
    """Return choices as a list in words."""
    return ", ".join(map(format_short_value, choices))


def describe_value_kind(value: Any) -> str:
    """Return a short description of a value; the type of a table or list."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return format_short_value(value)


def build_choice_fault(
    key: str,
    value: Any,
    record: catalog.Entry,
    suggestion: tuple[str, Fix | None] | None = None,
    why: str = "",
) -> Fault:
    """Return the fault of an invalid choice.

    Without a ``suggestion``, the hint lists similar choices.
    """
    hint, fix = suggestion or suggest_choice(
        key.partition(".")[2], value, record.choices, numbered=record.numbered
    )
    return Fault(
        "NP203",
        f"{key} = {format_short_value(value)} is none of {format_choices(record.choices)}",
        why,
        hint,
        fix=fix,
    )
