"""Names, types and values of single settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from npuprof import catalog
from npuprof.catalog import Option, releases, values
from npuprof.catalog.records import NONE_DECLARED, TeamVariables
from npuprof.checks.restrictions import (
    OFFLINE,
    find_twin_flag,
    has_form_of_flag,
    is_taken_by_flag,
    list_option_leaves,
)
from npuprof.checks.view import Fault, Scope, find_nul_faults, find_range_faults
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import (
    LONGEST_WORD,
    SECTIONS,
    TYPE_CHECKING,
    Fix,
    Path,
    did_you_mean,
    suggest_name,
)
from npuprof.system import list_items

if TYPE_CHECKING:
    from typing import Any

    from npuprof.catalog.shapes import ValueFault


_INT64 = 2**63
_BAD_VALUE = {
    "aborts": "The adapter aborts the whole process when it reads such a value.",
    "fails": "The adapter rejects it: the first session run fails.",
    "clamped": "The adapter bends such a value into range without an error.",
    "ignored": "The adapter ignores such a value without an error.",
}
#: What the adapter does with a value in the wrong protobuf field, by ``Option.on_wrong_field``.
WRONG_FIELD = {
    "aborts": (
        "Stored in another protobuf field it reads as empty, and the adapter aborts the process."
    ),
    "fails": "Stored in another protobuf field, it is rejected at the first session run.",
    "ignored": "Stored in another protobuf field it is ignored without a message.",
    "zero": "Stored in another protobuf field it silently reads as 0, False or an empty text.",
}
_OF_ADAPTER = {*_BAD_VALUE.values(), *WRONG_FIELD.values()}
_FIELD_WORDS = {"b": "true or false", "i": "a whole number", "s": "text"}
#: Characters that every manual allows in a path.
_PLAIN_PATH = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")
_FIELD_KINDS = {"b": "bool", "i": "int", "s": "str"}


def find_value_faults(scope: Scope, key: str, value: Any) -> Iterator[Fault]:
    """Yield the faults of a value, except those that the selected releases accept."""
    for fault in find_setting_faults(key, value, scope.declared):
        if scope.scenario == OFFLINE and fault.why in _OF_ADAPTER:
            stops = fault.code == "NP203" and _is_read_by_atc(scope, key)
            why = "ATC stops at such a value." if stops else "The manual of ATC has no such value."
            fault = fault._replace(why=why)
        accepted = {"NP203": _is_accepted_there, "NP205": _is_sure_for_flag}.get(fault.code)
        if accepted is None or not accepted(scope, key, value):
            yield fault


def _is_read_by_atc(scope: Scope, key: str) -> bool:
    """Return whether the source of ATC shows how it reads the flag of an option."""
    from npuprof.catalog.readers import NOT_FOUND

    option = catalog.find_option(key)
    flag = find_twin_flag(scope, option) if option else None
    return flag is not None and flag.reader not in ("", NOT_FOUND)


def _is_accepted_there(scope: Scope, key: str, value: Any) -> bool:
    """Return whether ATC, or the selected older releases, accept a value.

    Today's session rejects it.
    """
    option = catalog.find_option(key) if isinstance(value, (str, int)) else None
    if option is not None and is_taken_by_flag(scope, option, value):
        return True
    until = option.choices_until.get(str(value)) if option else None
    return (
        until is not None
        and bool(scope.releases)
        and releases.is_earlier(scope.releases[-1], until)
    )


def _is_sure_for_flag(scope: Scope, key: str, value: Any) -> bool:
    """Return whether ATC certainly accepts a form or choice that is doubtful in a session."""
    option = catalog.find_option(key)
    if option is None:
        return False
    flag = find_twin_flag(scope, option)
    if flag is not None and str(value) in option.doubtful_values and value in flag.choices:
        return str(value) not in flag.doubtful_values
    return bool(option.lax_pattern) and has_form_of_flag(scope, option, value)


def find_setting_faults(
    key: str, value: Any, declared: TeamVariables = NONE_DECLARED
) -> list[Fault]:
    """Return the faults of a setting's value in any profile.

    ``declared`` are the variables of the team.
    """
    return _find_section_faults(key, value, declared) or _find_length_faults(key, value)


def _find_length_faults(key: str, value: Any) -> list[Fault]:
    """Return the fault of a value too long for a program's arguments or environment."""
    # No form of a value is twice as long as this one, and no character has five bytes.
    if 16 * len(repr(value)) < LONGEST_WORD:
        return []
    section, name = keys.split_section_and_name(key)
    encoded = values.encode_field_value(name, value) if section == "options" else value
    text = encoded if isinstance(encoded, str) else ""
    room = LONGEST_WORD - len(f"NPUPROF_{name}=".encode())
    if len(text.encode(errors="replace")) <= room:
        return []
    why = (
        "Exports and command lines hold it, and no program "
        "can be started with so long a variable or argument."
    )
    return [Fault("NP203", f"{key} is longer than {room} bytes", why, "keep long values in a file")]


def _find_section_faults(key: str, value: Any, declared: TeamVariables) -> list[Fault]:
    section, name = keys.split_section_and_name(key)
    if section == "options":
        option = catalog.find_option(name)
        return _find_option_faults(option, value) if option else [_build_unknown_option_fault(name)]
    if section == "env":
        from npuprof.checks.variables import find_variable_faults

        return find_variable_faults(name, value, declared)
    if catalog.load_sections()[section].dotted:
        from npuprof.checks.frameworks import find_framework_faults

        return find_framework_faults(section, name, value)
    from npuprof.checks.plain_values import find_argument_faults, find_flag_faults

    find_faults = find_argument_faults if section == "estimator" else find_flag_faults
    return find_faults(name, value)


@cache  # a misspelt option of a base occurs in every dependent, and name suggestions are slow
def _build_unknown_option_fault(name: str) -> Fault:
    why = "The adapter looks up its own list of keys; one that is not in it is ignored silently."
    hint = ""
    if key := catalog.find_key_elsewhere(name):
        hint = f"{name} belongs below [{key.partition('.')[0]}]; on a command line it is {key}"
    elif name in PROFILE_KEYS:
        hint = f"{name} belongs below [profile]; on a command line it is profile.{name}"
    elif name in SECTIONS:
        hint = f"write [{name}] as a table of its own, behind those of [options]"
    if hint:
        return Fault("NP201", f"{name!r} is not a session option", why, hint)
    otherwise = "npuprof options lists all; unset the key if nothing reads it"
    sections = did_you_mean(name.lower(), SECTIONS, otherwise).replace(
        "did you mean", "did you mean the section"
    )
    hint, fix = suggest_name(name, catalog.record_names(), sections)
    return Fault("NP201", f"unknown option {name!r}", why, hint, fix=fix)


def _find_option_faults(option: Option, value: Any) -> list[Fault]:
    """Return the faults of an option's value: its type, then its choice, form or range."""
    if isinstance(value, (dict, list)) and option.structure:
        return _find_structure_faults(option, value)
    if not _is_of_option_type(option, value):
        return [_build_type_fault(option, value)]
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        what = f"{option.name} = {value} does not fit 64 bits"
        return [Fault("NP203", what, "The protobuf field is an int64.", "write a smaller number")]
    if option.choices:
        return _find_choice_faults(option, value)
    if isinstance(value, str):
        return _find_text_faults(option, value)
    assignment = f"{option.name} = {value}"
    if caveat := option.doubtful_values.get(str(value)):
        return find_range_faults(assignment, value, option, caveat, "NP205")
    why = _BAD_VALUE.get(option.on_bad_value, "Outside the documented range its effect is unknown.")
    return find_range_faults(assignment, value, option, why)


def _is_of_option_type(option: Option, value: Any) -> bool:
    if option.value_field == "i":
        return type(value) is int
    return isinstance(value, bool if option.value_field == "b" else str)


def guess_option_value(option: Option, value: Any) -> Any:
    """Return the option value intended by a value of another type, if the checks accept it.

    ``meaning.UNKNOWN`` if it is ambiguous.
    """
    from npuprof.checks import meaning

    # No text or number tells which list, name or path is intended.
    is_open = option.default_count or option.listed or option.kind.startswith("path")
    if is_open or (option.numbered and isinstance(value, bool)):
        return meaning.UNKNOWN
    if option.choices:
        guess = meaning.guess_choice(value, option.choices, option.numbered)
    else:
        guess = meaning.guess_plain_value(value, _FIELD_KINDS[option.value_field], option.unit)
    return meaning.verify_guess(guess, lambda guess: _find_option_faults(option, guess))


def _build_type_fault(option: Option, value: Any) -> Fault:
    from npuprof.checks import meaning

    expected = _FIELD_WORDS[option.value_field]
    otherwise = f"write {expected}{_describe_range_or_example(option)}"
    if option.choices:
        listed = meaning.format_choices(option.choices)
        few = " or ".join(map(format_short_value, option.choices))
        expected = few if len(option.choices) < 4 else f"{expected}, one of {listed}"
        otherwise = f"write one of {meaning.format_choices(_list_sure_choices(option))}"
    guess = guess_option_value(option, value)
    if isinstance(value, list) and len(value) == 1 and not _find_option_faults(option, value[0]):
        guess = value[0]
    hint, fix = meaning.suggest_value(option.name, guess, otherwise, value)
    why = WRONG_FIELD.get(
        option.on_wrong_field, "A value of another type is not stored where the adapter looks."
    )
    what = f"{option.name} takes {expected}, not {meaning.describe_value_kind(value)}"
    return Fault("NP202", what, why, hint, fix=fix)


def _describe_range_or_example(option: Option) -> str:
    """Return the range of a number, or an example of a text, to follow in a hint; or nothing."""
    if option.value_field == "i" and (option.minimum is not None or option.maximum is not None):
        return f", {keys.format_range(option.minimum, option.maximum, option.unit)}"
    if option.value_field == "s":
        example = catalog.find_record_texts("options", option.name).get("example")
        if example is not None:
            return f" like {keys.format_toml_value(example)}"
    return ""


def _list_sure_choices(option: Option) -> list[Any]:
    """Return the choices without caveats."""
    return [choice for choice in option.choices if str(choice) not in option.doubtful_values]


def _find_choice_faults(option: Option, value: Any) -> list[Fault]:
    """Return the fault of a value that is no choice of an option, or a choice with a caveat."""
    if value in option.tolerated:
        return []
    caveat = option.doubtful_values.get(str(value))
    if not caveat and value in option.choices:
        return []
    from npuprof.checks import meaning

    sure = _list_sure_choices(option)
    listed = meaning.format_choices(sure)
    assignment = f"{option.name} = {format_short_value(value)}"
    if caveat:
        hint = f"without caveats {'is' if len(sure) == 1 else 'are'} {listed}"
        return [Fault("NP205", f"{assignment} is doubtful: {caveat}", hint=hint)]
    if until := option.choices_until.get(str(value)):
        why = f"CANN {until} took the value away."
        return [
            Fault("NP203", f"{assignment} is no longer accepted", why, f"write one of {listed}")
        ]
    hint, fix = meaning.suggest_choice(option.name, value, option.choices, sure, option.numbered)
    if fix is None:
        hint = _suggest_renamed_value(option, value) or hint
    elif str(fix.value) in option.doubtful_values:
        hint = f"write one of {listed}; {format_short_value(fix.value)} is doubtful itself"
        fix = None
    why = _BAD_VALUE.get(
        option.on_bad_value,
        "The adapter passes it on unchecked; the behavior of the engine is not documented.",
    )
    return [meaning.build_choice_fault(option.name, value, option, (hint, fix), why)]


def _suggest_renamed_value(option: Option, value: Any) -> str:
    """Return the hint for a value of the option that this one replaces, or that replaces this one.

    Empty for other values.
    """
    text = format_short_value(value)
    for step in catalog.load_built_part("migrations")["steps"]:
        if step["action"] != "rename":
            continue
        old, new, new_values = step["option"], step["to"], dict(step["values"])
        if new == option.name and value in new_values:
            return f"write {format_short_value(new_values[value])}, which replaces {old} = {text}"
        if old == option.name:
            renamed = catalog.find_option(new)
            if renamed is not None and value in renamed.choices:
                return f"write {new} = {text} instead of {old}"
    return ""


def _find_text_faults(option: Option, value: str) -> list[Fault]:
    """Return the faults of a text: a path, a structured value, a number of units, or a format."""
    if faults := find_nul_faults(option.name, value, "No path or name can hold one."):
        return faults
    if option.kind.startswith("path"):
        return _find_option_path_faults(option, value)
    if option.structure:
        structure = values.load_form(option.structure)
        parsed = structure.parse(value)
        if parsed is not None:
            faults = [_build_structure_fault(option, fault) for fault in structure.faults(parsed)]
            return faults or _find_undocumented_form_faults(option, parsed)
    elif option.unit and (fault := _find_unit_fault(option, value)):
        return [fault]
    is_accepted = not option.structure
    if option.pattern:
        is_accepted = re.fullmatch(option.pattern, value) is not None
    if is_accepted and option.kind != "json":
        return []
    return [_build_format_fault(option, value)]


def _find_option_path_faults(option: Option, value: str) -> list[Fault]:
    """Return the faults of a text where an option takes a path."""
    if option.structure and _is_content(option.structure, value):
        what = (
            f"{option.name} = {format_short_value(value)} is the content of its file, not the path"
        )
        hint = f"write the path of a file, or a table below [options.{option.name}]"
        return [Fault("NP203", what, "The engine looks for a file of that name.", hint)]
    if not value:
        hint = f"write a path, or unset {option.name}"
        return [Fault("NP203", f"{option.name} is empty", "An empty path names nothing.", hint)]
    if _PLAIN_PATH.issuperset(value):
        return []
    from npuprof.checks.plain_values import find_path_faults

    return find_path_faults(option.name, value, option.path_characters)


def is_plain_folder(key: str, text: str) -> bool:
    """Return whether an option has the plain path of a folder: all or none of these have faults."""
    is_path = getattr(catalog.find_option(key), "kind", "") == "path-dir"
    return is_path and 0 < len(text) < 4096 and _PLAIN_PATH.issuperset(text)


def _find_unit_fault(option: Option, value: str) -> Fault | None:
    """Return the fault of a number with a unit, such as ``"2 GB"``, where bytes are expected."""
    from npuprof.checks import meaning

    number = meaning.read_number(value, option.unit)
    if number is None or str(number) == value or _find_text_faults(option, str(number)):
        return None
    what = f"{option.name} = {format_short_value(value)} is not in its format"
    why = f"It is a number of {option.unit}, as text."
    return Fault("NP203", what, why, f'write {option.name} = "{number}"', fix=Fix(str(number)))


def _build_format_fault(option: Option, value: str) -> Fault:
    example = catalog.find_record_texts("options", option.name).get("example")
    shapes = [f"text like {keys.format_toml_value(example)}"] if example else []
    if option.structure:
        shapes.append(values.load_form(option.structure).shape)
    hint = f"unset it, or see npuprof option {option.name}"
    if shapes:
        hint = f"write {', or '.join(shapes)}"
    assignment = f"{option.name} = {format_short_value(value)}"
    if option.lax_pattern and re.fullmatch(option.lax_pattern, value):
        why = "The adapter lets it pass, but its meaning is not documented."
        return Fault("NP205", f"{assignment} is not in the documented format", why, hint)
    why = _BAD_VALUE.get(
        option.on_bad_value, "The adapter hands the text on as it is; the engine cannot read it."
    )
    return Fault("NP203", f"{assignment} is not in its format", why, hint)


@cache
def _is_content(form: str, value: str) -> bool:
    """Return whether a text looks like the content of a file instead of its path."""
    structure = values.load_form(form)
    parsed = structure.parse(value)
    if isinstance(parsed, dict) and any(parsed.values()) and not structure.faults(parsed):
        return True
    names = set(_list_schema_names(structure.schema))
    return bool(names) and names.issuperset(value.replace(" ", "").split(","))


def _list_schema_names(schema: Any) -> Iterator[str]:
    """Yield the names that a schema allows anywhere."""
    for name, inner in schema.items() if isinstance(schema, dict) else ():
        if name == "enum":
            yield from inner
        yield from _list_schema_names(inner)


def _find_structure_faults(option: Option, value: Any) -> list[Fault]:
    """Return the faults of a table or list: of its members, or that no text can express it."""
    form = values.load_form(option.structure)
    faults = [_build_structure_fault(option, fault) for fault in form.faults(value)]
    if not faults and not form.is_exact and values.format_structured_value(form, value) is None:
        from npuprof.catalog.shapes import ValueFault

        what = "cannot be written so that it is read back the same"
        empty = next(_list_empty_lists(value, ()), None)
        if empty is not None:
            what = "is empty, and there is no way to write that"
        fault = ValueFault(empty or (), what, "list its elements, or omit it")
        faults = [_build_structure_fault(option, fault)]
    return faults or _find_undocumented_form_faults(option, value)


def _list_empty_lists(value: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of empty lists."""
    if value == []:
        yield path
    for name, item in list_items(value):
        yield from _list_empty_lists(item, (*path, name))


def _find_undocumented_form_faults(option: Option, names: Any) -> list[Fault]:
    """Return the faults of values that are accepted, but undocumented or probably unintended.

    They are names in another letter case, and a missing ratio.
    """
    form = values.load_form(option.structure)
    from npuprof.catalog import caveats
    from npuprof.catalog.shapes import ValueFault

    found = [*form.caveats(names)] if form.caveats else []
    if option.names:
        found += caveats.find_name_caveats(option.names, names)
    for path, item in list_option_leaves(option, names):
        if caveat := option.doubtful_values.get(str(item)):
            found.append(ValueFault(path, caveat, "write another"))
    if found:
        why = "CANN reports nothing while the job runs."
        return [
            Fault(
                "NP205",
                f"{keys.format_key_path(option.name, caveat.path)}: {caveat.what}",
                why,
                caveat.hint,
                caveat.path,
            )
            for caveat in found
        ]
    if option.structure == "acceleration" and len(names) == 2:
        ratio = "0.9" if names[1] == "step" else "1.05"
        why = (
            f"The documentation asks for all three fields; the adapter takes {ratio} for the third."
        )
        hint = f"write the ratio as well, for example {ratio}"
        return [Fault("NP205", f"{option.name} has no ratio", why, hint)]
    if option.kind == "list" and option.pattern:
        return _find_odd_names(option, names)
    return []


def _find_odd_names(option: Option, names: Any) -> list[Fault]:
    """Return the names of a list that do not look like those that the manual lists."""
    faults = []
    for index, name in enumerate(names):
        if re.fullmatch(option.pattern, str(name)):
            continue
        what = (
            f"{option.name}: {format_short_value(name)} "
            "does not look like a name that is listed there"
        )
        why = (
            "No documented name looks like that, and an unknown name is passed over without "
            "a message."
        )
        hint = f"write names like {catalog.find_record_texts('options', option.name)['example']}"
        faults.append(Fault("NP205", what, why, hint, (index,)))
    return faults


def _build_structure_fault(option: Option, fault: ValueFault) -> Fault:
    hint = fault.hint
    if not fault.path and option.structure == "names" and option.listed:
        # names that this very list may contain
        hint = f"write {keys.format_toml_value(list(option.listed[:2]))}"
    why = _BAD_VALUE.get(
        option.on_bad_value,
        "A value that does not match the format cannot be written for the engine.",
    )
    what = f"{keys.format_key_path(option.name, fault.path)}: {fault.what}"
    return Fault("NP204", what, why, hint, fault.path)
