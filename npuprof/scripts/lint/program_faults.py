"""Faults of the arguments of a program, by its own parser."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import accumulate, chain
from math import inf
from operator import attrgetter
from typing import Any

from npuprof import catalog
from npuprof.catalog.programs import find_program, spell_flag
from npuprof.checks.program_values import find_program_value_faults, list_occurrences
from npuprof.checks.store import StoreReport
from npuprof.checks.unknown_settings import build_unknown_fault
from npuprof.checks.view import Fault
from npuprof.document.keys import (
    format_full_key,
    format_key_path,
    format_short_value,
    list_table_leaves,
    parse_key,
    split_section_and_name,
)
from npuprof.model import (
    LIKELY,
    Finding,
    NpuprofError,
    did_you_mean,
    find_nearest_names,
)
from npuprof.resolve.config import Config
from npuprof.scripts.configuration import place_fault
from npuprof.scripts.grouping import group_by
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.programs.hydra_configs import HydraConfig
from npuprof.scripts.programs.parsers import (
    ANY_NUMBER,
    NO_RELEASE,
    OTHER_CLASS,
    Parser,
    ParserArgument,
)
from npuprof.scripts.reading.shells.text_slips import build_unused_finding
from npuprof.scripts.reading.training_launches import MOST_MARKS, OVERRIDE, YAML_ENDINGS
from npuprof.scripts.script_records import (
    ImportedFile,
    ScriptLocation,
    ScriptSetting,
    StartedProgram,
    UnusedVariable,
    UsedFile,
)
from npuprof.store.checked import CheckedStore

#: The minimum similarity of a flag that a parser with gaps may not have.
_ALIKE = 0.85

#: Findings by the names of other releases, which the parser of the program knows better.
_BY_CATALOGUE = (
    *("NP202", "NP203", "NP212", "NP216", "NP217", "NP404", "NP405", "NP502"),
    *("NP3339", "NP3340", "NP3341", "NP3342"),
)
#: Findings by the checks of Megatron-LM and MindSpeed.
_RULES = ("NP33", "NP34")

_COUNTS: dict[Any, tuple[int, float]] = {None: (1, 1), "?": (0, 1), "*": (0, inf), "+": (1, inf)}
_NUMBERS = {0: "no value", 1: "a value"}
_STOPS = "The program stops at it."
_build_unknown_fault = lru_cache(1000)(build_unknown_fault)  # launches have slips in common
#: The minimum share of a command's flags that are known, and a gap for others out of the tree.
_KNOWN_FLAGS = 0.75
_OUTSIDE = re.compile(
    r"not in the tree|sys\.argv|mindspeed|add_argument of|add_\w+_args\(\) gets"
    r"|ignore unknown|is computed"
)
#: An override that chooses an option of a group, or that is for Hydra itself.
_GROUP = re.compile(r"-|hydra\b|.*[/@]")
#: A flag that names a file.
_CONFIG = re.compile("conf|cfg|yaml")
#: The key and the place of a setting, or of a finding about it.
_locate = attrgetter("key", "line", "column")


def judge_programs(
    imported: ImportedFile, findings: list[Finding], programs: Programs
) -> list[Finding]:
    """Return findings about a script; those about arguments are by the parsers of its programs."""
    by_scope = group_by(filter(attrgetter("key"), imported.settings), attrgetter("scope"))
    # a tree with its own Megatron-LM may have another release of it
    kept = [
        each
        for each in findings
        if each.code not in _BY_CATALOGUE
        or not each.key.startswith("megatron.")
        # the files of the tree are searched only for what is reported
        or spell_flag(each.key.removeprefix("megatron."))
        not in programs.list_defined(imported.file, True)
    ]
    by_place = defaultdict(list, group_by(kept, _locate))
    added: list[Finding] = []
    # a function may start a program several times
    for started in dict.fromkeys(imported.list_records(StartedProgram)):
        if started.nodes:
            what = "--nnodes without --node_rank: each node is started as node 0"
            why = "torchrun waits for other nodes until it gives up."
            hint = "write --node_rank $NODE_RANK, or --rdzv_endpoint HOST:PORT"
            added.append(_build_start_finding(started.nodes, what, why, hint))
        given = by_scope.get(started.scope)
        path = ""
        if given or started.first:
            path = programs.find(imported.file, started.script, started.module)
        parser = programs.read_parser(path) if started.first else None
        if parser and parser.complete and not parser.has_positional:
            what = f"{path} takes no argument without a flag, but gets {started.first}"
            added.append(
                _build_start_finding(started.location, what, _STOPS, "write its flag before it")
            )
        if given:
            if not path and (package := programs.find_package(imported.file, started.module)):
                what = f"{package} has no module {started.module}"
                hint = "correct the name of the module"
                added.append(_build_start_finding(started.location, what, "Python stops.", hint))
            _judge_program(given, by_place, path, programs, started.module)
            added += _find_unused_flags(imported, path, given[0].surface, programs)
    used = imported.list_records(UsedFile)
    missing = find_missing_files(imported.file, used, programs)
    return [*chain(*by_place.values()), *added, *missing]


def find_missing_files(
    file: str, used: Sequence[UsedFile], programs: Programs
) -> Iterator[Finding]:
    """Yield likely findings about the files that a file uses and its tree lacks."""
    for each, hint in programs.find_missing(file, used):
        what, why = f"the tree has no {each.path}", "The command stops there."
        yield catalog.build_finding("NP846", what, why, hint, where=each.where, **LIKELY)


def _build_start_finding(location: ScriptLocation, what: str, why: str, hint: str) -> Finding:
    return place_fault(Fault("NP844", what, why, hint)._replace(**LIKELY), location)


def _find_unused_flags(
    imported: ImportedFile, path: str, section: str, programs: Programs
) -> Iterator[Finding]:
    """Yield the variables that no command gets and that have the name of a flag."""
    unused = imported.list_records(UnusedVariable)
    if not unused:
        return
    parser = programs.read_parser(path)
    flags = (parser and parser.flags) or programs.list_defined(path or imported.file, True)
    known = {*flags, *map(spell_flag, catalog.record_names(section))}
    for variable in unused:
        flag = f"--{variable.name.lower()}"
        found = [each for each in (flag, flag.replace("_", "-")) if each in known]
        if found:
            yield build_unused_finding(variable, f" There is a flag {found[0]}.")


def _find_slips(setting: ScriptSetting, programs: Programs) -> list[Fault]:
    """Return the fault of a flag close to a known one, if no file of its tree has its name."""
    section, name = split_section_and_name(setting.key)
    if setting.reason == OVERRIDE:
        return []
    top = programs.find_top(os.path.dirname(setting.file))
    nearest = programs.find_nearest(section, name, top)
    # many parsers take abbreviations
    is_short = section == "args" and nearest.startswith(name)
    # Megatron-DeepSpeed has most flags of Megatron-LM
    is_other = is_short or catalog.find_setting("megatron", name)
    last = name.rpartition(".")[2]  # of the key of a table
    if nearest and not (is_other or programs.is_quoted(last, setting.file)):
        hint = f"did you mean {nearest!r}?"
        return [_build_unknown_fault(section, name)._replace(hint=hint, fix=None, **LIKELY)]
    return []


def _judge_program(
    given: list[ScriptSetting],
    by_place: dict[Any, list[Finding]],
    path: str,
    programs: Programs,
    module: str,
) -> None:
    """Replace findings about the settings given to a program by those of its parser."""
    program = find_program(given[0].surface)
    # only names in the section of verl have the dashes of flags
    named = [
        (
            each.name
            if each.surface == "verl" or each.reason == OVERRIDE
            else spell_flag(each.name),
            each,
        )
        for each in given
    ]
    overrides = {name: ... if each.reason else each.value for name, each in named}
    config = programs.read_config(path, overrides)
    judged: list[tuple[ScriptSetting, list[Fault]]] = []
    is_own = False
    is_hydra = config or (program and program.syntax == "hydra")
    if config and config.is_complete:
        judged = [(each, _find_override_faults(config, name, overrides)) for name, each in named]
    elif is_hydra and not module.startswith("verl."):  # it may have keys of its own
        judged = [(each, []) for each in given]
    elif path and not is_hydra:
        parser = programs.read_parser(path) or Parser(path, (), ("no parser was found",))
        if any(each.endswith(YAML_ENDINGS) for each in parser.files):
            # the keys of another file may be arguments instead
            parser = parser._replace(gaps=(*parser.gaps, *filter(_CONFIG.search, overrides)))
        known = sum(each.name.replace("-", "_") in parser.keys for each in given)
        is_outside = any(map(_OUTSIDE.search, parser.gaps))
        is_most = known >= len(given) * _KNOWN_FLAGS and not is_outside
        marks = program.marks if program else ()
        is_own = parser.complete and any(f"--{name}" not in parser.flags for name in marks)
        for flag, each in named:
            # of a program with arguments that have no flag, a file may be one
            is_positional = each.file.endswith(YAML_ENDINGS) and parser.has_positional
            if is_positional or each.reason == OVERRIDE:
                continue
            faults: list[Fault] = []
            is_known = catalog.find_setting(each.surface, each.name) is not None
            is_defined = flag in parser.flags
            if is_defined or not is_known:  # MindSpeed changes parsers
                value = ... if each.reason else each.value
                faults = find_flag_faults(parser, flag, value, programs, is_most)
            if not is_defined:
                faults = faults or _find_slips(each, programs)
            if is_known:
                faults = [fault._replace(**LIKELY) for fault in faults]
            if faults or parser.complete or is_defined:
                judged.append((each, faults))
    else:
        judged = [(each, faults) for each in given if (faults := _find_slips(each, programs))]
    for place in map(_locate, (each for each, _ in judged)):
        by_place[place] = [
            finding
            for finding in by_place[place]
            if not (finding.code in _BY_CATALOGUE or (is_own and finding.code.startswith(_RULES)))
        ]
    for setting, faults in judged:
        if not (setting.dead or setting.commented):
            by_place[_locate(setting)] += [place_fault(fault, setting) for fault in faults]


def judge_presets(checked: CheckedStore, report: StoreReport, paths: Sequence[str]) -> StoreReport:
    """Return a report with the findings of the parsers of programs at some paths.

    They replace those about the same arguments by the names of known releases.
    """
    programs = Programs((), paths)
    presets = []
    for preset in report.presets:
        findings = preset.findings
        with suppress(NpuprofError):  # it is in the report
            config = checked.resolve_preset(preset.name)
            judged = {
                key: found[0] if all(found) else []
                for key, found in _iterate_faults(config, programs)
            }
            findings = [
                finding
                for finding in findings
                if finding.key not in judged or finding.code not in _BY_CATALOGUE
            ]
            findings += [
                fault.place(
                    origin=config.origin(*(parse_key(key) or (key, ()))),
                    key=key,
                    profiles=(preset.name,),
                )
                for key, faults in judged.items()
                for fault in faults
            ]
        presets.append(preset._replace(findings=findings))
    return report._replace(presets=presets, by_programs=True)


def _iterate_faults(config: Config, programs: Programs) -> Iterator[tuple[str, list[list[Fault]]]]:
    """Yield the arguments that some programs judge by full key, with what each of them rejects."""
    sections = config.sections()
    parsers = programs.read_named(programs.read_parser)
    for program in filter(None, map(find_program, ("megatron", "args"))):
        marks = {f"--{name}" for name in program.marks}
        own = [
            each for each in parsers if not marks or len(marks & each.flags.keys()) >= MOST_MARKS
        ]
        for name, value in sections.get(program.section, {}).items() if own else ():
            flags = [
                (spell_flag(".".join((name, *path))), item)
                for path, item in list_table_leaves(value)
                if not (item is False or item == {})  # no flag, or that of the negation
            ]
            found = [
                [
                    fault
                    for flag, item in flags
                    for fault in find_flag_faults(parser, flag, item, programs)
                ]
                for parser in own
            ]
            yield format_full_key(program.section, name), found
    leaves = dict(list_table_leaves(sections["verl"]))
    overrides = {".".join(path): value for path, value in leaves.items()}
    read = partial(programs.read_config, overrides=overrides)
    configs = programs.read_named(read) if sections["verl"] else []
    # the command may name another configuration
    how = {} if "--config-name" in overrides else LIKELY
    is_complete = configs and all(each.is_complete for each in configs)
    for name, *inner in leaves if is_complete else ():
        override = ".".join((name, *inner))
        found = [_find_override_faults(each, override, overrides) for each in configs]
        key = format_key_path(format_full_key("verl", name), tuple(inner))
        yield key, [[fault._replace(**how) for fault in faults] for faults in found]


def find_flag_faults(
    parser: Parser, flag: str, value: Any, programs: Programs, is_most: bool = False
) -> list[Fault]:
    """Return the faults of a flag: an unknown name, or a value that the parser rejects.

    The value is true for a flag alone, ``...`` if it is not known. ``is_most`` if the parser has
    most arguments of the command: others need not be alike to be unknown.
    """
    flags = parser.flags
    how = {} if parser.complete else LIKELY
    if flag in flags:
        occurrences = list_occurrences(value)
        faults = [_find_value_fault(parser, flags[flag], flag, each) for each in occurrences]
        return [fault._replace(**how) for fault in faults if fault][:1]
    is_whole = parser.gaps in ((), (NO_RELEASE,))
    # any class of the tree may be one of its arguments
    if not (is_whole or "." in flag):
        flags = programs.list_defined(parser.path) | flags
    # in a file, a table may be the value of an argument
    is_inner = any(flag.startswith(f"{each}.") for each in flags)
    is_short = parser.abbreviated and any(each.startswith(flag) for each in flags)
    # argparse reads the letters behind one dash as short flags
    is_long = flag.startswith("--")
    may_be_letters = not is_long and (flag[:2] in flags or not parser.complete)
    # what is not in the tree may have the arguments of transformers
    library = catalog.load_built_part("argument_classes")["transformers"]
    is_other = not is_whole and flag[2:] in library["TrainingArguments"]["fields"]
    if flag in flags or may_be_letters or is_inner or is_short or is_other:
        return []
    nearest = next(iter(find_nearest_names(flag, flags, 1)), "")
    is_alike = SequenceMatcher(None, flag[2:], nearest[2:]).ratio() >= _ALIKE
    # an attribute of the arguments has underscores
    is_respelt = nearest in parser.flags and nearest.replace("_", "-") == flag.replace("_", "-")
    may_change = any(OTHER_CLASS in gap or "sys.argv" in gap for gap in parser.gaps)
    files = parser.files if is_whole or is_respelt else None
    if (
        not (is_whole or is_alike or is_most)
        or (is_respelt and may_change)
        or (is_long and programs.is_quoted(flag, parser.path, files))
    ):
        return []
    if NO_RELEASE in parser.gaps:
        # the tree may have a changed copy of the library
        copied = programs.list_defined(parser.path, True).get(flag)
        libraries = {each.where.partition(".")[0] for each in flags.values()}
        if copied and not libraries.isdisjoint(copied.where.split("/")):
            return []
    what = f"{parser.path} has no argument {flag}"
    why = f"{_STOPS} {nearest} is defined in {flags[nearest].where}." if nearest else _STOPS
    hint = did_you_mean(flag, flags, f"its arguments are in {', '.join(parser.files[:3])}")
    return [Fault("NP212", what, why, hint, severity="error")._replace(**how)]


def _find_value_fault(
    parser: Parser, argument: ParserArgument, flag: str, value: Any
) -> Fault | None:
    """Return the fault of the values after one flag, None if they may be right."""
    nargs = argument.nargs
    if value is ... or nargs is ANY_NUMBER or isinstance(value, dict):
        return None
    values = [] if value is True else value if isinstance(value, list) else [value]
    why = f"{_STOPS} {flag} is defined in {argument.where}."
    least, most = _COUNTS.get(nargs, (nargs, nargs) if isinstance(nargs, int) else (0, inf))
    takes = f"{flag} takes {_NUMBERS.get(least, f'{least} values')}"
    if len(values) < least:
        # an empty variable may be a placeholder
        return Fault("NP203", takes, why, f"write {flag} VALUE")._replace(**LIKELY)
    if len(values) > most and value is not False:
        # words after the last one may be for an argument without flag
        if parser.has_positional:
            return None
        extra = format_short_value(values[int(most)])
        return Fault("NP203", f"{takes}, and nothing takes {extra}", why, "remove it")
    record = catalog.Setting(name="", kind=argument.kind or "any", choices=argument.choices)
    for each in values:
        if not isinstance(each, (bool, list, dict)):
            for fault in find_program_value_faults(flag, record, each):
                return fault._replace(why=why, fix=None)
    return None


def _find_override_faults(
    config: HydraConfig, name: str, overrides: Mapping[str, Any]
) -> list[Fault]:
    """Return the faults of an override of Hydra, by the keys of the configuration."""
    key = name.lstrip("+~")
    prefix = name.removesuffix(key)
    # an override before it may have made the key
    above = [*accumulate(key.split("."), "{}.{}".format)]
    others = {f"{mark}{each}" for mark in ("", "+", "++", "~") for each in above} - {name}
    is_group = key in config.groups or _GROUP.match(key)
    if is_group or prefix == "++" or not others.isdisjoint(overrides):
        return []
    known = config.keys.get(key)
    if prefix == "+":
        value = overrides.get(name)
        if not (known and known.is_plain) or value is ... or isinstance(value, (dict, list)):
            return []
        why = f"Hydra stops at it. {key} is defined in {known.where}."
        return [Fault("NP203", f"+{key} is there already", why, f"write {key}, or ++{key}")]
    if known or any(
        each.is_list and key.startswith(f"{above}.") for above, each in config.keys.items()
    ):
        return []
    hint = did_you_mean(key, config.keys)
    why = "Hydra stops where it cannot delete a key."
    if not prefix:
        why = "Hydra stops at a new key without +."
        hint = f"{hint} or write +{key}" if hint else f"write +{key}"
    return [Fault("NP212", f"{config.path} has no key {key}", why, hint)]
