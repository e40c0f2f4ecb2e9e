"""Faults of environment variables."""

from __future__ import annotations

import re
from functools import cache
from math import isfinite

from npuprof import catalog
from npuprof.catalog.execution import (
    find_meant_variable,
    has_complete_prefix,
    list_misspelt_names,
    list_option_calls,
)
from npuprof.catalog.readers import (
    Reading,
    find_reading,
    find_spelling,
    is_documented,
    may_be_taken,
)
from npuprof.catalog.records import NONE_DECLARED, TeamVariables
from npuprof.catalog.values import load_form
from npuprof.checks.meaning import (
    UNKNOWN,
    build_choice_fault,
    describe_value_kind,
    format_choices,
    guess_choice,
    guess_plain_value,
    read_truth,
    suggest_value,
    verify_guess,
)
from npuprof.checks.view import Fault, find_nul_faults, find_range_faults
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import (
    Any,
    Fix,
    TomlTable,
    did_you_mean,
    find_nearest_names,
    is_variable_name,
)
from npuprof.system import list_items

_NUMBER_KINDS = {"int": "a whole number", "float": "a number"}


@cache
def _reserved_variable_names() -> dict[str, str]:
    """Return the option names after ``NPUPROF_`` in an export, each with its option."""
    return dict.fromkeys(catalog.PROVENANCE_VARIABLES, "") | {
        name.upper(): name for name in catalog.record_names()
    }


def is_filled_in(name: str) -> bool:
    """Return whether npuprof sets a variable itself when it exports a preset."""
    return (
        name.startswith("NPUPROF_") and name.removeprefix("NPUPROF_") in _reserved_variable_names()
    )


def find_variable_faults(
    name: str, value: Any, declared: TeamVariables = NONE_DECLARED
) -> list[Fault]:
    """Return the faults of a variable and its value; ``declared`` are those of the team."""
    if faults := find_name_faults(name):
        return faults
    if is_filled_in(name):
        why = (
            "An export contains the preset's name, its digest and every option under such names; "
            "the value would be overwritten."
        )
        option = _reserved_variable_names()[name.removeprefix("NPUPROF_")]
        hint = f"write {option} below [options]" if option else "choose another name"
        return [Fault("NP210", f"env.{name} is a name that npuprof fills in", why, hint)]
    variable = catalog.find_variable(name) or declared.get(name)
    if isinstance(value, dict):
        if variable is not None and variable.kind == "pairs":
            return _find_pairs_faults(variable, value)
        return _find_launcher_faults(name, value, variable)
    if not isinstance(value, (str, int, float)):
        what = f"env.{name} takes text or a number, not {describe_value_kind(value)}"
        why, hint = "Environment variables are strings.", _describe_expected_text(variable)
        return [Fault("NP202", what, why, hint)]
    if faults := find_nul_faults(f"env.{name}", value, "No environment can hold one."):
        return faults
    if isinstance(value, bool):
        return [_build_truth_fault(name, value, variable)]
    if variable is None:
        return _find_unknown_faults(name, str(value), declared)
    if (reading := find_reading(variable)).others:
        return _find_switch_faults(name, str(value), variable, reading)
    if variable.items:
        return _find_pairs_faults(variable, str(value))
    faults = _find_written_faults(name, find_spelling(variable, str(value)), variable)
    why = variable.otherwise or reading.why
    return [fault._replace(why=why) for fault in faults] if why else faults


def find_name_faults(name: str) -> list[Fault]:
    """Return the fault of a name that no shell can set, such as one with a hyphen."""
    if is_variable_name(name):
        return []
    what = f"{name!r} cannot be the name of an environment variable"
    meant = name.replace("-", "_")
    hint = f"write {meant}" if catalog.find_variable(meant) else "use letters, digits and '_'"
    return [Fault("NP207", what, "No shell can set it.", hint)]


def _build_truth_fault(name: str, value: bool, variable: catalog.Variable | None) -> Fault:
    text = verify_guess(
        _find_truth_text(value, variable), lambda text: find_variable_faults(name, text)
    )
    what = f"env.{name} takes text or a number, not {format_short_value(value)}"
    why = "Environment variables are strings, and programs differ in the words for true and false."
    hint, fix = suggest_value(name, text, _describe_expected_text(variable))
    return Fault("NP202", what, why, hint, fix=fix)


def _find_unknown_faults(name: str, text: str, declared: TeamVariables) -> list[Fault]:
    """Return the faults of an unknown variable: it is an option, or resembles a known variable."""
    if faults := _find_misplaced_faults(name) or find_misspelt_faults(name, declared):
        return faults
    is_path = name.endswith(("PATH", "DIR", "HOME", "FILE"))
    return _find_unexpanded_paths(name, text) if is_path else []


@cache  # presets set one unknown variable to many values
def _find_misplaced_faults(name: str) -> list[Fault]:
    """Return the fault of an option of the adapter or of a program as a variable."""
    if catalog.find_option(name) is None:
        for section in catalog.load_sections():
            if catalog.find_setting(section, name):
                what = f"{name} is an option of {section}, not an environment variable"
                why = "Nothing reads a variable of that name."
                hint = f"{name} belongs below [{section}]; on a command line it is {section}.{name}"
                return [Fault("NP206", what, why, hint)]
    return find_option_faults(name, "it belongs below [options]")


def _find_truth_text(value: bool, variable: catalog.Variable | None) -> Any:
    """Return the text that means true or false to a variable."""
    if variable is None or variable.kind == "flag":
        return str(int(value))
    if (reading := find_reading(variable)).others:
        return reading.find_text("on" if value else "off", variable.choices) or UNKNOWN
    return guess_choice(value, variable.choices, variable.numbered)


def _find_switch_faults(
    name: str, text: str, variable: catalog.Variable, reading: Reading
) -> list[Fault]:
    """Return the fault of a text that a switch rejects or takes for its opposite.

    A warning if the intent is unclear.
    """
    intended = {True: "on", False: "off", None: ""}[read_truth(text) if text else False]
    state = reading.read_switch(text)
    if state == intended or text in variable.choices:
        return []
    effects = {
        "on": "switches it on",
        "off": "switches it off",
        "ignored": "is ignored",
        "fails": "is not accepted",
    }
    what = f"env.{name} = {format_short_value(text)} {effects[state]}"
    texts = {side: reading.find_text(side, variable.choices) for side in ("on", "off")}
    otherwise = f"write {' or '.join(filter(None, texts.values()))}"
    if intended == "off":
        otherwise = "unset it"
    hint, fix = suggest_value(name, texts.get(intended) or UNKNOWN, otherwise, text)
    severity = "error" if intended or state in ("fails", "ignored") else "warning"
    why = variable.otherwise or reading.why
    return [Fault("NP203", what, why, hint, severity=severity, fix=fix)]


def _find_written_faults(name: str, text: str, variable: catalog.Variable) -> list[Fault]:
    """Return the faults of a known variable's text."""
    if not is_documented(variable, text):
        fault = _build_text_fault(name, text, variable)
        return [fault._replace(severity="info") if may_be_taken(variable, text) else fault]
    if variable.kind in ("int", "float"):
        return _find_number_faults(name, text, variable)
    if variable.ascending and text:
        # as texts: int() refuses those of more than 4,300 digits
        plain = re.sub(r"\b0+(?=[0-9])", "", text)
        numbers = [(len(number), number) for number in plain.split(",")]
        if (ordered := sorted(set(numbers))) != numbers:
            what = f"env.{name} = {format_short_value(text)} does not ascend"
            hint = f'write "{",".join(number for _, number in ordered)}"'
            return [Fault("NP203", what, variable.ascending, hint)]
    if variable.kind in ("path", "pathlist"):
        from npuprof.checks.plain_values import find_path_faults

        paths = text.split(":") if variable.kind == "pathlist" else [text]
        return [
            fault
            for path in paths
            for fault in find_path_faults(f"env.{name}", path, variable.path_characters)
        ]
    return _find_form_faults(name, text, variable.structure) if variable.structure else []


def _build_text_fault(name: str, text: str, variable: catalog.Variable) -> Fault:
    from unicodedata import normalize

    meant = re.sub("['\"\u2018\u2019\u201c\u201d]", "", normalize("NFKC", text))
    if meant != text and is_documented(variable, find_spelling(variable, meant)):
        odd = next(char for char in text if char not in meant)
        what = f"env.{name} = {format_short_value(text)} contains {odd}"
        why = "Its reader takes the character for a part of the value."
        return Fault("NP203", what, why, f"write {meant}", fix=Fix(meant))
    if variable.choices:
        # A list of choices is not similar to a single one.
        suggestion = (_describe_expected_text(variable), None) if variable.separator else None
        return build_choice_fault(f"env.{name}", text, variable, suggestion)
    texts = catalog.find_record_texts("env", name)
    why = f"Its form is {texts['format']}." if "format" in texts else ""
    hint = f"write text like {keys.format_toml_value(texts['example'])}"
    return Fault(
        "NP203", f"env.{name} = {format_short_value(text)} is not in its format", why, hint
    )


def _find_unexpanded_paths(name: str, text: str) -> list[Fault]:
    """Return the unexpanded parts of paths that other programs read.

    The dynamic linker knows three tokens.
    """
    from npuprof.checks.plain_values import find_path_faults

    return [
        fault
        for path in text.split(":")
        if not path.startswith(("$ORIGIN", "${ORIGIN}", "$LIB", "$PLATFORM"))
        for fault in find_path_faults(f"env.{name}", path)
    ]


def _find_form_faults(name: str, text: str, form: str) -> list[Fault]:
    """Return the faults of a text with several values."""
    structure = load_form(form)
    parsed = structure.parse(text)
    if parsed is None:
        hint = f"write {structure.shape}, on one line"
        what = f"env.{name} = {format_short_value(text)} is not in its format"
        return [Fault("NP203", what, "Its reader takes one JSON object.", hint)]
    faults = []
    for fault in structure.faults(parsed):
        what = ".".join(map(str, (*fault.path, fault.what)))
        faults.append(Fault("NP203", f"env.{name}: {what}", "", fault.hint))
    if faults or not structure.caveats:
        return faults
    return [
        Fault("NP205", f"env.{name}: {caveat.what}", "", caveat.hint)
        for caveat in structure.caveats(parsed)
    ]


def _describe_expected_text(variable: catalog.Variable | None) -> str:
    """Return the hint that describes a variable's values."""
    if variable is not None and variable.choices:
        return f"write one of {format_choices(variable.choices)}"
    if variable is None or variable.kind not in ("int", "float"):
        return "write text"
    hint = f"write {_NUMBER_KINDS[variable.kind]}"
    if variable.minimum is None and variable.maximum is None:
        return hint
    return f"{hint}, {keys.format_range(variable.minimum, variable.maximum, variable.unit)}"


def find_misspelt_faults(name: str, declared: TeamVariables = NONE_DECLARED) -> list[Fault]:
    """Return the fault of a name that misspells a known variable, or one of the team.

    It is an error if the name is known to be wrong, or the catalogue is complete for its prefix.
    """
    meant = find_meant_variable(name) or next(
        iter(declared and find_nearest_names(name, declared, 1)), ""
    )
    if not meant:
        return []
    is_recorded = name in list_misspelt_names()
    is_same = meant.replace("_", "") == name.upper().replace("_", "")
    return [
        Fault(
            "NP206",
            f"no known environment variable {name!r}",
            f"Programs read {meant}." if is_recorded else "The catalogue does not contain it.",
            f"did you mean {meant!r}?",
            severity="error" if is_recorded or has_complete_prefix(name) else "warning",
            fix=Fix(None, meant) if is_same else None,
        )
    ]


def find_option_faults(name: str, advice: str) -> list[Fault]:
    """Return the fault of an option name that no program reads as a variable.

    ``advice`` is where a session option belongs.
    """
    framework, call = list_option_calls().get(name, ("", ""))
    if call:
        what = f"{name} is an option of {framework}, not an environment variable"
        why = "Nothing reads a variable of that name."
        return [Fault("NP206", what, why, f"write {call} in the script")]
    if catalog.find_option(name) is None:
        return []
    what = f"no known environment variable {name!r}"
    why = "The adapter does not read it from the environment."
    return [Fault("NP206", what, why, f"{name} is a session option: {advice}")]


def is_misspelt(name: str, declared: TeamVariables = NONE_DECLARED) -> bool:
    """Return whether an unknown name resembles a known variable, or is that of an option."""
    return bool(find_misspelt_faults(name, declared) or find_option_faults(name, ""))


def _find_number_faults(name: str, text: str, variable: catalog.Variable) -> list[Fault]:
    number = _parse_number(text, variable.kind)
    if number is None:
        guess = guess_plain_value(text, variable.kind, variable.unit)
        guess = verify_guess(guess, lambda guess: _find_number_faults(name, str(guess), variable))
        hint, fix = suggest_value(name, guess, _describe_expected_text(variable), text)
        what = f"env.{name} takes {_NUMBER_KINDS[variable.kind]}, not {format_short_value(text)}"
        return [Fault("NP202", what, hint=hint, fix=fix)]
    if faults := find_range_faults(f"env.{name} = {text}", number, variable):
        return faults
    step = variable.multiple_of
    if step > 1 and number % step:
        what = f"env.{name} = {text} is not a multiple of {step}"
        return [Fault("NP203", what, hint=f"write a multiple of {step}")]
    return []


def _parse_number(text: str, kind: str) -> int | float | None:
    """Return the finite number in a text, None if there is none."""
    try:
        number = int(text) if kind == "int" else float(text)
    except ValueError:
        return None
    return number if isinstance(number, int) or isfinite(number) else None


def _find_pairs_faults(variable: catalog.Variable, value: str | TomlTable) -> list[Fault]:
    """Return the faults of key-value pairs.

    They are errors if the reader rejects them or no text can express them, else warnings.
    """
    from npuprof.catalog.key_value_pairs import find_pair_faults

    nested = {key for key, item in list_items(value) if isinstance(item, (dict, list))}
    rejects = variable.unknown == "fails"
    return [
        Fault(
            "NP203",
            f"env.{variable.name}: {fault.what}",
            fault.why,
            fault.hint,
            fault.path,
            severity="error" if rejects or not nested.isdisjoint(fault.path) else "warning",
        )
        for fault in find_pair_faults(variable, value)
    ]


def _find_launcher_faults(
    name: str, value: TomlTable, variable: catalog.Variable | None
) -> list[Fault]:
    """Return the fault of a table in place of a text, ``{ launcher = "rank" }``."""
    from npuprof.catalog.launchers import FACTS, NUMBERS

    if set(value) != {"launcher"}:
        expected = variable.launcher if variable is not None else "rank"
        hint = _describe_expected_text(variable)
        if expected:
            hint = f'write {name} = {{ launcher = "{expected}" }}'
        what = f"env.{name} takes text, a number or {{ launcher = ... }}"
        return [Fault("NP204", what, hint=hint)]
    fact = value["launcher"]
    if not isinstance(fact, str) or fact not in FACTS:
        what = f"env.{name}: unknown launcher fact {format_short_value(fact)}"
        hint = did_you_mean(str(fact), FACTS, f"known are {', '.join(FACTS)}")
        return [Fault("NP203", what, "", hint, ("launcher",))]
    return _find_misplaced_facts(variable, fact, fact in NUMBERS) if variable is not None else []


def _find_misplaced_facts(variable: catalog.Variable, fact: str, is_number: bool) -> list[Fault]:
    """Return the fault of a launcher fact that a variable does not accept."""
    what = f"env.{variable.name} takes no {fact} of a launcher"
    meant = variable.launcher
    if meant and fact != meant:
        hint = f'write {variable.name} = {{ launcher = "{meant}" }}'
        if {meant, fact} == {"rank", "local-rank"}:
            why = "The two are equal on the first server only."
            return [Fault("NP205", what, why, hint, ("launcher",))]
        why = f"It is the {meant} of the process or the job."
        return [Fault("NP203", what, why, hint, ("launcher",))]
    if variable.choices or (variable.kind in ("int", "float") and not is_number):
        return [Fault("NP203", what, "", _describe_expected_text(variable), ("launcher",))]
    return []
