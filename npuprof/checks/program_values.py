"""Faults of the values of a program's arguments, and of the fields in their JSON."""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog.programs import read_size
from npuprof.checks import meaning
from npuprof.checks.lifetimes import find_choice, is_out_of_range
from npuprof.checks.view import Fault, find_nul_faults
from npuprof.document.keys import format_short_value, is_no_number
from npuprof.model import Any

_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "json": "a table",
    "list": "a list",
}
#: The texts that pydantic takes for true or false.
_TRUTHS = frozenset(("0", "1", "f", "n", "no", "off", "false", "t", "y", "yes", "on", "true"))


def find_form_faults(key: str, value: Any) -> list[Fault]:
    """Return the fault of a value that no argument can have, such as a date."""
    if not (is_no_number(value) or hasattr(value, "isoformat")):
        return find_nul_faults(key, value, "")
    what = (
        f"{key} takes text, a number, true, false, a list or a table, not "
        f"{meaning.describe_value_kind(value)}"
    )
    return [Fault("NP202", what, "No argument has this form.", "write it as text")]


def list_occurrences(value: Any) -> list[Any]:
    """Return what follows each occurrence of a flag: a list of lists repeats it."""
    is_repeated = isinstance(value, list) and any(isinstance(item, list) for item in value)
    return [
        each[0] if isinstance(each, list) and len(each) == 1 else each
        for each in (value if is_repeated else [value])
    ]


def find_program_value_faults(key: str, record: catalog.Setting, value: Any) -> list[Fault]:
    """Return the type, choice and range faults of an argument, or of a field in its JSON.

    An argument is text for its program, a field has the types of JSON, as pydantic converts them.
    """
    is_field = "." in record.name
    is_none = value is None or (record.optional and not is_field and value in ("", "None"))
    if is_none or (record.bare and value is True):
        return []
    kinds = record.kinds or (record.kind,)
    items = [value]
    if record.repeated or "list" in kinds:
        if isinstance(value, list):
            items = value
        if record.items and (items is value or not is_field):
            kinds = tuple(record.items.split("|"))
    for item in items:
        read = next(
            (
                found
                for kind in kinds
                if (found := _read(kind, record, item, is_field)) is not meaning.UNKNOWN
            ),
            meaning.UNKNOWN,
        )
        if read is meaning.UNKNOWN:
            return [_build_type_fault(key, record, kinds, item)]
        if record.choices and not record.unlimited and find_choice(record, item) is None:
            return [meaning.build_choice_fault(key, item, record)]
        if not record.unlimited and is_out_of_range(record, read):
            what = f"{key} = {format_short_value(item)} is out of range"
            return [Fault("NP203", what, hint=f"write a number {_describe_range(record)}")]
    return []


def _read(kind: str, record: catalog.Setting, value: Any, is_field: bool) -> Any:
    """Return a value as the program reads it, ``UNKNOWN`` if it is none of a kind."""
    if kind in ("int", "float"):
        return _read_number(kind, record, value, is_field)
    if kind == "json":
        is_text = not is_field or record.parsed_as == "json"
        fits = isinstance(value, dict) or (is_text and _is_json(value, bool(record.kinds)))
    elif kind == "list":
        fits = isinstance(value, list)
    elif kind == "str":  # a table is given as its JSON
        fits = isinstance(value, str) or not (is_field or isinstance(value, (bool, list)))
    elif kind == "bool":
        fits = isinstance(value, bool) or (
            is_field and (value in (0, 1) or str(value).lower() in _TRUTHS)
        )
    else:
        fits = True
    return value if fits else meaning.UNKNOWN


def _read_number(kind: str, record: catalog.Setting, value: Any, is_field: bool) -> Any:
    if isinstance(value, int):
        return int(value) if is_field or not isinstance(value, bool) else meaning.UNKNOWN
    text = str(value).strip()
    if record.parsed_as == "size":
        if text == "auto" and record.minimum == -1:
            return -1
        text = str(read_size(text))
    try:
        if kind == "int" and not is_field:
            return int(text)
        number = float(text)
    except ValueError:
        return meaning.UNKNOWN
    return number if kind == "float" or number.is_integer() else meaning.UNKNOWN


def _is_json(value: Any, takes_any: bool) -> bool:
    """Return whether an argument takes a value as JSON, of a table only unless it takes any."""
    if not isinstance(value, str):
        return takes_any
    import json

    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return False
    return takes_any or isinstance(parsed, dict)


def _build_type_fault(
    key: str, record: catalog.Setting, kinds: tuple[str, ...], value: Any
) -> Fault:
    expected = " or ".join(_WORDS[kind] for kind in kinds)
    guess = meaning.UNKNOWN
    if kinds == (record.kind,) and not isinstance(value, (dict, list)):
        guess = meaning.guess_plain_value(value, record.kind)
    guess = meaning.verify_guess(guess, lambda each: find_program_value_faults(key, record, each))
    hint, fix = meaning.suggest_value(key.partition(".")[2], guess, f"write {expected}", value)
    what = f"{key} takes {expected}, not {meaning.describe_value_kind(value)}"
    return Fault("NP202", what, "", hint, fix=fix)


def _describe_range(record: catalog.Setting) -> str:
    low, high = record.minimum, record.maximum
    words = []
    if low is not None:
        words.append(f"{'above' if low == record.above else 'of at least'} {low}")
    if high is not None:
        words.append(f"{'below' if high == record.below else 'of at most'} {high}")
    return " and ".join(words)
