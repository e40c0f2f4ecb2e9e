"""Preset drafts from settings of scripts.

Effective constants are included, all others listed with location and reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

from npuprof import catalog
from npuprof.catalog.execution import find_meant_variable, is_known_variable, is_own_variable
from npuprof.catalog.launchers import FACTS
from npuprof.catalog.programs import find_program
from npuprof.catalog.values import find_structure
from npuprof.checks.judging import judge_value_alone
from npuprof.document import keys
from npuprof.document.keys import format_toml_value
from npuprof.model import SECTIONS, Finding, is_same_typed_value
from npuprof.scripts.configuration import place_fault
from npuprof.scripts.launches import Launch, find_given_sessions, list_launches
from npuprof.scripts.named_files import open_sidecar
from npuprof.scripts.naming import name_drafts, preset_name
from npuprof.scripts.preset_draft import Draft, Note, Source, describe_sources
from npuprof.scripts.preset_text import (
    describe_assumed,
    describe_notes,
    escape_file_name,
    format_preset,
)
from npuprof.scripts.python.config_classes import list_class_arguments
from npuprof.scripts.reading.variable_files import EXPORTS, join_others, leave_out
from npuprof.scripts.script_records import (
    GOES_NOWHERE,
    TAKEN_BACK,
    UNSET,
    Branches,
    ImportedFile,
    ScriptSetting,
)
from npuprof.system import count_common

_MIXIN = "a mix-in preset, composed over this one with --with"


def build_drafts(
    imported: ImportedFile, folders: Sequence[str] | None = (), take_defaults: bool = False
) -> list[Draft]:
    """Return the presets of one file: one for each distinct configuration.

    A start of a program has the variables that reach it, an object all those of the file; those
    that reach nothing are a preset of their own. Files named by the script are read from its
    folder, or from below the folders; without folders (None), the path is the value. Omitted
    settings of a configuration without others are listed with the first other configuration.
    ``take_defaults`` uses flag defaults as values.
    """
    imported = _keep_only_config(carry_known_variables(imported))
    launches = list_launches(imported)
    build = partial(build_draft, imported.file, folders=folders, take_defaults=take_defaults)
    sessions = find_given_sessions(imported, launches)
    given = {session.scope for session in sessions.values()}
    launches = [launch for launch in launches if launch.scope not in given]
    places = sorted(launch.place for launch in launches)
    around = {outer for outer, inner in pairwise(places) if inner.startswith(outer)}
    exports = tuple(
        setting for launch in launches if launch.surface == "env" for setting in launch.settings
    )
    reached, drafts = set(), []
    for launch in launches:
        if launch.surface == "env" and (launch.place in around or not imported.declarative):
            continue
        draft = build(launch)
        if session := sessions.get(launch.scope):
            _absorb_session(draft, build(session))
        environment = launch.environment
        if not imported.declarative and not find_program(launch.surface):
            environment = exports if draft.settings else ()
        if environment:
            variables = Launch("", "env", environment, ())
            _absorb_draft(draft, build(variables, outer=_find_common_branches(launch)))
        reached |= set(map(id, environment))
        drafts.append(draft)
    distinct = _unite_equal_drafts(drafts)
    left = tuple(setting for setting in exports if id(setting) not in reached)
    if left and not imported.declarative:
        distinct.append(build(Launch("", "env", left, ())))
    full = [draft for draft in distinct if draft.settings] or distinct[:1]
    for draft in distinct:
        full[0].notes += draft.notes if draft not in full else []
    result = [draft for draft in full if draft.settings or draft.notes]
    name_drafts(preset_name(imported.file), result)
    for draft in result:
        draft.is_one_of_several = len(result) > 1
        draft.other_variables = imported.other_variables
    return result


def carry_known_variables(
    imported: ImportedFile, keys: Collection[str] | None = None
) -> ImportedFile:
    """Return a file in which variables of other programs are settings.

    Only if the file has a setting of Ascend's, and the catalogue knows the variable. With
    ``keys``, only these.
    """

    def is_carried(name: str) -> bool:
        return (
            (keys is None or f"env.{name}" in keys)
            and is_known_variable(name)
            and not is_own_variable(name)
            # those of one process or job
            and not any(name in facts for facts in FACTS.values())
            and not name.endswith("VISIBLE_DEVICES")
        )

    has_own = any(setting.key and not setting.commented for setting in imported.settings)
    return join_others(imported, is_carried) if has_own else imported


def leave_to_commands(imported: ImportedFile, keys: Collection[str] = ()) -> ImportedFile:
    """Return a file in which the variables of one command of a shell script are left to it.

    A block would set them for all commands. Those with ``keys`` stay as they are.
    """
    if imported.declarative:
        return imported
    settings = [
        leave_out(setting, f"it is set for the command in {setting.command} only")
        if setting.command and setting.scope == EXPORTS and setting.key not in keys
        else setting
        for setting in imported.settings
    ]
    return imported._replace(settings=tuple(settings))


def _find_common_branches(launch: Launch) -> Branches:
    """Return the conditions of a whole launch."""
    if launch.site:
        return launch.site.branches
    if find_program(launch.surface) is None:
        return ()
    same = zip(*(setting.branches for setting in launch.settings), strict=False)
    return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, same))


def _keep_only_config(imported: ImportedFile) -> ImportedFile:
    """Return a file in which its only configuration counts even if it is unused.

    It was written intentionally.
    """
    idle = {
        setting.scope for setting in imported.settings if setting.unused.startswith(GOES_NOWHERE)
    }
    others = (
        item
        for item in imported.settings
        if item.surface != "env" and not item.commented and not item.dead and item.scope not in idle
    )
    if not idle or any(setting.key for setting in others):
        return imported
    settings = (
        setting._replace(unused="") if setting.unused.startswith(GOES_NOWHERE) else setting
        for setting in imported.settings
    )
    return imported._replace(settings=tuple(settings))


def build_draft(
    file: str,
    launch: Launch,
    folders: Sequence[str] | None,
    take_defaults: bool = False,
    outer: Branches | None = None,
) -> Draft:
    """Return the draft of one launch; ``outer`` conditions, by default its own, do not count."""
    draft = Draft(file, launch.surface)
    draft.labels = launch.labels
    outer = _find_common_branches(launch) if outer is None else outer
    outer_tests = [branch.test for branch in outer]
    condition = " and ".join(outer_tests)
    draft.sources = [Source(file, launch.line, launch.function, condition)]
    for setting in launch.settings:
        # None leaves an option unset, so there is nothing to carry over or to list
        if setting.reason == UNSET:
            continue
        if take_defaults and setting.reason and setting.assigned.default is not None:
            draft.assumed.append(Note(setting, setting.reason, value=setting.assigned.default))
            setting = setting.with_value(reason="", value=setting.assigned.default)
        # without the conditions that its object has too
        tests = [branch.test for branch in setting.branches]
        own_branches = setting.branches[count_common(tests, outer_tests) :]
        # a line that never runs takes nothing back
        if setting.reason and not setting.dead and not setting.unused:
            _take_back(draft, setting, is_conditional=bool(own_branches))
        value = read_preset_value(setting, folders)
        why, hint = _find_reason(setting, value)
        if why:
            draft.notes.append(Note(setting, why, hint))
        elif own_branches:
            condition = setting._replace(branches=own_branches).condition
            draft.notes.append(Note(setting, f"only if {condition}", _MIXIN, condition, value))
        elif any(
            setting.key.startswith(f"{other}.") or other.startswith(f"{setting.key}.")
            for other in draft.settings
        ):
            draft.notes.append(Note(setting, "another argument is a table around it, or a part"))
        else:
            _carry_over(draft, setting, value)
    return draft


def _find_reason(setting: ScriptSetting, value: Any) -> tuple[str, str]:
    """Return why a setting is in no preset, and the hint.

    Empty if at most a condition excludes it.
    """
    if setting.dead:
        _, hint = find_obstacle(setting)
        return f"never runs: {setting.condition}" if setting.condition else "never runs", hint
    if setting.unused and setting.reason in ("", TAKEN_BACK):
        return setting.unused, ""
    why, hint = find_obstacle(setting)
    if setting.assigned.relative and not why and isinstance(value, str):
        hint = (
            "presets do not depend on a script: keep the line, "
            "or write a path that is valid on all machines"
        )
        return "begins in the folder of the script", hint
    return why, hint


def _carry_over(draft: Draft, setting: ScriptSetting, value: Any) -> None:
    """Add a setting to a draft; a note lists the setting that it replaces."""
    key = setting.key
    if key in draft.settings and not is_same_typed_value(draft.settings[key], value):
        why = f"line {setting.line} sets it to another value, which the preset has"
        hint = "split them where the first is used before that"
        draft.notes.append(Note(draft.origins[key], why, hint, overruled=True))
    draft.settings[key] = value
    draft.origins[key] = setting
    draft.carried.append(setting)


def _take_back(draft: Draft, setting: ScriptSetting, is_conditional: bool) -> None:
    """Omit settings that a script may undo, or always replaces by an unknown value."""
    is_unset = setting.reason == TAKEN_BACK
    if is_conditional and not is_unset:
        return
    before = draft.origins.pop(setting.key, None)
    if before is None:
        return
    del draft.settings[setting.key]
    draft.carried = [carried for carried in draft.carried if carried.key != setting.key]
    if is_unset:
        change = "takes it back"
    elif setting.reason.startswith("depends"):
        change = f"sets it again, to what {setting.reason}"
    else:
        change = "sets it again"
    draft.notes.append(Note(before, f"{setting.cited_line} {change}"))


def _absorb_draft(home: Draft, draft: Draft) -> None:
    """Merge another draft into one."""
    for key, value in draft.settings.items():
        home.settings.setdefault(key, value)
        home.origins.setdefault(key, draft.origins[key])
    known = {id(note.setting) for note in home.notes}
    home.notes += [note for note in draft.notes if id(note.setting) not in known]
    home.assumed += draft.assumed
    home.surfaces |= draft.surfaces - {"env"}


def _absorb_session(home: Draft, session: Draft) -> None:
    """Merge the session config passed to an NPURunConfig.

    The adapter prefers the argument of the NPURunConfig.
    """
    for key, origin in session.origins.items():
        if key in home.settings and not is_same_typed_value(
            home.settings[key], session.settings[key]
        ):
            why = f"the argument of NPURunConfig in line {home.origins[key].line} overrides it"
            home.notes.append(Note(origin, why, "leave one of the two"))
    _absorb_draft(home, session)


def _unite_equal_drafts(drafts: list[Draft]) -> list[Draft]:
    """Return the distinct drafts, each with the sources of its equals."""
    distinct: dict[str, Draft] = {}
    for draft in sorted(drafts, key=lambda draft: draft.sources[0].line):
        values = sorted((key, repr(value)) for key, value in draft.settings.items())
        # a conversion and a session with equal settings differ in their scenario
        home = distinct.setdefault(f"{'atc' in draft.surfaces} {values}", draft)
        if home is not draft:
            _absorb_draft(home, draft)
            home.sources += draft.sources
    return list(distinct.values())


def judge_draft(draft: Draft) -> list[Finding]:
    """Return the errors of a draft's values, at their places in the scripts."""
    return [
        place_fault(fault, origin)
        for key, origin in draft.origins.items()
        for fault in judge_value_alone(key, draft.settings[key], draft.scenario)
        if fault.severity == "error"
    ]


def format_draft(draft: Draft) -> str:
    """Return a preset as TOML, with omitted settings as comments."""
    head = {"description": f"imported from {escape_file_name(describe_sources(draft))}"}
    if draft.scenario:
        head["scenario"] = draft.scenario
    comments = [
        *describe_assumed(draft.assumed),
        *describe_notes(draft.notes, draft.other_variables),
    ]
    return format_preset(head, draft.settings, comments)


def find_obstacle(item: ScriptSetting) -> tuple[str, str]:
    """Return why a setting cannot be in a preset, and the hint; empty if it can."""
    if item.reason:
        default = item.assigned.default
        written = format_toml_value(default) if default is not None else ""
        return item.reason, written and f"{written} is the default of the script"
    section, name = keys.split_section_and_name(item.key)
    if item.surface == "session":
        return _find_session_obstacle(item)
    if section == "env":
        return _find_variable_obstacle(name)
    if item.key in catalog.load_attributes()["choices"]:
        return "an attribute of global_options() that is not an option", ""
    if section not in SECTIONS:
        return _find_foreign_obstacle(item)
    if section == "options" and catalog.find_option(item.key) is None:
        return "the catalogue does not know the option", "see npuprof scan"
    described = catalog.load_sections()[section]
    # programs whose names are exact add arguments to the known ones
    is_open = described.launch.get("spelling") == "exact"
    if described.dotted and not is_open and described.find(name) is None:
        return f"{section} has no such setting", "see npuprof scan"
    if section == "estimator":
        argument = catalog.find_argument(name)
        if argument is None:
            return "NPURunConfig takes no such argument", "see npuprof scan"
        if argument.kind == "object":
            return "an object of the script", ""
    return "", ""


def _find_session_obstacle(setting: ScriptSetting) -> tuple[str, str]:
    option = catalog.find_option(setting.name)
    if option is None or option.field is None:
        return "no adapter reads the key", "see npuprof scan"
    if setting.field != option.field:
        return f"stored in .{setting.field}, the adapter reads .{option.field}", "see npuprof scan"
    return "", ""


def _find_variable_obstacle(name: str) -> tuple[str, str]:
    variable = catalog.find_variable(name)
    if variable is None and is_known_variable(name):
        return "", ""
    if variable is None:
        meant = find_meant_variable(name)
        hint = f"did you mean {meant!r}?" if meant else ""
        return "the catalogue does not know the variable", hint
    if variable.freeze not in ("never", "launcher"):
        return "", ""
    hint = variable.advice
    if variable.launcher:
        hint = f'write {name} = {{ launcher = "{variable.launcher}" }}'
    return "a fact of one process or job, not of a preset", hint


def _find_foreign_obstacle(item: ScriptSetting) -> tuple[str, str]:
    """Return why an argument or an attribute without an option cannot be in a preset."""
    if item.class_name and item.name in list_class_arguments(item.class_name):
        return f"an argument of {item.class_name} that is not an option", ""
    return f"{item.class_name or 'global_options()'} does not take it", "see npuprof scan"


def read_preset_value(setting: ScriptSetting, folders: Sequence[str] | None) -> Any:
    """Return the preset value.

    A sidecar file next to the script, or in one of the folders, is included (None: no files).
    """
    if folders is None or find_structure(setting.key) is None:  # files of flags stay files
        return setting.value
    sidecar = open_sidecar(setting, folders)
    if sidecar is None or not sidecar.value:
        return setting.value
    structure = sidecar.structure
    # the content of a file counts only if a preset can write the same file again
    if structure.faults(sidecar.value) or not structure.format(sidecar.value):
        return setting.value
    return sidecar.value
