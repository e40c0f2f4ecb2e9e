"""What is wrong with one flag of an ``atc`` command line, in the words of a command line."""

from __future__ import annotations

import re
from typing import Any

from npuprof import catalog
from npuprof.catalog import Flag
from npuprof.checks import settings
from npuprof.checks.arguments import find_chip_faults, find_flag_faults
from npuprof.checks.surfaces import OFFLINE, find_surface_faults
from npuprof.checks.view import Fault, Scope
from npuprof.model import find_nearest_names
from npuprof.scripts.records import EMPTY, ScriptSetting

#: What a command line of ATC is judged for.
_CONVERSION = Scope(OFFLINE, (), ())
_STOPS = "atc stops at such a value."
_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,19}", re.ASCII)


def _tell_doubt(found: ScriptSetting, fault: Fault) -> Fault:
    said, is_of_value, rest = fault.message.partition(" is doubtful")
    message = f"{found.name}={found.given.written}{is_of_value}{rest}" if is_of_value else said
    return fault._replace(message=message, hint=fault.hint.replace('"', ""))


def find_script_flag_faults(found: ScriptSetting) -> list[Fault]:
    """Return what is wrong with one flag: by its own record, by the option that it is where the record says nothing of its form."""
    if not found.name:
        return []
    flag = catalog.find_flag(found.name.removeprefix("--"))
    if flag is None:
        return [_build_unknown_fault(found.name)]
    if found.reason or found.given.written is None:
        return []
    if found.unused == EMPTY:
        return [Fault("NP502", f"{found.name} is {EMPTY}", "The empty text is its default.", f"leave out {found.name}, or give it a value")]
    if flag.kind == "chip":
        return find_chip_faults(found.name, found.given.written)
    told = list(settings.find_value_faults(_CONVERSION, found.key, found.value))
    if flag.choices or flag.pattern or flag.kind in ("int", "bool"):
        doubts = (fault for fault in told if fault.code == "NP205")
        return _find_text_faults(flag, found.given.written) or [_tell_doubt(found, fault) for fault in doubts]
    told = [fault for fault in told if fault.severity == "error" or fault.code == "NP205"]
    option = catalog.find_option(found.key)
    if not told and option is not None:
        told = [fault for fault in find_surface_faults(_CONVERSION, option, found.value) if fault.code == "NP203"]
    return [fault if flag.kind == "path" else fault._replace(why=_STOPS) for fault in told]


def _build_unknown_fault(name: str) -> Fault:
    longer = [flag for flag in catalog.record_names("atc") if flag.startswith(name.removeprefix("--"))]
    if len(longer) == 1:
        why = "atc of the current release takes a beginning that no other flag has; older releases stop at it."
        return Fault("NP209", f"{name} is short for --{longer[0]}", why, f"write --{longer[0]}", severity="warning")
    near = find_nearest_names(name.removeprefix("--"), catalog.record_names("atc"), 1)
    what, why = f"atc of the current release has no flag {name}", "atc stops at a flag it does not know."
    return Fault("NP209", what, why, f"did you mean '--{near[0]}'?" if near else "see npuprof options")


def _find_text_faults(flag: Flag, text: str) -> list[Fault]:
    """Return what is wrong with the text of a flag whose record says which texts it takes: the same as in a preset."""
    value: Any = {"true": True, "false": False}.get(text, text) if flag.kind == "bool" else text
    if flag.kind == "int" and _WHOLE_NUMBER.fullmatch(text):
        value = int(text)
    faults = [fault._replace(why=_STOPS, hint=_write_as_flag(fault.hint, flag)) for fault in find_flag_faults(flag.name, value)]
    return [fault._replace(message=_write_as_flag(fault.message, flag)) for fault in faults]


def _write_as_flag(told: str, flag: Flag) -> str:
    """Return what is told of a preset's key in the words of a command line: ``--flag=value``."""
    return re.sub(rf"(?:atc\.|(?<=write )){flag.name}( = )?", lambda match: f"--{flag.name}{'=' * bool(match[1])}", told).replace('"', "")
