"""Lint scripts in place: what is found wrong has to be right, so what cannot be known is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from npuprof import catalog
from npuprof.catalog import build_finding
from npuprof.catalog.surfaces import list_attribute_paths
from npuprof.checks import flags, rules, scope
from npuprof.checks.view import Fault, list_chip_settings
from npuprof.document.keys import format_short_value
from npuprof.model import Context, Finding, Place, find_nearest_names
from npuprof.report.text import format_count
from npuprof.scripts.lint.arguments import find_call_faults
from npuprof.scripts.lint.entries import find_double_entries, find_idle_configs, find_nameless_entries
from npuprof.scripts.lint.rewrites import build_script_finding, check_rewrites
from npuprof.scripts.lint.singles import find_script_faults
from npuprof.scripts.lint.worlds import MOST_WAYS, ScriptView, build_script_views, list_ways, place_under_functions
from npuprof.scripts.reading import FoundSetting, ImportedFile, Site
from npuprof.scripts.reading.found import COMMAND_LINE, TOO_LATE, UNSET, BlankExport
from npuprof.scripts.reading.surfaces.entries import NamedEntry
from npuprof.scripts.reading.surfaces.global_options import ReplacedGroup
from npuprof.scripts.reading.surfaces.nested import GivenSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import TeamRule

#: Why a setting is in force nowhere, with what used its object and the line of that.
_LATE = re.compile(rf"{TOO_LATE}\S.* \(line (\d+)\)")
#: Rules that not only the adapter has, which looks at one entry at a time, but the engine behind it as well.
_ENGINE_REFUSES = ("NP301",)
#: The line of a call in the name of a configuration.
_BETWEEN_MARKS = re.compile(r"@(\d+)(?=@)")


def check_script(imported: ImportedFile, asked: Context | None = None, team: Sequence[TeamRule] = ()) -> list[Finding]:
    """Return what is wrong or doubtful with the settings of one file, in the order of its lines; ``team`` are rules of its own."""
    context = asked or Context()
    python2 = any("Python 2" in problem.message for problem in imported.problems)
    found = list(imported.problems)
    live = [one for one in imported.found if not one.commented and one.surface != "config"]
    passed_on = {one.scope for one in live if one.surface == "atc" and not one.name}
    for one in live:
        if not one.dead:
            faults = find_script_faults(one, context, python2)
            if one.surface == "atc" and one.scope in passed_on:  # what stands for atc here may take flags of its own
                faults = [fault._replace(severity="warning") if fault.code == "NP209" else fault for fault in faults]
            found += [_build_setting_finding(one, fault) for fault in [*faults, *_find_default_faults(one, context, python2)]]
    found += [finding for one in live if (finding := _find_lateness(one))]
    found += [_build_commented_finding(one) for one in imported.found if one.commented]
    found += _check_setting_groups(imported, live, context, team)
    found += find_call_faults(imported, context)
    found += _check_double_entries(imported, live, context)
    found += find_nameless_entries(imported)
    found += find_idle_configs(imported)
    found += _check_surroundings(imported, live)
    unique = {(f.code, f.where, f.key, f.message): f for f in found}
    return sorted(_name_calls(imported, unique.values()), key=lambda f: (f.line, f.column, f.code))


def _name_calls(imported: ImportedFile, findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the line of the script that calls the function of another file in which they stand, or sources that file."""
    calls = {Place(one.file, one.line, one.column): one.call[0] for one in imported.found if one.call and one.file != imported.file}
    is_shell = any(not called.name for called in imported.followed)
    result = []
    for finding in findings:
        line = calls.get(finding.where) if finding.where is not None else None
        does = "The file is sourced" if is_shell else "The function is called"
        why = f"{finding.why} {does} in {imported.file}:{line}.".lstrip() if line else finding.why
        result.append(finding._replace(why=why))
    return result


def _build_setting_finding(one: FoundSetting, fault: Fault) -> Finding:
    place = Place(one.file, one.line, one.column)
    return Finding(fault.code, fault.message, fault.why, fault.hint, key=one.key, where=place, severity=fault.severity)


def _find_default_faults(one: FoundSetting, context: Context, python2: bool) -> list[Fault]:
    """Return what is wrong with what the command line gives if nobody says otherwise; a test around it may keep that out."""
    option = catalog.find_option(one.name) if one.surface == "session" else None
    if one.branches or one.default in (None, "") or not one.reason.startswith(COMMAND_LINE) or (option and option.field != one.field):
        return []
    told = "; it is the default, which the script takes if nobody says otherwise"
    return [
        fault._replace(message=f"{fault.message}{told}", severity="warning")
        for fault in find_script_faults(one._replace(reason="", value=one.default, written=one.default), context, python2)
        if fault.code == "NP203" and fault.severity == "error"
    ]


def _find_lateness(one: FoundSetting) -> Finding | None:
    """Return that a setting is made when nothing looks at it any more; not where another use may come, or a loop comes round."""
    if not one.key or one.dead or not (late := _LATE.fullmatch(one.unused)):
        return None
    why = "What was set by then was taken, and nothing looks again."
    return _build_setting_finding(one, Fault("NP822", f"{one.name} {one.unused}", why, f"set it before line {late[1]}"))


def _build_commented_finding(one: FoundSetting) -> Finding:
    value = f" = {format_short_value(one.value)}" if not one.reason else ""
    what = f"{one.name}{value} is commented out"
    why = "Settings that are switched on and off by editing drift apart from script to script."
    place = Place(one.file, one.line, one.column)
    return build_finding("NP805", what, why, "make it a mix-in preset, or delete the line", key=one.key, where=place)


def _check_setting_groups(imported: ImportedFile, live: list[FoundSetting], asked: Context, team: Sequence[TeamRule]) -> list[Finding]:
    """Yield the faults that show only when settings are seen together."""
    result: list[Finding] = []
    sites = {site.scope: site for site in imported.sites}
    groups: dict[str, list[FoundSetting]] = {}
    for one in sorted(live, key=lambda one: one.order):  # as they run
        groups.setdefault(one.scope, []).append(one)
    for name, group in groups.items():
        site = sites.get(name)
        if site is not None and any(not one.key and not one.dead for one in group):
            site = site._replace(closed=False)  # it sets something that nobody can name
        wrong = {id(one) for one in group if _is_setting_unread(one)}
        usable = place_under_functions(one for one in group if id(one) not in wrong)
        for world in build_script_views(imported.file, usable, site, asked) if usable else ():
            result += _check_script_rules(world)
            if team and world.settings:
                from npuprof.checks.team import check_team_rules

                result += [finding for finding, _ in check_team_rules(world, team)]
        if len(ways := list_ways(usable, site)) > MOST_WAYS:
            what = f"the settings stand in {len(ways)} branches, more than {MOST_WAYS}"
            why = "What settings say together was looked at for the first of them only."
            result.append(build_script_finding(imported, "NP801", group[0].line, group[0].column, what, why, "split the script"))
        result += _check_setting_age(imported.file, group, asked)
    return result


def _check_double_entries(imported: ImportedFile, live: list[FoundSetting], context: Context) -> list[Finding]:
    """Return entries that are added twice, and what the engine, which is handed the values of both, refuses of them together."""
    result: list[Finding] = []
    for finding, scopes in find_double_entries(imported):
        result.append(finding)
        group = [one for one in live if one.scope in scopes and not _is_setting_unread(one)]
        views = build_script_views(imported.file, group, None, context) if len({one.scope for one in group}) > 1 else ()
        result += [told for view in views for told in _check_script_rules(view) if told.code in _ENGINE_REFUSES]
    return result


def _is_setting_unread(one: FoundSetting) -> bool:
    """Return whether the adapter would not find the value where the script stores it."""
    if one.surface == "global_options":
        return one.name not in list_attribute_paths()
    if one.surface != "session":
        return False
    option = catalog.find_option(one.name)
    return option is None or one.field != option.field


def _check_script_rules(world: ScriptView) -> list[Finding]:
    if not world.settings:
        return []
    found = [finding for finding, _ in rules.check_rules(world) if finding.severity != "info"]
    if world.surface == "atc":
        found += flags.check_flags(world)
    if world.surface == "global_options":  # as all that the class lets pass, and the engine does not
        found = [finding._replace(severity="warning") if finding.code == "NP381" else finding for finding in found]
    if world.surface == "run_config":  # DynamicInputConfig takes all of them or none
        found = [finding for finding in found if finding.code != "NP314"]
    devices = [world.found.get(f"env.{name}") for name in ("DEVICE_ID", "ASCEND_DEVICE_ID")]
    if all(devices) and len({(str(one.value), one.reason) for one in devices if one}) == 1:
        found = [finding for finding in found if finding.code != "NP393"]  # the same device, said to old and new readers
    return found


def _check_setting_age(file: str, group: list[FoundSetting], asked: Context) -> list[Finding]:
    """Return what the age of settings, the release and the product asked for say of each of them."""
    chips = {str(one.value) for one in group if one.key in list_chip_settings()}
    known = {one.key: one for one in group if one.key and (one.key not in list_chip_settings() or len(chips) == 1)}
    view = ScriptView(file, known, {}, asked, group[0].surface, closed=False)
    result = []
    for one in group:
        option = catalog.find_option(one.name) if one.surface == "session" else None
        if not one.key or one.dead or one.reason == UNSET or (option and option.field is not None and one.field != option.field):
            continue
        for fault in scope.find_scope_faults(view.scope, one.key, None if one.reason else one.value):
            if (
                scope.is_fault_excused(view.settings, one.key, fault)
                or fault.code in ("NP503", "NP505", "NP411")
                or (one.surface == "atc" and fault.code == "NP203")  # told with the value itself
                or (one.surface == "global_options" and fault.code in ("NP404", "NP405", "NP408"))  # its class has a history of its own
                or (one.reason and "=" in fault.message)
            ):
                continue
            severity = fault.severity
            if one.surface == "atc" and fault.code in ("NP501", "NP502", "NP404", "NP405") and not one.key.startswith("atc."):
                flag = catalog.find_flag(one.name.removeprefix("--"))
                if flag is None or not flag.deprecated:
                    continue  # the adapter's releases say nothing of ATC
            variable = catalog.find_variable(one.name)
            if fault.code == "NP501" and not asked.cann and variable and variable.replacement_since:
                severity = "info"  # the release may be one that does not know the new name yet
            result.append(_build_setting_finding(one, fault._replace(severity=severity)))
    return result


def _check_surroundings(imported: ImportedFile, live: list[FoundSetting]) -> list[Finding]:
    result: list[Finding] = []
    if named := [one for one in imported.found if one.surface == "config"]:
        told = ", ".join(dict.fromkeys(one.name for one in named[:8])) + (", ..." if len(named) > 8 else "")
        what = f"the file names {format_count(len(named), 'setting')}: {told}"
        why = "What becomes of them is up to the script that reads it; they were not looked at."
        result.append(build_script_finding(imported, "NP829", named[0].line, named[0].column, what, why, ""))
    for blank in imported.list_remarks(BlankExport):
        why = f"The shell reads three words; {blank.name} is not set, and bash says so."
        what, hint = f"blanks around = in export {blank.name}", f"write export {blank.name}="
        result.append(build_script_finding(imported, "NP813", blank.line, blank.column, what, why, hint))
    for group in imported.list_remarks(ReplacedGroup):
        why = "The assignment is accepted and takes the whole group out of the options."
        what = f"global_options().{group.path} is a group, not an option"
        result.append(Finding("NP815", what, why, "assign its members one by one", where=Place(group.file, group.line, group.column)))
    filled = {one.scope for one in live if one.surface == "session" and catalog.find_option(one.name)}
    for entry in imported.list_own_remarks(NamedEntry):
        if entry.name != "NpuOptimizer" and entry.site in filled and find_nearest_names(entry.name, ("NpuOptimizer",), 1):
            why = "The adapter looks for exactly NpuOptimizer; all options of an entry with another name are lost silently."
            what = f"the optimizer is named {entry.name!r}"
            result.append(build_script_finding(imported, "NP808", entry.line, entry.column, what, why, "write 'NpuOptimizer'"))
    result += check_rewrites(imported)
    result += _check_estimator_session(imported, live)
    return result


def _check_estimator_session(imported: ImportedFile, live: list[FoundSetting]) -> list[Finding]:
    """Return the settings of a session_config that NPUEstimator overwrites with its own."""
    result: list[Finding] = []
    defaults = catalog.estimator_defaults()
    handed_over = imported.list_remarks(GivenSession)
    sites: dict[str, list[str]] = {}
    for site in imported.sites if handed_over else ():
        if site.surface == "session":
            sites.setdefault(site.scope.partition(":")[0], []).append(site.scope)
    by_scope: dict[str, list[FoundSetting]] = {}
    by_line: dict[str, list[FoundSetting]] = {}
    for one in live if handed_over else ():
        by_scope.setdefault(one.scope, []).append(one)
        if one.surface == "run_config":
            for line in set(_BETWEEN_MARKS.findall(one.scope)):
                by_line.setdefault(line, []).append(one)
    filled = cache(lambda variable: re.search(rf"\b{re.escape(variable)}\b.*custom_optimizers", imported.text) is not None)
    for handed in handed_over:
        line = handed.line
        scopes = sites.get(handed.function or "<module>", [])
        if len(scopes) != 1 or not filled(handed.expression):
            continue
        calls = by_line.get(str(line), [])
        if any(not one.name for one in calls):
            continue
        given = {one.key for one in calls}
        for one in by_scope.get(scopes[0], ()):
            option = catalog.find_option(one.key)
            if one.key not in defaults or one.key in given or one.reason:
                continue
            if one.value != defaults[one.key] and option and "run_config" not in option.always:
                sent = format_short_value(defaults[one.key])
                what = f"{one.key} = {format_short_value(one.value)} is lost: NPURunConfig at line {line} sends {sent}"
                why = "NPUEstimator adds an entry of its own after the one in session_config, with its defaults, and the later one wins."
                hint = f"give {one.key} to NPURunConfig"
                result.append(_build_setting_finding(one, Fault("NP809", what, why, hint)))
    return result


__all__ = ["Site", "check_script"]
