"""Faults common to all values, and guesses of the intended value for hints.

No guess if it is ambiguous.

A hint never replaces a value by its opposite: if only the opposite is allowed, there is no hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from npuprof import catalog
from npuprof.checks.view import Fault
from npuprof.document.keys import format_short_value
from npuprof.model import Fix, find_nearest_names
from npuprof.system import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.view import Plain

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
#: Names of number types in other programs, with their short names.
_TYPES = {
    "bfloat": "bf",
    "bf": "bf",
    "float": "fp",
    "fp": "fp",
    "hifloat": "hif",
    "hif": "hif",
    "hf": "hif",
    "int": "int",
}
_NUMBER_TYPE = lazy_pattern(
    r"(?<![a-z])(bfloat|bf|float|fp|hifloat|hif|hf|int)(64|32|16|8|4)(?![0-9])"
)
_NEGATION = lazy_pattern(r"(?:no|not|non|dis|un|without)(?:[-_]|(?<=dis)|(?<=un))")
_NUMBER = lazy_pattern(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?(?:e\d+)?)\s*([a-zµ%]*)",
    re.IGNORECASE | re.ASCII,
)
#: Longer texts are not searched for a number or word.
_LONGEST_NOISY = 500
#: A comment after a value that became part of its text: " // note", " # note", " /* note */", " --
#: note".
_REMARK = lazy_pattern(r"\s+(?://|#|/\*|--|;).*", re.DOTALL)
_SUM = lazy_pattern(r"\d+[a-zµ]+", re.IGNORECASE | re.ASCII)
_SECONDS = {
    name: seconds
    for seconds, names in (
        (1e-6, ("us", "µs")),
        (1e-3, ("ms",)),
        (1.0, ("s", "sec", "secs", "second", "seconds")),
        (60.0, ("m", "min", "mins", "minute", "minutes")),
        (3600.0, ("h", "hr", "hrs", "hour", "hours")),
        (86400.0, ("d", "day", "days")),
    )
    for name in names
}
_BYTES = {
    name: float(1024**power)
    for power, names in enumerate(
        (
            ("b", "byte", "bytes"),
            ("k", "kb", "kib"),
            ("m", "mb", "mib"),
            ("g", "gb", "gib"),
            ("t", "tb", "tib"),
        )
    )
    for name in names
}


def strip_noise(value: Any) -> Any:
    """Return a value without surrounding syntax of other files.

    Examples are a comment, a comma, quotes, and an assignment operator.
    """
    if not isinstance(value, str) or len(value) > _LONGEST_NOISY:
        return value
    plain = _REMARK.sub("", value.strip(), 1).strip()
    while plain and (
        plain[-1] in ",;"
        or plain[0] in "=:"
        or (len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'`")
    ):
        quoted = plain[0] == plain[-1] and plain[0] in "\"'`"
        plain = (
            plain[1:-1]
            if quoted
            else plain.rstrip(",;")
            if plain[-1] in ",;"
            else plain.lstrip("=:")
        ).strip()
    return plain


def read_truth(value: Any) -> bool | None:
    """Return a value as a boolean: ``"off"``, 0 and ``"disabled"`` are False.

    None if it is neither.
    """
    if isinstance(value, (bool, int, float)):
        return bool(value) if value in (0, 1) else None
    word = value.strip().lower() if isinstance(value, str) else ""
    return True if word in _YES else False if word in _NO else None


def read_number(value: Any, unit: str = "") -> int | float | None:
    """Return the number in a text, in a unit: ``"1h"`` is 3600 in seconds.

    None if there is none.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return _read_sum(value, unit) if isinstance(value, str) else None
    number, suffix = float(re.sub(r"[_,]", "", match[1])), match[2].lower()
    if suffix:
        table = next(
            (table for table in (_SECONDS, _BYTES) if unit.lower() in table and suffix in table),
            None,
        )
        if table is None:
            return None
        number *= table[suffix] / table[unit.lower()]
    if not -(2.0**63) <= number < 2.0**63:
        return None
    return (
        int(match[1])
        if not suffix and re.fullmatch(r"[+-]?\d+", match[1], re.ASCII)
        else int(number)
        if number.is_integer()
        else number
    )


def _read_sum(text: str, unit: str) -> int | float | None:
    """Return the number in a text with several units, ``"1h30m"``; None if it is invalid."""
    parts = _SUM.findall(text) if len(text) < 100 else []
    numbers = [read_number(part, unit) for part in parts]
    if len(parts) < 2 or "".join(parts) != text.replace(" ", "") or None in numbers:
        return None
    return sum(number for number in numbers if number is not None)


def guess_choice(value: Any, choices: Sequence[Any], numbered: bool = False) -> Any:
    """Return the only choice that a value can mean, else ``UNKNOWN``.

    ``numbered`` choices are never booleans.
    """
    value = strip_noise(value)
    text = str(value).strip()
    truths = {read_truth(choice) for choice in choices}  # if "1" is not true, "0" is not a choice
    truth = (
        read_truth(value)
        if not numbered and ({True, False} <= truths or len(choices) == 1)
        else None
    )
    for same in (
        [choice for choice in choices if str(choice) == text],
        [choice for choice in choices if str(choice).lower() == text.lower()],
        [
            choice
            for choice in choices
            if isinstance(choice, (int, float)) and read_number(value) == choice
        ],
        [choice for choice in choices if truth is not None and read_truth(choice) is truth],
    ):
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
        if number is None or number != number or number in (float("inf"), -float("inf")):
            return UNKNOWN
        return (
            number
            if kind == "float" or isinstance(number, int)
            else int(number)
            if number.is_integer()
            else UNKNOWN
        )
    return (
        str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else UNKNOWN
    )


def find_near_choices(value: str, choices: Sequence[str], count: int = 2) -> list[str]:
    """Return the choices with the number type of a text, else similar ones, except opposites."""
    words = _list_words(value)
    types = {word for word in words if _NUMBER_TYPE.fullmatch(word)}
    if types:
        same = [
            choice
            for choice in choices
            if types == {word for word in _list_words(choice) if _NUMBER_TYPE.fullmatch(word)}
        ]
        return sorted(same, key=lambda choice: len(words & _list_words(choice)), reverse=True)[
            :count
        ]
    return [
        choice
        for choice in find_nearest_names(value, choices, count + 2)
        if not _are_opposite(value, choice)
    ][:count]


def _list_words(text: str) -> set[str]:
    """Return the parts of a value: ``mixed`` and ``bf16`` of ``mixed_bfloat16``.

    Number types have their short names.
    """
    return set(
        re.split(
            r"[^a-z0-9]",
            _NUMBER_TYPE.sub(lambda match: f" {_TYPES[match[1]]}{match[2]} ", text.lower()),
        )
    )


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
    if (
        isinstance(written, str)
        and len(written) <= _LONGEST_NOISY
        and _REMARK.search(written.strip())
    ):
        return (
            f"write {name} = {format_short_value(guess)}, and the comment after # on its line",
            None,
        )
    return f"write {name} = {format_short_value(guess)}", Fix(guess)


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
    similar = (
        find_near_choices(strip_noise(value), [str(choice) for choice in choices])
        if isinstance(value, str)
        else []
    )
    if similar:
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
    record: Plain,
    suggestion: tuple[str, Fix | None] | None = None,
    why: str = "",
) -> Fault:
    """Return the fault of an invalid choice.

    Without a ``suggestion``, the hint lists similar choices.
    """
    numbered = not isinstance(record, catalog.Argument) and record.numbered
    hint, fix = suggestion or suggest_choice(
        key.partition(".")[2], value, record.choices, numbered=numbered
    )
    return Fault(
        "NP203",
        f"{key} = {format_short_value(value)} is none of {format_choices(record.choices)}",
        why,
        hint,
        fix=fix,
    )
