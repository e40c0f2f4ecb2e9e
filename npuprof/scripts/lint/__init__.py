"""Lints scripts: findings must be certain, so unknown values are skipped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from operator import attrgetter

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.programs import find_program
from npuprof.checks import scope
from npuprof.checks.judging import judge_together
from npuprof.checks.rules import check_rules
from npuprof.checks.variables import find_misspelt_faults, find_option_faults
from npuprof.checks.view import Fault, limit_severity
from npuprof.document.keys import format_full_key, format_short_value
from npuprof.document.policy import TeamRule
from npuprof.model import LIKELY, Context, Finding, Place
from npuprof.report.text import format_count
from npuprof.scripts.configuration import (
    ScriptView,
    configure_launch,
    is_setting_unread,
    place_fault,
)
from npuprof.scripts.launches import Launch, find_given_sessions, list_launches
from npuprof.scripts.lint.entries import (
    check_rewrites,
    find_double_entries,
    find_idle_configs,
    find_nameless_entries,
)
from npuprof.scripts.lint.run_config_faults import find_call_faults
from npuprof.scripts.lint.single_settings import OPTION_ADVICE, find_script_faults, share_answers
from npuprof.scripts.python.environ import is_of_ascend_family
from npuprof.scripts.python.global_options_calls import ReplacedGroup
from npuprof.scripts.python.optimizer_entries import NamedEntry
from npuprof.scripts.reading import ImportedFile, ScriptSetting
from npuprof.scripts.reading.shells.launcher_options import STARTERS
from npuprof.scripts.reading.variable_files import join_others
from npuprof.scripts.script_records import (
    COMMAND_LINE,
    EMPTY,
    OF_CONTAINER,
    PLACEHOLDER,
    TOO_LATE,
    UNSET,
    BrokenExport,
    SourcedEnvironment,
    VariableRead,
)

#: A variable that a script reads.
_READ_NAME = re.compile(r"(?:\$\{?|getenv\(\W|environ\.get\(\W)(\w+)")
#: Programs that create containers, and programs that use devices.
_CONTAINERS = re.compile(
    r"\b(?:docker|podman|nerdctl|ctr|crictl|isula|kubectl|helm|compose|singularity|apptainer"
    r"|envsubst|container)\b",
    re.IGNORECASE,
)
_PROGRAMS = re.compile(rf"\.py\b|\b(?:python[\d.]*|{STARTERS})\b")
#: What shows that a file runs on NPUs, or also on CUDA.
_NPUS = re.compile(r"\btorch_npu\b|transfer_to_npu|vllm-ascend")
_CUDA = re.compile(r"nvidia|cuda\.is_available|=\s*[\"']?(?:gpu|cuda)\b", re.IGNORECASE)
#: What shows that a file starts programs on GPUs, unless it also names NPUs.
_GPUS = re.compile(r"(?i:nvidia|\brocm)|\b(?:CUDA|NCCL)_|\bGPUs?\b|\b[ABH][1-3]00\b")
_ASCEND = re.compile(r"ascend|hccl|(?:\b|_)npu", re.IGNORECASE)
_find_scope_faults = share_answers(scope.find_scope_faults)
#: How hints for presets write a variable, and name a setting to remove.
_ASSIGNED = re.compile(r'write (\w+) = "?(?!{)([\w.:,-]*)"?')
_UNSET = re.compile(r"\bunset (?:env|vllm|vllm_ascend|megatron|mindie|verl|torch_npu)\.")
#: Why a name is reported where it is read; scans exclude those that other files set.
ONLY_READ = "It is read, but set nowhere."
#: Why a setting has no effect: the call that used its object, and its line.
_LATE = re.compile(rf"{TOO_LATE}\S.* \(line (?P<line>\d+)\)")
#: The warning about what a manual of vLLM-Ascend recommends: a note in scripts.
RECOMMENDED = "NP391"
#: A file without so many compulsory keys is a part of one, or one of another release.
_PART_OF_FILE = 4
#: Age findings that do not apply to a surface: ATC values are checked as flags, TF 2 has its own
#: releases.
_INAPPLICABLE = {"atc": ("NP203",), "global_options": ("NP404", "NP405", "NP408")}


def check_script(
    imported: ImportedFile, context: Context, team: Sequence[TeamRule] = ()
) -> list[Finding]:
    """Return the findings about a file's settings, in line order; ``team`` are team rules."""
    joined = imported
    # rules are about Ascend's variables and those that other programs read too
    if any(setting.surface == "env" for setting in imported.settings):
        joined = join_others(imported, catalog.find_variable)
    launches = [launch for launch in list_launches(joined) if launch.surface != "config"]
    findings = [
        *imported.problems,
        *find_call_faults(imported, context),
        *find_double_entries(imported),
        *find_nameless_entries(imported),
    ]
    for setting in imported.settings:
        if setting.commented:
            findings.append(place_fault(_build_commented_fault(setting), setting))
        if setting.reason == PLACEHOLDER:
            findings.append(place_fault(_build_placeholder_fault(setting), setting))
    for launch in launches:
        findings += _check_launch(imported, launch, context, team)
    findings += [
        *find_idle_configs(imported),
        *_check_surroundings(imported, launches),
        *check_rewrites(imported),
        *_check_names(imported),
        *_find_container_variables(imported),
        *_find_cuda_names(imported),
    ]
    lost = list(_check_estimator_sessions(imported, launches))
    # the age of an ineffective setting does not matter
    lost_settings = {(finding.where, finding.key) for finding in lost}
    # a release that is not named, or newer than all known ones, may have further names
    uncertain = _list_uncertain_axes(context)
    findings = [
        finding._replace(**LIKELY) if _is_uncertain(finding, uncertain) else finding
        for finding in findings
        if finding.code != "NP501" or (finding.where, finding.key) not in lost_settings
    ]
    unique = {
        (finding.code, finding.where, finding.key, finding.message): _spell_hint(finding)
        for finding in (*findings, *lost)
    }
    return sorted(
        _name_calls(imported, unique.values()),
        key=attrgetter("line", "column", "code"),
    )


def _spell_hint(finding: Finding) -> Finding:
    """Return a finding whose hint names settings as its script does, not as a preset."""
    hint = _UNSET.sub("remove ", finding.hint)
    if not (finding.path or "").endswith((".py", ".ipynb", ".yaml", ".yml", ".json")):
        hint = _ASSIGNED.sub(r"write \1=\2", hint)
    return finding._replace(hint=hint)


def _is_uncertain(finding: Finding, uncertain: set[str]) -> bool:
    """Return whether a fault may be none in an unknown release, or in a fork of a program."""
    program = find_program(finding.key.partition(".")[0])
    if program is not None and not program.starts and program.section in uncertain:
        return finding.severity != "info"
    # a file of Hydra defines keys, which other code may read
    if finding.code == "NP404" and program is not None and program.syntax == "hydra":
        return (finding.path or "").endswith((".yaml", ".yml"))
    limited = limit_severity(finding.code, finding.severity, finding.key, uncertain)
    return limited != finding.severity


def _list_uncertain_axes(context: Context) -> set[str]:
    """Return the axes without a known release: a named one, or one that it runs on."""
    newer = tuple(axis for axis, _ in context.newer)
    versions = [
        (axis, (releases.find_release(named, axis) or named,))
        for axis, named in (*context.versions, (releases.CANN, context.cann))
        if named and axis not in newer
    ]
    # the arguments of other releases are not recorded
    unread = releases.find_uncertain_axes(newer, versions)
    axes = (releases.CANN, *releases.list_frameworks())
    return {axis for axis in axes if axis in unread or not releases.find_covered(axis, versions)}


def _name_calls(imported: ImportedFile, findings: Iterable[Finding]) -> list[Finding]:
    """Return findings; those in a called or sourced file name the line of the script."""
    is_sourced = any(not called.name for called in imported.followed)
    statement = "The file is sourced" if is_sourced else "The function is called"
    callers: dict[Place | None, str] = {}
    for setting in imported.settings:
        if setting.file != imported.file and setting.location.call:
            line, _ = setting.location.call
            where = Place(setting.file, setting.line, setting.column)
            callers[where] = f" {statement} in {imported.file}:{line}."
    return [
        finding._replace(why=f"{finding.why}{callers.get(finding.where, '')}".lstrip())
        for finding in findings
    ]


def _build_commented_fault(setting: ScriptSetting) -> Fault:
    value = f" = {format_short_value(setting.value)}" if not setting.reason else ""
    why = "Settings that are switched on and off by editing drift apart from script to script."
    return Fault(
        "NP805",
        f"{setting.name}{value} is commented out",
        why,
        "make it a mix-in preset, or delete the line",
    )


def _build_placeholder_fault(setting: ScriptSetting) -> Fault:
    what = f"{setting.name} = {format_short_value(setting.assigned.written)} is {PLACEHOLDER}"
    return Fault("NP203", what, "It was not checked.", "write your own value", severity="info")


def _check_launch(
    imported: ImportedFile,
    launch: Launch,
    requested: Context,
    team: Sequence[TeamRule],
) -> Iterator[Finding]:
    """Yield the findings about one launch: about all its settings together, and about each."""
    for view in configure_launch(imported.file, launch, requested):
        found = [item.finding for item in judge_together(view, team)]
        if view.complete:
            found += [*_find_missing_variables(view), *_find_missing_keys(view)]
        for finding in _sift_findings(view, found):
            reads = catalog.list_rule_reads().get(finding.code, ("",))
            is_of_vllm = not any(key.startswith("vllm_ascend.") for key in reads)
            if not (
                is_of_vllm
                and any(key.startswith("vllm.") for key in reads)
                and _is_on_gpus(imported.text)  # vLLM-Ascend limits no GPUs
            ):
                yield finding
    by_key = {
        setting.key: setting for setting in (*launch.environment, *launch.settings) if setting.key
    }
    complete = ScriptView(imported.file, by_key, {}, requested, launch.surface, False)
    sets_unknown_keys = launch.sets_unknown_keys  # searched once, not for each setting
    for setting in launch.settings:
        if setting.is_lost:
            what, _, hint = (setting.reason or setting.unused).partition("; ")
            yield place_fault(Fault("NP834", f"{setting.name} {what}", "", hint), setting)
        for fault in () if setting.dead else _find_single_faults(setting, complete):
            if fault.code == "NP209" and sets_unknown_keys:
                # a wrapper of atc may have its own flags
                fault = fault._replace(**LIKELY)
            yield place_fault(fault, setting)


@lru_cache(1)  # a file may have many launches
def _is_on_gpus(text: str) -> bool:
    return bool(_GPUS.search(text) and not _ASCEND.search(text))


def _find_missing_variables(view: ScriptView) -> Iterator[Finding]:
    """Yield the faults for which a variable must be unset that the script does not mention."""
    found = [item.finding for item in check_rules(view, _reads_variable)]
    view.complete = (*view.complete, "env")
    view.memory = {}
    for item in check_rules(view, _reads_variable):
        if item.finding.severity != "info" and item.finding not in found:
            yield item.finding._replace(**LIKELY)


def _find_missing_keys(view: ScriptView) -> Iterator[Finding]:
    """Yield the keys that a file must have, if it lacks few: others are parts of files."""
    section = catalog.load_sections()[view.complete[0]]
    paths = [(section.name, *name.split(".")) for name in section.compulsory]
    missing = [path for path in paths if view.lookup_operand(path, {})[0] is False]
    for path in missing if len(missing) < _PART_OF_FILE else ():
        fault = Fault("NP837", f"{'.'.join(path)} is missing", section.otherwise, "write it")
        yield view.build_finding(fault, ".".join(path[:-1]))


def _reads_variable(keys: Iterable[str]) -> bool:
    return any(key.startswith("env.") for key in keys)


def _find_single_faults(setting: ScriptSetting, view: ScriptView) -> list[Fault]:
    """Return the faults of a setting alone: name, value, default, age, place."""
    value_faults = find_script_faults(setting, view.requested)
    age_faults = _find_age_faults(setting, view)
    if any(fault.code == "NP812" for fault in value_faults):
        # the class raises an error: what an engine does with the value is of no interest
        age_faults = [fault for fault in age_faults if fault.code not in ("NP501", "NP502")]
    value_faults, age_faults = scope.follow_advice(value_faults, age_faults)
    if any(fault.code == "NP404" and fault.severity == "error" for fault in age_faults):
        value_faults = []  # nothing reads the value
    value_faults = [
        fault
        for fault in value_faults
        if not scope.is_fault_excused(view.settings, setting.key, fault)
    ]
    faults = [*value_faults, *_find_default_faults(setting, view.requested), *age_faults]
    if setting.key and (late := _LATE.fullmatch(setting.unused)):
        what = f"{setting.name} {setting.unused}"
        why = "Values set before that point are used, and later ones are not read."
        faults.append(Fault("NP822", what, why, f"set it before line {late['line']}"))
    return faults


def _find_default_faults(setting: ScriptSetting, context: Context) -> list[Fault]:
    """Return the faults of a default from the command line or environment.

    A condition may exclude it.
    """
    default = setting.assigned.default
    is_flag = setting.reason.startswith(COMMAND_LINE)
    if setting.branches or default in (None, "") or is_setting_unread(setting):
        return []
    if not is_flag and setting.surface != "env":
        return []
    with_default = setting.with_value(reason="", value=default, written=default)
    return [
        fault._replace(
            message=f"{fault.message}; it is the default of the script",
            **LIKELY if is_flag else {},
        )
        for fault in find_script_faults(with_default, context)
        if fault.code in ("NP203", "" if is_flag else "NP202") and fault.severity == "error"
    ]


def _sift_findings(view: ScriptView, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings about settings together that apply to a script, without notes."""
    is_same_device = _is_same_device(view)
    for finding in findings:
        if finding.severity == "info" or (finding.code == "NP393" and is_same_device):
            continue
        if finding.code == "NP381" and view.surface == "global_options":
            # like other values that the class accepts and the engine rejects
            finding = finding._replace(severity="warning")
        if finding.code == RECOMMENDED:
            finding = finding._replace(severity="info")
        yield finding


def _is_same_device(view: ScriptView) -> bool:
    """Return whether two variables select the same device for old and new readers."""
    old = view.certain.get("env.DEVICE_ID")
    new = view.certain.get("env.ASCEND_DEVICE_ID")
    if old is None or new is None:
        return False
    if re.fullmatch(r"depends on \$\{?(?:ASCEND_)?DEVICE_ID\}?", old.reason):
        return True
    return old.reason == new.reason and str(old.value) == str(new.value)


def _find_age_faults(setting: ScriptSetting, view: ScriptView) -> list[Fault]:
    """Return the faults of a setting's age for the requested release and product."""
    is_lost = setting.surface == "session" and is_setting_unread(setting)
    if not setting.key or setting.unused == EMPTY or setting.reason == UNSET or is_lost:
        return []
    value = None if setting.reason else setting.value
    key, program = setting.key, find_program(setting.surface)
    if program and setting.name.startswith("--") and setting.name in program.flags:
        # another flag of an argument, which not all releases have
        key = format_full_key(program.section, setting.name[2:])
    return [
        fault
        for fault in _find_scope_faults(view.scope, key, value)
        if not _is_inapplicable(setting, fault)
        and not scope.is_fault_excused(view.settings, setting.key, fault)
    ]


def _is_inapplicable(setting: ScriptSetting, fault: Fault) -> bool:
    """Return whether an age finding does not apply to a setting's surface.

    Undocumented settings do not count.
    """
    is_option_as_flag = setting.surface == "atc" and not setting.key.startswith("atc.")
    if is_option_as_flag and fault.code in ("NP501", "NP502", "NP404", "NP405"):
        flag = catalog.find_flag(setting.name.removeprefix("--"))
        return flag is None or not flag.deprecated  # the adapter's releases do not apply to ATC
    return fault.code in ("NP503", "NP411", *_INAPPLICABLE.get(setting.surface, ()))


def _check_surroundings(imported: ImportedFile, launches: list[Launch]) -> Iterator[Finding]:
    """Yield the findings about a file's records other than settings."""
    if named := [setting for setting in imported.settings if setting.surface == "config"]:
        names = ", ".join(dict.fromkeys(setting.name for setting in named[:8]))
        more = ", ..." if len(named) > 8 else ""
        what = f"the file names {format_count(len(named), 'setting')}: {names}{more}"
        why = "Their use depends on the script that reads it; they were not checked."
        yield place_fault(Fault("NP829", what, why), named[0])._replace(key="")
    for broken in imported.list_records(BrokenExport):
        what = f"export {broken.written} sets no variable"
        why = f"bash reports it and goes on; {broken.name} is not set."
        yield place_fault(Fault("NP813", what, why, f"write export {broken.assignment}"), broken)
    for sourced in imported.list_records(SourcedEnvironment):
        yield from _find_overwritten(sourced, imported.settings)
    for group in imported.list_records(ReplacedGroup):
        what = f"global_options().{group.path} is a group, not an option"
        why = "The assignment is accepted and takes the whole group out of the options."
        yield place_fault(Fault("NP815", what, why, "assign its members one by one"), group)
    sessions = [launch for launch in launches if launch.surface == "session"]
    filled = {
        session.scope
        for session in sessions
        if any(catalog.find_option(setting.name) for setting in session.settings)
    }
    for entry in imported.list_own_records(NamedEntry):
        if entry.name != "NpuOptimizer" and entry.site in filled:
            what = f"the optimizer is named {entry.name!r}"
            why = (
                "The adapter looks for exactly NpuOptimizer; all options "
                "of an entry with another name are lost silently."
            )
            yield place_fault(Fault("NP808", what, why, "write 'NpuOptimizer'"), entry)


def _check_names(imported: ImportedFile) -> Iterator[Finding]:
    """Yield findings about options exported as variables, and about reads of misspelt names."""
    for setting in imported.other_variables:
        option = catalog.find_option(setting.name)
        has_other_uses = option is not None and option.common_name
        if not setting.unused and not has_other_uses:
            for fault in find_option_faults(setting.name, OPTION_ADVICE):
                yield place_fault(fault, setting)
    for variable in imported.list_own_records(VariableRead):
        for fault in find_misspelt_faults(variable.name):
            read = fault._replace(why=ONLY_READ, **LIKELY)
            yield place_fault(read, variable)._replace(key=f"env.{variable.name}")


def _find_container_variables(imported: ImportedFile) -> Iterator[Finding]:
    """Yield a finding for a variable of containers that a script sets for a program."""
    text, settings = imported.text, imported.settings
    setting = next((setting for setting in settings if setting.unused == OF_CONTAINER), None)
    variable = catalog.find_variable(setting.name) if setting else None
    if setting is None or variable is None or setting.name in _READ_NAME.findall(text):
        return
    is_replaced = any(setting.name == variable.in_container for setting in settings)
    if not is_replaced and _PROGRAMS.search(text) and not _CONTAINERS.search(text):
        why = f"{OF_CONTAINER.capitalize()}; the program sees all devices."
        what, hint = f"programs do not read {setting.name}", f"set {variable.in_container}"
        yield place_fault(Fault("NP841", what, why, hint), setting)


@cache
def _list_counterparts() -> dict[str, str]:
    """Return the variables of torch_npu and HCCL by their names for CUDA."""
    variables = catalog.list_records(catalog.Variable, "env")
    return {name: variable.name for variable in variables for name in variable.cuda_names}


def _find_cuda_names(imported: ImportedFile) -> Iterator[Finding]:
    """Yield a note for each variable of CUDA in a file that certainly runs on NPUs only."""
    names = {setting.name for setting in imported.settings}
    others = [
        each
        for each in imported.other_variables
        if each.name in _list_counterparts() and not (each.branches or each.dead or each.function)
    ]
    is_of_npus = others and (any(map(is_of_ascend_family, names)) or _NPUS.search(imported.text))
    for setting in others if is_of_npus and not _CUDA.search(imported.text) else ():
        own_name = _list_counterparts()[setting.name]
        if own_name not in names:
            names.add(own_name)  # one note for each name
            what, hint = f"torch_npu does not read {setting.name}", f"its name is {own_name}"
            yield place_fault(Fault("NP842", what, "", hint, severity="info"), setting)


def _find_overwritten(
    sourced: SourcedEnvironment, settings: Sequence[ScriptSetting]
) -> Iterator[Finding]:
    """Yield the exports that a later sourced file overwrites, unless they are repeated."""
    folder = sourced.path.rpartition("/")[0].lower()
    exports = [
        setting
        for setting in settings
        if setting.surface == "env" and setting.file == sourced.file and not setting.commented
    ]
    repeated = {setting.name for setting in exports if setting.line > sourced.line}
    for setting in exports:
        variable = catalog.find_variable(setting.name)
        if variable is None or setting.name in repeated or setting.unused or setting.dead:
            continue
        arms = {(branch.number, branch.arm) for branch in setting.branches}
        # an export of another branch, or of a function that may run later, is not overwritten
        around = zip(setting.branches, sourced.branches, strict=False)
        is_apart = arms & sourced.left or any(one != other for one, other in around)
        if is_apart or setting.function not in ("", sourced.function):
            continue
        if any(part in folder for part in variable.overwritten_in):
            what = f"{setting.name} is overwritten in line {sourced.line} by {sourced.path}"
            why = f"{catalog.find_record_texts('env', setting.name)['overwritten_by']}."
            hint = f"export {setting.name} after the file is sourced"
            yield place_fault(Fault("NP832", what, why, hint), setting)


def _check_estimator_sessions(imported: ImportedFile, launches: list[Launch]) -> Iterator[Finding]:
    """Yield the settings of a session_config that NPUEstimator overwrites."""
    sent_defaults = {
        key: default
        for key, default in catalog.estimator_defaults().items()
        if (option := catalog.find_option(key)) and "run_config" not in option.always
    }
    for scope_name, session in find_given_sessions(imported, launches).items():
        arguments = {
            setting.key
            for launch in launches
            if launch.scope == scope_name
            for setting in launch.settings
        }
        if "" in arguments:  # a computed argument may be any of them
            continue
        for setting in session.settings:
            sent = sent_defaults.get(setting.key, setting.value)
            is_decided = not setting.reason and not setting.dead and setting.key not in arguments
            if is_decided and setting.value != sent:
                _, _, line = scope_name.rpartition("@")
                lost = f"{setting.key} = {format_short_value(setting.value)} is lost"
                what = f"{lost}: NPURunConfig at line {line} sends {format_short_value(sent)}"
                why = (
                    "NPUEstimator adds an entry of its own after the one in session_config, with "
                    "its defaults, and the later one wins."
                )
                hint = f"give {setting.key} to NPURunConfig"
                yield place_fault(Fault("NP809", what, why, hint), setting)
