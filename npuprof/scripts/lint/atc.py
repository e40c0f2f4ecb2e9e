"""What is wrong with one flag of an ``atc`` command line, in the words of a command line."""

from __future__ import annotations

import re

from npuprof import catalog
from npuprof.catalog import Flag
from npuprof.checks import settings
from npuprof.checks.arguments import find_chip_faults
from npuprof.checks.meaning import UNKNOWN, find_near_choices, guess_choice
from npuprof.checks.surfaces import OFFLINE, find_surface_faults
from npuprof.checks.view import Fault, Scope
from npuprof.document.keys import format_short_value
from npuprof.model import find_nearest_names
from npuprof.scripts.reading.found import FoundSetting

#: What a command line of ATC is judged for.
_CONVERSION = Scope(OFFLINE, (), ())
_STOPS = "atc stops at such a value."


def find_script_flag_faults(found: FoundSetting) -> list[Fault]:
    """Return what is wrong with one flag: by its own record, by the option that it is where the record says nothing of its form."""
    if not found.name:
        return []
    name = found.name.removeprefix("--")
    flag = catalog.find_flag(name)
    if flag is None:
        return [_build_unknown_fault(found.name)]
    if found.reason or found.written is None:
        return []
    if flag.kind == "chip":
        return find_chip_faults(found.name, found.written)
    if _has_form(flag):
        return _find_text_faults(flag, found.written)
    told = [
        fault
        for fault in settings.find_value_faults(_CONVERSION, found.key, found.value)
        if fault.severity == "error" or fault.code == "NP205"
    ]
    option = catalog.find_option(found.key)
    if not told and option is not None:
        told = [fault for fault in find_surface_faults(_CONVERSION, option, found.value) if fault.code == "NP203"]
    return [fault if flag.kind == "path" else fault._replace(why=_STOPS) for fault in told]


def _build_unknown_fault(name: str) -> Fault:
    near = find_nearest_names(name.removeprefix("--"), catalog.record_names("atc"), 1)
    what, why = f"atc of the current release has no flag {name}", "atc stops at a flag it does not know."
    return Fault("NP209", what, why, f"did you mean '--{near[0]}'?" if near else "see npuprof options")


def _has_form(flag: Flag) -> bool:
    return bool(flag.choices or flag.pattern) or flag.kind in ("int", "bool")


def _find_text_faults(flag: Flag, text: str) -> list[Fault]:
    """Return what is wrong with the text of a flag whose record says which texts it takes."""
    said = f"--{flag.name}={format_short_value(text)[1:-1]}"
    choices = tuple(map(str, flag.choices)) or (("true", "false") if flag.kind == "bool" else ())
    if doubt := flag.doubtful_values.get(text):
        plain = [str(choice) for choice in flag.choices if str(choice) not in flag.doubtful_values]
        return [Fault("NP205", f"{said} is doubtful: {doubt}", "", f"not in doubt are {', '.join(plain)}")]
    if choices:
        return [] if text in choices else [Fault("NP203", f"{said} is none of {', '.join(choices)}", _STOPS, _suggest(flag, text, choices))]
    if flag.kind == "int":
        if not re.fullmatch(r"[-+]?[0-9]+", text, re.ASCII):
            return [Fault("NP202", f"--{flag.name} takes a whole number, not {format_short_value(text)}", _STOPS, "write a whole number")]
        low, high = flag.minimum, flag.maximum
        high = 2**63 - 1 if high is None else high
        if len(text) > 19 or (low is not None and int(text) < low) or int(text) > high:
            hint = f"write {f'at least {low}' if low is not None and int(text[:19]) < low else f'at most {high}'}"
            return [Fault("NP203", f"{said} is out of range", _STOPS, hint)]
        return []
    if re.fullmatch(flag.pattern, text):
        return []
    return [Fault("NP203", f"{said} is not in its format", _STOPS, f"see npuprof option --{flag.name}")]


def _suggest(flag: Flag, text: str, choices: tuple[str, ...]) -> str:
    """Return what to write instead of a text that is no choice: what a session would call so comes first."""
    option = catalog.find_option(flag.twin) if flag.twin else None
    guess = option.surface_values.get("atc", {}).get(text.lower(), UNKNOWN) if option else UNKNOWN
    guess = guess_choice(text, choices, flag.numbered) if guess is UNKNOWN else guess
    if guess is not UNKNOWN:
        return f"write --{flag.name}={guess}"
    near = find_near_choices(text, choices)
    return f"did you mean {' or '.join(f'--{flag.name}={one}' for one in near)}?" if near else f"write one of {', '.join(choices)}"
