"""Names, types and values, one setting at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import Option, releases
from npuprof.checks.meaning import UNKNOWN, find_near_choices, guess_choice, guess_plain_value, read_number
from npuprof.checks.view import Fault, Scope
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import did_you_mean, find_nearest_names

_INT64 = 2**63
_BAD_VALUE = {
    "aborts": "The adapter aborts the whole process when it reads such a value.",
    "fails": "The adapter refuses it: the first session run fails.",
    "clamped": "The adapter bends such a value into range without an error.",
    "ignored": "The adapter ignores such a value without an error.",
}
#: What the adapter does with a value in another protobuf field than the one it reads, by ``Option.on_wrong_field``.
WRONG_FIELD = {
    "aborts": "Stored in another protobuf field it reads as empty, and the adapter aborts the process.",
    "fails": "Stored in another protobuf field it is refused at the first session run.",
    "ignored": "Stored in another protobuf field it is ignored without a message.",
    "zero": "Stored in another protobuf field it silently reads as 0, False or an empty text.",
}
_FIELD_WORDS = {"b": "true or false", "i": "a whole number", "s": "text"}
_FIELD_KINDS = {"b": "bool", "i": "int", "s": "str"}


def find_value_faults(scope: Scope, key: str, value: Any) -> Iterator[Fault]:
    """Yield what is wrong with a value of a setting, but for what the releases in question still accept."""
    for fault in find_setting_faults(key, value):
        if fault.code != "NP203" or not _is_still_accepted(scope, key, value):
            yield fault


def _is_still_accepted(scope: Scope, key: str, value: Any) -> bool:
    """Return whether a value that newer releases refuse is asked for in older ones only."""
    option = catalog.find_option(key) if isinstance(value, (str, int)) else None
    until = option.choices_until.get(str(value)) if option else None
    return until is not None and bool(scope.releases) and releases.release_index(scope.releases[-1]) < releases.release_index(until)


def find_setting_faults(key: str, value: Any) -> list[Fault]:
    """Return what is wrong with a value of a setting, whatever profile it stands in."""
    section, name = keys.split_section_and_name(key)
    if section == "options":
        option = catalog.find_option(name)
        return _find_option_faults(option, value) if option else [_build_unknown_option_fault(name)]
    if section == "env":
        return _find_variable_faults(name, value)
    return _find_argument_faults(name, value) if section == "estimator" else _find_flag_faults(name, value)


@cache  # a misspelt option of a base is met in every heir, and looking for near names takes long
def _build_unknown_option_fault(name: str) -> Fault:
    why = "The adapter looks up its own list of keys; one that is not in it is ignored in silence."
    where = {"env": catalog.find_variable, "estimator": catalog.find_argument, "atc": catalog.find_flag}
    for section, find in where.items():
        if find(name):
            hint = f"{name} belongs below [{section}]"
            return Fault("NP201", f"{name!r} is no session option", why, hint)
    hint = did_you_mean(name, catalog.record_names(), "npuprof options lists all; unset the key if nothing reads it")
    return Fault("NP201", f"unknown option {name!r}", why, hint)


def _find_option_faults(option: Option, value: Any) -> list[Fault]:
    if isinstance(value, (dict, list)):
        if option.structure:
            return _find_structure_faults(option, value)
        return [_build_type_fault(option, value)]
    if not _is_of_option_type(option, value):
        return [_build_type_fault(option, value)]
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return [
            Fault("NP203", f"{option.name} = {value} does not fit 64 bits", "The protobuf field holds an int64.", "write a smaller number")
        ]
    if option.choices:
        return _find_choice_faults(option, value)
    if isinstance(value, str):
        return _find_text_faults(option, value)
    return _find_range_faults(option, value)


def _is_of_option_type(option: Option, value: Any) -> bool:
    if option.field == "b" or (option.field is None and option.kind == "bool"):
        return isinstance(value, bool)
    if option.field == "i":
        return type(value) is int
    return isinstance(value, str)


def _build_type_fault(option: Option, value: Any) -> Fault:
    field = option.field or ("b" if option.kind == "bool" else "s")
    wanted = _FIELD_WORDS[field]
    if option.choices:
        wanted = (
            " or ".join(map(format_short_value, option.choices))
            if len(option.choices) < 4
            else f"{wanted}, one of {', '.join(map(format_short_value, option.choices))}"
        )
    guess = guess_choice(value, option.choices) if option.choices else guess_plain_value(value, _FIELD_KINDS[field], option.unit)
    if guess is not UNKNOWN and not _find_option_faults(option, guess):
        hint = f"write {option.name} = {format_short_value(guess)}"
    elif option.choices:
        hint = f"write one of {', '.join(map(format_short_value, option.choices))}"
    else:
        bounded = field == "i" and (option.minimum is not None or option.maximum is not None)
        example = catalog.find_record_texts("options", option.name).get("example") if field == "s" else None
        more = f", {_format_range(option.minimum, option.maximum, option.unit)}" if bounded else ""
        hint = f"write {wanted}{more}" + (f" like {format_short_value(example)}" if example is not None else "")
    why = WRONG_FIELD.get(option.on_wrong_field, "A value of another type is not stored where the adapter looks.")
    return Fault("NP202", f"{option.name} takes {wanted}, not {_describe_value_kind(value)}", why, hint)


def _describe_value_kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return format_short_value(value)


def _find_choice_faults(option: Option, value: Any) -> list[Fault]:
    if value in option.tolerated:
        return []
    doubt = option.doubtful_values.get(str(value))
    if doubt:
        plain = [choice for choice in option.choices if str(choice) not in option.doubtful_values]
        hint = f"not in doubt {'is' if len(plain) == 1 else 'are'} {', '.join(map(format_short_value, plain))}"
        return [Fault("NP205", f"{option.name} = {format_short_value(value)} is doubtful: {doubt}", "", hint)]
    if value in option.choices:
        return []
    until = option.choices_until.get(str(value))
    if until:
        return [
            Fault(
                "NP203",
                f"{option.name} = {format_short_value(value)} is no longer accepted",
                f"CANN {until} took the value away.",
                f"write one of {', '.join(map(format_short_value, option.choices))}",
            )
        ]
    listed = ", ".join(map(format_short_value, option.choices))
    hint = _suggest_choice(option.name, value, option.choices)
    why = _BAD_VALUE.get(option.on_bad_value, "The adapter passes it on unchecked; what the engine then does is not documented.")
    return [Fault("NP203", f"{option.name} = {format_short_value(value)} is none of {listed}", why, hint)]


def _suggest_choice(name: str, value: Any, choices: Sequence[Any]) -> str:
    """Return what to write instead of a value that is no choice: the choice that was meant, those that look like it, or all."""
    guess = guess_choice(value, choices)
    if guess is not UNKNOWN:
        return f"write {name} = {format_short_value(guess)}"
    near = find_near_choices(value, [str(choice) for choice in choices]) if isinstance(value, str) else []
    if near:
        return f"did you mean {' or '.join(map(format_short_value, near))}?"
    return f"write one of {', '.join(map(format_short_value, choices))}"


def _find_range_faults(option: Option, value: Any) -> list[Fault]:
    if isinstance(value, bool):
        return []
    low, high = option.minimum, option.maximum
    if (low is None or value >= low) and (high is None or value <= high):
        return []
    doubt = option.doubtful_values.get(str(value))
    why = _BAD_VALUE.get(option.on_bad_value, "Outside the documented range its effect is unknown.")
    hint = f"write {_format_range(low, high, option.unit)}"
    return [Fault("NP205" if doubt else "NP203", f"{option.name} = {value} is out of range", doubt or why, hint)]


def _format_range(low: float | None, high: float | None, unit: str) -> str:
    """Return bounds, of which there is at least one, in words."""
    span = f"{low} to {high}" if low is not None and high is not None else f"at least {low}" if high is None else f"at most {high}"
    return f"{span} {unit}".rstrip()


def _find_text_faults(option: Option, value: str) -> list[Fault]:
    if "\0" in value:
        return [Fault("NP203", f"{option.name} holds a NUL character", "No path or name can hold one.", "remove it")]
    if option.kind.startswith("path"):
        if value:
            return []
        hint = f"write a path, or unset {option.name}"
        return [Fault("NP203", f"{option.name} is empty", "An empty path names nothing.", hint)]
    structure = None
    if option.structure:
        from npuprof.catalog.structures import STRUCTURES

        structure = STRUCTURES[option.structure]
    parsed = structure.parse(value) if structure else None
    if parsed is not None and structure is not None:
        return [_build_structure_fault(option, fault) for fault in structure.faults(parsed)] or _find_undocumented_form_faults(
            option, parsed
        )
    number = read_number(value, option.unit) if option.unit and not option.structure else None
    if number is not None and str(number) != value and not _find_text_faults(option, str(number)):
        what = f"{option.name} = {format_short_value(value)} is not in its format"
        return [Fault("NP203", what, f"It is a number of {option.unit}, as text.", f'write {option.name} = "{number}"')]
    if option.kind == "json" or (option.pattern and not re.fullmatch(option.pattern, value)) or (structure and not option.pattern):
        example = catalog.find_record_texts("options", option.name).get("example")
        shapes = [f"text like {format_short_value(example)}"] if example else []
        shapes += [structure.shape] if structure else []
        hint = f"write {', or '.join(shapes)}" if shapes else f"unset it, or see npuprof option {option.name}"
        if option.lax_pattern and re.fullmatch(option.lax_pattern, value):
            why = "The adapter lets it pass, but its meaning is not documented."
            return [Fault("NP205", f"{option.name} = {format_short_value(value)} is not in the documented format", why, hint)]
        why = _BAD_VALUE.get(option.on_bad_value, "The adapter hands the text on as it is; the engine cannot read it.")
        return [Fault("NP203", f"{option.name} = {format_short_value(value)} is not in its format", why, hint)]
    return []


def _find_structure_faults(option: Option, value: Any) -> list[Fault]:
    from npuprof.catalog.structures import STRUCTURES

    return [
        _build_structure_fault(option, fault) for fault in STRUCTURES[option.structure].faults(value)
    ] or _find_undocumented_form_faults(option, value)


def _find_undocumented_form_faults(option: Option, names: Any) -> list[Fault]:
    """Return what the adapter takes although the documentation does not have it: odd names, a ratio left out."""
    if option.structure == "acceleration" and len(names) == 2:
        ratio = "0.9" if names[1] == "step" else "1.05"
        why = f"The documentation asks for all three fields; the adapter takes {ratio} for the third."
        return [Fault("NP205", f"{option.name} has no ratio", why, f"write the ratio as well, for example {ratio}")]
    if option.kind != "list" or not option.pattern:
        return []
    odd = [(index, name) for index, name in enumerate(names) if not re.fullmatch(option.pattern, str(name))]
    if not odd:
        return []
    why = "No documented name looks like that, and an unknown name is passed over without a message."
    hint = f"write names like {catalog.find_record_texts('options', option.name)['example']}"
    return [
        Fault("NP205", f"{option.name}: {format_short_value(name)} does not look like a name that is listed there", why, hint, (index,))
        for index, name in odd
    ]


def _build_structure_fault(option: Option, fault: tuple[Any, str, str]) -> Fault:
    tail, message, hint = fault
    why = _BAD_VALUE.get(option.on_bad_value, "What does not fit the format cannot be written for the engine.")
    return Fault("NP204", f"{keys.format_key_path(option.name, tail)}: {message}", why, hint, tail)


@cache
def _reserved_variable_names() -> dict[str, str]:
    """Return what stands behind ``NPUPROF_`` in an export, with the option it carries."""
    return dict.fromkeys(catalog.SAID_VARIABLES, "") | {name.upper(): name for name in catalog.record_names()}


def _find_variable_faults(name: str, value: Any) -> list[Fault]:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return [
            Fault(
                "NP207", f"{name!r} cannot be the name of an environment variable", "No shell could set it.", "use letters, digits and '_'"
            )
        ]
    if name.startswith("NPUPROF_") and name.removeprefix("NPUPROF_") in _reserved_variable_names():
        why = "An export holds the preset's name, its digest and every option under such names; the value would be lost."
        option = _reserved_variable_names()[name.removeprefix("NPUPROF_")]
        hint = f"write {option} below [options]" if option else "choose another name"
        return [Fault("NP210", f"env.{name} is a name that npuprof fills in", why, hint)]
    variable = catalog.find_variable(name)
    if isinstance(value, dict):
        return _find_launcher_faults(name, value, variable)
    if isinstance(value, list) or not isinstance(value, (str, int, float, bool)):
        return [
            Fault(
                "NP202",
                f"env.{name} takes text or a number, not {_describe_value_kind(value)}",
                "An environment holds text only.",
                _describe_wanted_text(variable),
            )
        ]
    if isinstance(value, str) and "\0" in value:
        return [Fault("NP203", f"env.{name} holds a NUL character", "No environment can hold one.", "remove it")]
    if isinstance(value, bool):
        word = guess_choice(value, variable.choices) if variable and variable.choices else str(int(value))
        known = word is not UNKNOWN and not _find_variable_faults(name, word)
        return [
            Fault(
                "NP202",
                f"env.{name} takes text or a number, not {format_short_value(value)}",
                "An environment holds text, and programs spell yes and no differently.",
                f"write {name} = {format_short_value(word)}" if known else _describe_wanted_text(variable),
            )
        ]
    if variable is None:
        near = _find_near_variables(name)
        if near and near[0] != name:
            return [Fault("NP206", f"no known environment variable {name!r}", "Nothing known reads it.", f"did you mean {near[0]!r}?")]
        return []
    text = str(value)
    parts = text.split(variable.separator) if variable.separator else [text]
    if variable.kind == "bool" and "true" in variable.choices:  # read in any case
        parts = [part.lower() for part in parts]
    if variable.choices and not set(parts) <= {*variable.choices, *variable.tolerated}:
        listed = ", ".join(map(format_short_value, variable.choices))
        hint = _suggest_choice(name, text, variable.choices) if not variable.separator else f"write one of {listed}"
        return [Fault("NP203", f"env.{name} = {format_short_value(text)} is none of {listed}", "", hint)]
    if variable.pattern and not re.fullmatch(variable.pattern, text):
        example = catalog.find_record_texts("env", name).get("format", variable.pattern)
        return [Fault("NP203", f"env.{name} = {format_short_value(text)} is not in its format", "", f"write text like {example}")]
    if variable.kind in ("int", "float"):
        return _find_number_faults(name, text, variable)
    return []


def _describe_wanted_text(variable: catalog.Variable | None) -> str:
    """Return the hint that says what a variable takes."""
    if variable is not None and variable.choices:
        return f"write one of {', '.join(map(format_short_value, variable.choices))}"
    if variable is None or variable.kind not in ("int", "float"):
        return "write text"
    bounded = variable.minimum is not None or variable.maximum is not None
    more = f", {_format_range(variable.minimum, variable.maximum, variable.unit)}" if bounded else ""
    return f"write {'a whole number' if variable.kind == 'int' else 'a number'}{more}"


@cache
def _find_near_variables(name: str) -> list[str]:
    return find_nearest_names(name, catalog.record_names("env"), 1, 0.85)  # JOB_NAME is no misspelt POD_NAME


def _find_number_faults(name: str, text: str, variable: catalog.Variable) -> list[Fault]:
    try:
        number = int(text) if variable.kind == "int" else float(text)
    except ValueError:
        wanted = "a whole number" if variable.kind == "int" else "a number"
        guess = guess_plain_value(text, variable.kind, variable.unit)
        good = guess is not UNKNOWN and not _find_number_faults(name, str(guess), variable)
        hint = f"write {name} = {guess}" if good else _describe_wanted_text(variable)
        return [Fault("NP202", f"env.{name} takes {wanted}, not {format_short_value(text)}", "", hint)]
    low, high = variable.minimum, variable.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        hint = f"write {_format_range(low, high, variable.unit)}"
        return [Fault("NP203", f"env.{name} = {text} is out of range", "", hint)]
    return []


def _find_launcher_faults(name: str, value: dict[str, Any], variable: catalog.Variable | None) -> list[Fault]:
    from npuprof.catalog.launchers import FACTS

    if set(value) != {"launcher"}:
        return [Fault("NP204", f"env.{name} takes text, a number or {{ launcher = ... }}", "", f'write {name} = {{ launcher = "rank" }}')]
    fact = value["launcher"]
    if not isinstance(fact, str) or fact not in FACTS:
        return [
            Fault(
                "NP203",
                f"env.{name}: unknown launcher fact {format_short_value(fact)}",
                "",
                did_you_mean(str(fact), FACTS, f"known are {', '.join(FACTS)}"),
                ("launcher",),
            )
        ]
    return []


def _find_argument_faults(name: str, value: Any) -> list[Fault]:
    argument = catalog.find_argument(name)
    if argument is None:
        if catalog.find_option(name):
            return [
                Fault(
                    "NP208",
                    f"{name} is a session option, not only an estimator argument",
                    "It would be lost on every other target.",
                    f"write {name} below [options]",
                )
            ]
        hint = did_you_mean(name, catalog.record_names("estimator"), f"known are {', '.join(catalog.record_names('estimator'))}")
        return [Fault("NP208", f"unknown estimator argument {name!r}", "NPURunConfig raises TypeError for it.", hint)]
    if argument.kind == "object":
        return [
            Fault(
                "NP208",
                f"estimator.{name} is an object of the script",
                "A preset holds plain values.",
                "pass it in the script, to the rendered function",
            )
        ]
    return _find_plain_value_faults(f"estimator.{name}", argument.kind, argument.choices, argument.minimum, argument.maximum, value)


def _find_flag_faults(name: str, value: Any) -> list[Fault]:
    flag = catalog.find_flag(name)
    if flag is None:
        hint = did_you_mean(name, catalog.record_names("atc"), "npuprof options lists all")
        hint = f"write {name.lstrip('-')} without dashes" if name.startswith("-") else hint
        return [Fault("NP209", f"unknown ATC flag {name!r}", "atc stops at a flag it does not know.", hint)]
    found = _find_plain_value_faults(f"atc.{name}", flag.kind, flag.choices, flag.minimum, flag.maximum, value)
    if not found and flag.pattern and isinstance(value, str) and not re.fullmatch(flag.pattern, value):
        found = [
            Fault(
                "NP203",
                f"atc.{name} = {format_short_value(value)} is not in its format",
                "atc stops at it.",
                "see npuprof option --" + name,
            )
        ]
    return found


def _find_plain_value_faults(
    key: str, kind: str, choices: tuple[Any, ...], low: float | None, high: float | None, value: Any
) -> list[Fault]:
    types: dict[str, tuple[type, ...]] = {"int": (int,), "bool": (bool,), "float": (int, float)}
    wanted = types.get(kind, (str,))
    by_choice = {type(choice) for choice in choices}
    if by_choice:
        wanted = tuple(by_choice)
    if type(value) not in wanted:
        words = {int: "a whole number", bool: "true or false", float: "a number", str: "text"}
        expected = " or ".join(dict.fromkeys(words.get(t, t.__name__) for t in wanted))
        guess = guess_choice(value, choices) if choices else guess_plain_value(value, kind)
        if guess is not UNKNOWN and not find_setting_faults(key, guess):
            hint = f"write {key.partition('.')[2]} = {format_short_value(guess)}"
        else:
            hint = f"write one of {', '.join(map(format_short_value, choices))}" if choices else f"write {expected}"
        return [Fault("NP202", f"{key} takes {expected}, not {_describe_value_kind(value)}", "", hint)]
    if choices and value not in choices:
        listed = ", ".join(map(format_short_value, choices))
        hint = _suggest_choice(key.partition(".")[2], value, choices)
        return [Fault("NP203", f"{key} = {format_short_value(value)} is none of {listed}", "", hint)]
    if type(value) in (int, float) and ((low is not None and value < low) or (high is not None and value > high)):
        bounds = " and ".join(
            text for text in (f"at least {low}" if low is not None else "", f"at most {high}" if high is not None else "") if text
        )
        return [Fault("NP203", f"{key} = {value} is out of range", "", f"write {bounds}")]
    return []
