"""Conditions as users write them, for ``list --where`` and team rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from npuprof import catalog
from npuprof.catalog import condition, values
from npuprof.catalog.condition import Operand
from npuprof.catalog.programs import find_named_key
from npuprof.document import keys
from npuprof.document.policy import TeamRule
from npuprof.model import SCENARIOS, SECTIONS, TYPE_CHECKING, did_you_mean

#: The value types of a setting by kind, with their name; text by default.
_KINDS = {
    "b": ((bool,), "true or false"),
    "bool": ((bool,), "true or false"),
    "i": ((int,), "a whole number"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
}
_TEXT: tuple[tuple[type, ...], str] = ((str,), "text")
#: Longer conditions are not corrected.
_LONGEST_CORRECTED = 2000
_ORDER = ("<", "<=", ">", ">=")

#: The condition language, for messages.
LANGUAGE = (
    "Option names denote their values: ==, !=, <, >, in (...), is set, is unset, and, or, not."
)

if TYPE_CHECKING:
    #: Guesses the intended value for a setting from a value of the wrong type; None if it is
    #: ambiguous.
    Guess = Callable[[str, Any, str], Any]


class ConditionError(ValueError):
    """Raised for an invalid condition, or one that can never depend on a preset; with a hint."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def find_key(path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the setting for a dotted name that a user wrote, and the path below it.

    A name in a condition has no dashes.
    """
    key, tail = condition.find_key(path)
    return find_named_key(key), tail


def read_condition(text: str, guess: Guess | None = None) -> Any:
    """Return a condition parsed by ``catalog.condition``.

    Raises ConditionError with a hint if it is invalid.
    """
    try:
        tree = condition.parse_condition(text)
        odd = condition.find_misplaced_operand(tree)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        corrected = _correct_condition(text, guess)
        hint = (
            f"write '{corrected}'" if corrected else "for example 'precision_mode_v2 == \"fp16\"'"
        )
        raise ConditionError(f"{text!r} is not a condition", hint) from None
    if odd is not None and odd[0] == "value":
        key = ".".join(odd[1])
        if "." not in key and key not in ("scenario", "product") and not catalog.find_option(key):
            hint = did_you_mean(
                key, catalog.record_names(), "compare an option, or scenario: 'hccl_timeout > 600'"
            )
            raise ConditionError(f"{key} is not a condition in {text!r}, and not a setting", hint)
        state = "unset" if re.search(rf"\bnot\s+{re.escape(key)}\b", text) else "set"
        hint = f"write '{key} is {state}', or compare it: '{key} == {_give_example(key)}'"
        raise ConditionError(
            f"{key} is not a condition in {text!r}: it is neither true nor false", hint
        )
    if listed := _put_list_into_parentheses(text):
        raise ConditionError(
            f"the list in {text!r} ends before the first comma", f"write '{listed}'"
        )
    constant = ConditionError(
        f"{text!r} has the same result for every preset", "compare an option: 'hccl_timeout > 600'"
    )
    if odd is not None:
        raise constant
    for comparison in condition.list_comparisons(tree):
        if not condition.collect_condition_paths(comparison):
            raise constant
        _refuse_unlike_sides(*comparison, guess, text)
    return _read_variables_alike(tree)


def _correct_condition(text: str, guess: Guess | None) -> str:
    """Return a corrected condition, empty if it cannot be corrected.

    Replaces ``&&``, ``||`` and ``!`` by words and ``=`` by ``==``, and adds quotes around texts and
    parentheses around lists.
    """
    if len(text) > _LONGEST_CORRECTED:
        return ""
    pieces = re.findall(r"\"[^\"]*\"|'[^']*'|[^\"']+|.", text)
    corrected = "".join(piece if piece[0] in "\"'" else _correct_signs(piece) for piece in pieces)
    corrected = re.sub(r"([=!]=\s*)([A-Za-z_][\w-]*)(?![\w.-])", _quote_text, corrected).strip()
    if any("[" in piece for piece in pieces if piece[0] not in "\"'"):
        corrected = re.sub(
            r"\(([^(),]+)\)", r"(\1,)", corrected
        )  # a single element in parentheses is not a list
    if corrected == text:
        return ""
    try:
        read_condition(corrected, guess)
    except ConditionError:
        return ""
    return (
        corrected if '"' in corrected else corrected.replace("'", '"')
    )  # single quotes are needed for the shell


def _correct_signs(text: str) -> str:
    for pattern, word in (
        (r"&&?", " and "),
        (r"\|\|?", " or "),
        (r"!(?!=)", " not "),
        ("=>", ">="),
        ("=<", "<="),
        (r"\[", "("),
        (r"\]", ")"),
    ):
        text = re.sub(pattern, word, text)
    return re.sub(r"\s+", " ", re.sub(r"\s*(?<![=!<>])=(?!=)\s*", " == ", text))


def _quote_text(match: re.Match[str]) -> str:
    known = (
        match[2] in ("true", "false", "True", "False", "scenario", "product")
        or catalog.find_option(match[2]) is not None
    )
    return match[0] if known else f'{match[1]}"{match[2]}"'


def _put_list_into_parentheses(text: str) -> str:
    """Return a condition with the missing parentheses around its only list; else empty."""
    match = re.fullmatch(r"(.*\bin)\s+([^()]+?,[^()]+?)((?:\s+(?:and|or)\b.*)?)", text)
    if match is None:
        return ""
    listed = f"{match[1]} ({match[2]}){match[3]}"
    try:
        condition.parse_condition(listed)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return ""
    return listed


def _give_example(key: str) -> str:
    """Return a value that a setting accepts, in condition syntax."""
    record: Any = catalog.find_key_record(key)
    is_option = isinstance(record, catalog.Option)
    types, _ = _find_kind(key) or _TEXT
    value: Any = "..."
    if key == "scenario":
        value = SCENARIOS[0]
    elif record is not None and record.choices and (is_option or types != (str,)):
        value = record.choices[0]
    elif types != (str,):
        value = True if types == (bool,) else record.minimum or 1
    return keys.format_toml_value(value)


def find_compared_key(side: Any) -> str:
    """Return the setting that is one side of a comparison, ``scenario`` included.

    Empty if it is not a setting.
    """
    key, tail = find_key(side[1]) if side[0] == "value" else ("", ())
    return key if not tail and ("." in key or key == "scenario" or catalog.find_option(key)) else ""


def _find_kind(key: str) -> tuple[tuple[type, ...], str] | None:
    """Return the value types of a setting and their name, None if unknown."""
    if key == "scenario":
        return _TEXT
    record = catalog.find_key_record(key)
    if record is None:
        return _TEXT if key.startswith("env.") else None
    if isinstance(record, catalog.Option):
        return (
            _KINDS.get(record.field or record.kind, _TEXT)
            if record.field or record.kind == "bool"
            else None
        )
    if isinstance(record, catalog.Variable):
        return _KINDS[record.kind] if record.kind in ("int", "float") else _TEXT
    kinds = tuple({type(choice) for choice in record.choices})
    known = (kind for kind in (*_KINDS.values(), _TEXT) if kind[0] == kinds)
    return next(known, _KINDS.get(record.kind, _TEXT))


def _refuse_unlike_sides(word: str, left: Any, right: Any, guess: Guess | None, text: str) -> None:
    """Raise ConditionError for a comparison with a value of a type that the setting never has."""
    for one, other in ((left, right), (right, left)):
        key = find_compared_key(one)
        kind = _find_kind(key) if key else None
        if kind is None:
            continue
        if (
            other[0] == "value"
            and len(other[1]) == 1
            and other[1][0] not in ("scenario", "product")
            and not catalog.find_option(other[1][0])
        ):
            corrected = (
                _correct_condition(text, guess) or f"{key} == {keys.format_toml_value(other[1][0])}"
            )
            raise ConditionError(
                f"{other[1][0]} is not a setting; strings need quotes", f"write '{corrected}'"
            )
        if other[0] != "const":
            continue
        wanted = (
            other[1] if word in ("in", "not in") and isinstance(other[1], tuple) else (other[1],)
        )
        ordered = word in _ORDER and kind[0] in ((bool,), (str,))
        loose = (
            key.startswith("env.") and kind is _TEXT and not ordered
        )  # environment variables are text, in any spelling
        if not ordered and all(
            type(value) in kind[0] or (loose and type(value) in (int, float)) for value in wanted
        ):
            continue
        said = ", ".join(
            repr(value) if isinstance(value, str) else str(value).lower() for value in wanted
        )
        meant = (
            guess(key, wanted[0], kind[0][-1].__name__)
            if guess is not None and len(wanted) == 1
            else None
        )
        is_good = key != "scenario" and type(meant) in kind[0]
        example = keys.format_toml_value(meant) if is_good else _give_example(key)
        sign = (
            word
            if word not in ("in", "not in") and one is left and kind[0] not in ((bool,), (str,))
            else "!="
            if word == "!="
            else "=="
        )
        raise ConditionError(
            f"{key} is {kind[1]}, but is compared with {said}", f"write '{key} {sign} {example}'"
        )


def _read_variables_alike(tree: Any) -> Any:
    """Return a condition that compares text variables with text, as variables are always text."""
    if tree[0] in ("and", "or", "not"):
        return (tree[0], *map(_read_variables_alike, tree[1:]))
    if tree[0] in ("==", "!=", "in", "not in"):
        key = find_compared_key(tree[1]) if tree[2][0] == "const" else ""
        if key.startswith("env.") and _find_kind(key) is _TEXT:
            value = tree[2][1]
            return (
                tree[0],
                tree[1],
                ("const", tuple(map(str, value)) if isinstance(value, tuple) else str(value)),
            )
    return tree


def find_unknown_names(wanted: Any, facts: Collection[str]) -> list[str]:
    """Return the settings in a condition that are not variables and not in the catalogue.

    Presets may contain them anyway. ``facts`` are other known names.
    """
    paths = [
        path
        for path in condition.collect_condition_paths(wanted)
        if path[0] not in ("env", "scenario", *facts)
    ]
    named = [find_key(path)[0] for path in paths if len(path) > 1 or path[0] not in SECTIONS]
    return [key for key in named if catalog.find_key_record(key) is None]


def look_up(scenario: str | None, settings: Mapping[str, Any], path: tuple[str, ...]) -> Operand:
    """Return whether an operand is set in a preset, and its value.

    Defaults of unset operands are ignored.
    """
    if path == ("scenario",):
        return scenario is not None, scenario
    key, tail = find_key(path)
    if key.startswith("env.") and key in settings:
        return True, _read_variable(key, settings[key])
    return values.find_setting_value(settings, key, tail)


def _read_variable(key: str, value: Any) -> Any:
    """Return the value of a variable as its reader sees it: a number if possible, else text."""
    kind = _find_kind(key)
    if not isinstance(value, (str, int, float)):
        return value
    if kind is _TEXT or kind is None:
        return str(value)
    if not isinstance(value, str):
        return value
    try:
        return float(value) if float in kind[0] else int(value)
    except ValueError:
        return value


def list_paths(rule: TeamRule) -> list[tuple[str, ...]]:
    """Return the operands of a team rule, the required ones first."""
    conditions = filter(None, (rule.require, rule.when))
    return [path for _, tree in conditions for path in condition.collect_condition_paths(tree)]


def list_team_reads(rule: TeamRule, with_facts: bool = False) -> tuple[str, ...]:
    """Return the settings that a team rule reads.

    With ``with_facts``, also scenario, product and declared axes.
    """
    facts = () if with_facts else ("scenario", "product", *rule.axes)
    return tuple(
        dict.fromkeys(find_key(path)[0] for path in list_paths(rule) if path[0] not in facts)
    )
