"""Faults of the arguments of a program, by its own parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from npuprof.catalog.programs import find_program
from npuprof.checks.view import Fault
from npuprof.document.keys import format_short_value
from npuprof.model import LIKELY, Finding, did_you_mean, find_nearest_names
from npuprof.scripts.configuration import place_fault
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.programs.hydra_configs import HydraConfig
from npuprof.scripts.programs.parsers import (
    ANY_NUMBER,
    Parser,
    ParserArgument,
    list_arguments,
)
from npuprof.scripts.script_records import ImportedFile, ScriptSetting, StartedProgram

#: The minimum similarity of a flag that a parser with gaps may not have.
_ALIKE = 0.85
#: Findings by the names of other releases, which the parser of the program knows better.
BY_CATALOGUE = ("NP202", "NP203", "NP212", "NP216", "NP404", "NP405")
_EXPECTED = {"int": "a whole number", "float": "a number"}
_STOPS = "The program stops at it."


def judge_programs(
    imported: ImportedFile, findings: list[Finding], programs: Programs
) -> list[Finding]:
    """Return findings about a script; those about arguments are by the parsers of its programs."""
    for started in imported.list_records(StartedProgram):
        path = programs.find(imported.file, started.script, started.module)
        given = [each for each in imported.settings if each.scope == started.scope and each.key]
        if path and given:
            findings = _judge_program(given, findings, path, programs)
    return findings


def _judge_program(
    given: list[ScriptSetting], findings: list[Finding], path: str, programs: Programs
) -> list[Finding]:
    program = find_program(given[0].surface)
    if program is not None and program.syntax == "hydra":
        values = {each.name: ... if each.reason else each.value for each in given}
        config = programs.read_config(path, values)
        if config is None or not config.complete:
            return findings
        judged = {each: find_override_faults(config, each.name, values) for each in given}
    else:
        parser = programs.read_parser(path)
        if parser is None:
            return findings
        judged = {
            each: find_flag_faults(parser, _get_flag(each), _get_value(each), programs)
            for each in given
        }
        if not parser.complete:
            flags = parser.flags
            judged = {
                each: faults
                for each, faults in judged.items()
                if faults or _get_flag(each) in flags
            }
    keys = {(each.key, each.line, each.column) for each in judged}
    kept = [
        finding
        for finding in findings
        if finding.code not in BY_CATALOGUE
        or (finding.key, finding.line, finding.column) not in keys
    ]
    return kept + [
        place_fault(fault, setting)
        for setting, faults in judged.items()
        if not (setting.dead or setting.commented)
        for fault in faults
    ]


def _get_flag(setting: ScriptSetting) -> str:
    return setting.name if setting.name.startswith("-") else f"--{setting.name}"


def _get_value(setting: ScriptSetting) -> Any:
    """Return the value of an argument, ``...`` for one that is not known."""
    return ... if setting.reason else setting.value


def find_flag_faults(parser: Parser, flag: str, value: Any, programs: Programs) -> list[Fault]:
    """Return the faults of a flag: an unknown name, or a value that the parser rejects.

    The value is true for a flag alone, ``...`` if it is not known.
    """
    flags = parser.flags
    argument = flags.get(flag)
    if argument is not None:
        values = value if isinstance(value, list) and value else [value]
        if not all(isinstance(each, list) for each in values):
            values = [value]  # one flag
        faults = [_find_value_fault(parser, argument, flag, each) for each in values]
        how = {} if parser.complete else LIKELY
        return [fault._replace(**how) for fault in faults if fault][:1]
    is_short = parser.abbreviated and any(each.startswith(flag) for each in flags)
    if not flag.startswith("--") or is_short or programs.is_quoted(parser, flag):
        return []
    names = [each.name for each in list_arguments(parser)]
    name = flag.removeprefix("--")
    nearest = find_nearest_names(name, names, 1)
    fault = Fault(
        "NP212",
        f"{parser.path} has no argument {flag}",
        _STOPS,
        did_you_mean(flag, flags, f"its arguments are in {_name_sources(parser)}"),
    )
    if nearest:
        place = flags[f"--{nearest[0]}"].where if f"--{nearest[0]}" in flags else parser.path
        fault = fault._replace(why=f"{_STOPS} --{nearest[0]} is defined in {place}.")
    if parser.complete:
        return [fault._replace(severity="error")]
    if not nearest or SequenceMatcher(None, name, nearest[0]).ratio() < _ALIKE:
        return []
    return [fault._replace(**LIKELY)]


def _name_sources(parser: Parser) -> str:
    places = dict.fromkeys(each.where.rpartition(":")[0] for each in parser.arguments)
    return ", ".join(list(places)[:3])


def _find_value_fault(
    parser: Parser, argument: ParserArgument, flag: str, value: Any
) -> Fault | None:
    """Return the fault of the values after one flag, None if they may be right."""
    nargs = argument.nargs
    if value is ... or nargs == ANY_NUMBER or isinstance(value, dict):
        return None
    values = [] if value is True else value if isinstance(value, list) else [value]
    why = f"{_STOPS} {flag} is defined in {argument.where}."
    least, most = {None: (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}.get(
        nargs, (nargs, nargs) if isinstance(nargs, int) else (0, None)
    )
    # words after the last one may be for an argument without flag
    has_words = any(not flag.startswith("-") for each in parser.arguments for flag in each.flags)

    if len(values) < least:
        what = f"{flag} takes {least if least > 1 else 'a'} value{'s' if least > 1 else ''}"
        # an empty variable may be a placeholder
        return Fault("NP203", what, why, f"write {flag} VALUE")._replace(**LIKELY)
    if most is not None and len(values) > most and value is not False:
        if has_words:
            return None
        what = f"{flag} takes {most or 'no'} value{'s' if most > 1 else ''}"
        extra = format_short_value(values[most])
        return Fault("NP203", f"{what}, and nothing takes {extra}", why, "remove it")
    for each in values[:most]:
        if each is True or each is False or isinstance(each, (list, dict)) or each is None:
            continue
        read = _convert(argument.kind, each)
        shown = f"{flag} {format_short_value(each)}"
        if read is ...:
            expected = _EXPECTED[argument.kind]
            what = f"{shown}: {flag} takes {expected}"
            return Fault("NP202", what, why, f"write {expected}")
        if argument.choices and read not in argument.choices and str(each) not in argument.choices:
            hint = did_you_mean(str(each), map(str, argument.choices))
            listed = ", ".join(map(str, argument.choices[:12]))
            what = f"{shown} is none of its choices"
            return Fault("NP203", what, why, hint or f"write one of {listed}")
    return None


def _convert(kind: str, value: Any) -> Any:
    """Return a value as argparse converts its text, ``...`` if it cannot."""
    try:
        if kind == "int":
            return value if isinstance(value, int) else int(str(value))
        return float(value) if kind == "float" else value if not kind else str(value)
    except ValueError:
        return ...


def find_override_faults(
    config: HydraConfig, name: str, overrides: Mapping[str, Any]
) -> list[Fault]:
    """Return the faults of an override of Hydra, by the keys of the configuration."""
    prefix = name[: len(name) - len(name.lstrip("+~"))]
    key = name[len(prefix) :]
    if name.startswith("-") or key.partition(".")[0].partition("/")[0] == "hydra":
        return []
    if key in config.groups or "/" in key or "@" in key or prefix == "++":
        return []
    # an override before it may have made the key
    others = [each.lstrip("+~") for each in overrides if each != name]
    if any(key == each or key.startswith(f"{each}.") for each in others):
        return []
    known = config.keys.get(key)
    if prefix == "+":
        value = overrides.get(name)
        if known is None or not known.is_plain or value is ... or isinstance(value, (dict, list)):
            return []
        what = f"+{key} is there already"
        why = f"Hydra stops at it. {key} is defined in {known.where}."
        return [Fault("NP203", what, why, f"write {key}, or ++{key}")]
    if known is not None or _is_in_list(config, key):
        return []
    what = f"{config.path} has no key {key}"
    hint = did_you_mean(key, config.keys)
    if prefix:
        return [Fault("NP212", what, "Hydra stops where it cannot delete a key.", hint)]
    hint = f"{hint} or write +{key}" if hint else f"write +{key}"
    return [Fault("NP212", what, "Hydra stops at a new key without +.", hint)]


def _is_in_list(config: HydraConfig, key: str) -> bool:
    parts: Sequence[str] = key.split(".")
    above = (".".join(parts[:count]) for count in range(1, len(parts)))
    return any(config.keys[each].is_list for each in above if each in config.keys)
