"""A launch as a configuration that ``checks`` judges: one for each path through its branches.

A rule must be certain. Settings of other branches may be missing, values may depend on the run, and
a configuration from other code may contain more than the script shows; all these are unknown.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from types import SimpleNamespace
from typing import Any, cast

from npuprof import catalog
from npuprof.catalog.attribute_values import list_attribute_paths
from npuprof.catalog.condition import Operand, find_key
from npuprof.catalog.programs import find_program
from npuprof.checks.view import Fault, View, build_asked_scope, find_chip, narrow_scope
from npuprof.document.keys import format_full_key, split_dotted_key
from npuprof.model import FRAMEWORK_SECTIONS, Context, Finding, Origin, Path, Place
from npuprof.scripts.launches import Launch
from npuprof.scripts.script_records import (
    EMPTY,
    TAKEN_BACK,
    UNSET,
    Branch,
    Branches,
    LocatedRecord,
    ScriptSetting,
)
from npuprof.system import group_pairs

#: The value of a setting that the run decides: equal to nothing.
UNDECIDED = object()

#: The maximum number of paths; each is checked with all settings.
_MOST_PATHS = 300

#: Surfaces of scripts that create a session: training or inference, often unknown which, but never
#: a conversion.
_ONLINE_SURFACES = ("session", "run_config", "global_options")
#: Surfaces with only some of the session options.
_PARTIAL_SURFACES = ("run_config", "global_options", "atc")


class _SomeOnlineScenario:
    """The scenario of a script that creates a session: not offline, else unknown.

    Comparisons are undecided.
    """

    def __eq__(self, other: object) -> bool:
        if other == "offline-inference":
            return False
        # conditions evaluate to unknown on TypeError
        raise TypeError


class _Nothing:
    """The value of an unset setting: no comparison with it is true."""

    def __eq__(self, other: object) -> bool:
        return False

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__


class ScriptView(View):
    """A view of a script's settings; see ``checks.view.View`` for the queries.

    ``certain`` are settings that apply, ``possible`` others that may apply; ``closed``: settings
    that are missing are unset. ``complete`` are sections of a program whose missing settings are
    unset, as its whole command line is known.
    """

    reports_undecided = False

    def __init__(
        self,
        name: str,
        certain: dict[str, ScriptSetting],
        possible: dict[str, ScriptSetting],
        requested: Context,
        surface: str,
        closed: bool,
        complete: tuple[str, ...] = (),
    ) -> None:
        self.certain = certain
        self.possible = possible
        self.surface = surface
        self.closed = closed
        self.complete = complete
        self.settings = nest_settings({key: _find_checked_value(certain[key]) for key in certain})
        self.names = tuple(self.settings)
        self.requested = requested
        online = "online-inference" if self.settings.get("graph_run_mode") == 0 else None
        self.scope = build_asked_scope(requested)._replace(
            scenario="offline-inference" if surface == "atc" else online, surface=""
        )
        self.named = self.scope.families
        self.ranges = ()
        # rules for other products do not concern a conversion that names its chip
        if surface == "atc" and (chip := find_chip(self.settings)):
            self.scope = narrow_scope(self.scope, chip[1])
        self.scenario = self.scope.scenario
        self.releases = self.scope.releases
        self.families = self.scope.families
        # a rule may also depend on a negation, an override, or any setting of a program
        others = (
            name if _AFFECTS_OTHERS.search(name) else name.partition(".")[0] for name in self.names
        )
        # shared by all views in which equal values have equal results
        self.memory = _open_memory(self.scope, surface, closed, complete, frozenset(others))
        self.config = cast(
            "Any",
            SimpleNamespace(
                abstract=False,
                name=name,
                lineage=(),
                cann=None,
                products=(),
                axes={},
            ),
        )

    def build_finding(self, fault: Fault, key: str, origin: Origin | None = None) -> Finding:
        """Return a fault as a finding at the script's line for the key."""
        message, why, hint = (
            # the messages of rules are worded for presets
            re.sub(r"\b(this|a) preset", r"\1 script", text)
            for text in (fault.message, fault.why, fault.hint)
        )
        fault = fault._replace(message=message, why=why, hint=hint)
        setting = self._find_setting(key, fault.tail) or self.possible.get(key)
        if setting is not None:  # the rest of the path is in its value
            depth = len(_split_key(setting.key)) - len(_split_key(key))
            fault = fault._replace(tail=fault.tail[max(depth, 0) :])
        return place_fault(fault, setting or next(iter(self.certain.values())))

    def locate(self, key: str, tail: Path = ()) -> tuple[str, int]:
        """Return the file and line of a setting, ``("", 0)`` if there is none."""
        setting = self._find_setting(key, tail)
        return (setting.file, setting.line) if setting else ("", 0)

    def _find_setting(self, key: str, tail: Path) -> ScriptSetting | None:
        """Return the setting at a path, else the first one above or below it."""
        path = _split_key(".".join(map(str, (key, *tail))))
        found = {_split_key(name): setting for name, setting in self.certain.items()}
        around = (setting for name, setting in found.items() if _is_around(path, name))
        return found.get(path) or next(around, None)

    def is_decided(self, key: str) -> bool:
        """Return whether the script determines a setting's value."""
        setting = self.certain.get(key)
        return setting is None or not setting.reason

    def may_be_given(self, keys: Iterable[str], of_conversion: bool) -> bool:
        """Return whether a flag may be on the command line without being certain."""
        return not self.closed or any(key in self.possible for key in keys)

    def list_values(self, axis: str, declared: Sequence[str] = ()) -> tuple[str | None, ...]:
        """Return the values of an axis; of a declared one None by default: a script has none."""
        return (self.requested.find_value(axis),) if declared else super().list_values(axis)

    def look_up_written(self, path: tuple[str, ...]) -> Operand:
        """Return whether an operand of a team rule is set, and its value.

        A certainly unset one compares to nothing.
        """
        key, _ = find_key(path)
        if path == ("scenario",):
            return self.lookup_operand(path, {})
        if key in self.settings:
            is_set, value = super().look_up_written(path)
            return is_set, None if value is UNDECIDED else value
        is_certainly_unset = (
            self.closed
            and key not in self.possible
            and "." not in key
            and self.surface not in _PARTIAL_SURFACES
        )
        return (False, NOTHING) if is_certainly_unset else (None, None)

    def lookup_operand(self, path: tuple[str, ...], point: Mapping[str, str | None]) -> Operand:
        """Return whether an operand is set, and its value; None means unknown."""
        head = path[0]
        if head == "scenario" and self.scenario is None:
            return None, _SomeOnlineScenario() if self.surface in _ONLINE_SURFACES else None
        key, tail = find_key(path)
        if key in point or key == "scenario":
            return super().lookup_operand(path, point)
        if any(_is_around(path, _split_key(name)) for name in self.possible):
            return None, None
        if key in _OTHER_SOURCES and key not in self.settings:
            return False, None
        if key in self.settings or head in self.complete:
            if self.settings.get(key) is UNDECIDED:
                return None if tail else True, None
            is_set, value = super().lookup_operand(path, point)
            if is_set is False and head in FRAMEWORK_SECTIONS and head not in self.complete:
                is_set = None  # other code may set other keys of a table
            return is_set, None if value is UNDECIDED else value
        if "." in key or not self.closed:
            return None, None
        # NPUEstimator sets these on every run, whatever the script leaves out
        if self.surface == "run_config" and head in catalog.estimator_defaults():
            return True, catalog.estimator_defaults()[head]
        if self.surface in _PARTIAL_SURFACES:
            option = catalog.find_option(head)
            if option and self.surface not in option.spelling:
                return None, None  # set elsewhere, if at all
        return super().lookup_operand(path, point)


NOTHING = _Nothing()
#: Files that replace the arguments of Megatron-LM: no variable of unknown arguments brings one.
_OTHER_SOURCES = ("megatron.yaml-cfg", "megatron.mm-model")
_AFFECTS_OTHERS = re.compile(r'\."?(?:no-|[+~]|--config)')


@lru_cache(500)
def _open_memory(*_: Any) -> dict[Any, Any]:
    return {}


@lru_cache(1024)  # the settings of a file are looked up for each rule
def _split_key(key: str) -> tuple[str, ...]:
    """Return a key and its path inside."""
    return tuple(split_dotted_key(key) or (key,))


def _is_around(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether a path is above or below another one, or the same."""
    return all(map(operator.eq, path, other))


def nest_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as presets have them: keys of a table are in a table."""
    settings = {}
    for key, value in values.items():
        section, *names = _split_key(key)
        if len(names) < 2 or section not in FRAMEWORK_SECTIONS:
            settings[key] = value
            continue
        table, (name, *inner, last) = settings, names
        for part in (format_full_key(section, name), *inner):
            if not isinstance(table.get(part), dict):
                table[part] = {}
            table = table[part]
        table[last] = value
    return settings


def _find_checked_value(setting: ScriptSetting) -> Any:
    """Return the value of a setting for checks; the content of a file counts, if it was read."""
    if setting.reason:
        return UNDECIDED
    content = setting.assigned.content
    return setting.value if content is None else content


def place_fault(fault: Fault, record: ScriptSetting | LocatedRecord) -> Finding:
    """Return a fault as a finding at the location of a setting or another record of a script.

    That of a value in a setting's value, if the fault is about one.
    """
    position = record.line, record.column
    if isinstance(record, ScriptSetting) and record.location.inner:
        tail = tuple(map(str, fault.tail))
        paths = (tail[:end] for end in range(len(tail), 0, -1))
        inner = record.location.inner
        position = next((inner[path] for path in paths if path in inner), position)
    key = record.key if isinstance(record, ScriptSetting) else ""
    return fault.place(key=key, where=Place(record.file, *position))


def configure_launch(name: str, launch: Launch, requested: Context) -> Iterator[ScriptView]:
    """Yield a configuration for each path through the branches around a launch.

    ``name`` is the file of the launch. There are at most ``_MOST_PATHS``. Settings that may be lost
    are in none.
    """
    closed = launch.site is not None and launch.site.closed and not launch.sets_unknown_keys
    is_whole_file = closed and launch.surface in catalog.list_file_sections()
    closed = closed and not is_whole_file  # other sections may be set elsewhere
    program = find_program(launch.surface)
    positional = program and format_full_key(program.section, program.positional)
    usable = _add_call_conditions(
        setting
        for setting in (*launch.environment, *launch.settings)
        if setting.key and not _is_excluded(setting)
    )
    base = launch.site.branches if launch.site else ()
    # not those of its environment
    paths = {setting.branches for setting in usable if setting.surface == launch.surface} | {base}
    # conditions by number, as their texts would be hashed again for each path
    numbers: dict[Branches, int] = {}
    numbered = [
        (
            numbers.setdefault(setting.branches, len(numbers)),
            setting,
            setting.reason in (UNSET, TAKEN_BACK),
        )
        for setting in usable
    ]
    arms = group_pairs(
        (branch.number, (branch.arm, number)) for each, number in numbers.items() for branch in each
    )
    # X=1 COMMAND sets a variable for that command alone
    is_apart = launch.surface == "env"
    ends = {setting.command: at for at, setting in enumerate(usable) if is_apart}
    ends[""] = len(usable)
    # the most general paths are the ones that count if there are more than the limit
    ways = product(sorted(paths, key=lambda path: (len(path), str(path))), ends.items())
    for path, (command, end) in islice(ways, _MOST_PATHS):
        # a condition is true below the starts of its branches, and false in their other arms
        true = {numbers.get(each[:end]) for each in (base, path) for end in range(len(each) + 1)}
        false = {
            number
            for branch in path
            for arm, number in arms.get(branch.number, ())
            if arm != branch.arm
        } - true
        certain = {}
        possible: dict[str, ScriptSetting] = {}
        # in execution order: later ones replace earlier ones
        for number, setting, is_removed in numbered[: end + 1]:
            if is_apart and setting.command not in ("", command):
                continue
            if number in true and not is_removed:
                certain[setting.key] = setting
                if setting.key in possible:
                    del possible[setting.key]
            elif number not in false or is_removed:
                possible[setting.key] = setting
                # a later setting that may apply makes the earlier one uncertain
                if setting.key in certain:
                    del certain[setting.key]
        if certain:
            complete: tuple[str, ...] = (launch.surface,) if is_whole_file else ()
            # without it, these may be arguments that another command adds to its own
            if program and (not program.starts or positional in certain):
                is_known = program.config and format_full_key(program.section, program.config)
                if not launch.sets_unknown_keys and is_known not in {**certain, **possible}:
                    complete = (program.section, *program.tables.values())
            yield ScriptView(name, certain, possible, requested, launch.surface, closed, complete)


def _is_excluded(setting: ScriptSetting) -> bool:
    """Return whether a setting is in no configuration: it never runs, or others run without it."""
    if setting.dead or setting.unused == EMPTY:
        return True
    return bool(setting.surface == "env" and setting.unused) or is_setting_unread(setting)


def is_setting_unread(setting: ScriptSetting) -> bool:
    """Return whether the adapter would not find the value where the script assigns it."""
    if setting.surface == "global_options":
        return setting.name not in list_attribute_paths()
    if setting.surface != "session":
        return False
    option = catalog.find_option(setting.name)
    return option is None or (option.field or setting.field) != setting.field


def _add_call_conditions(settings: Iterable[ScriptSetting]) -> list[ScriptSetting]:
    """Return process-wide settings as conditional on calls of their functions.

    Which functions are called is unknown.
    """
    calls: dict[str, Branch] = {}
    result = []
    for setting in settings:
        if setting.function:
            number = -1 - len(calls)  # negative: others are numbers of statements
            call = Branch(number, 0, f"{setting.function}() is called")
            branch = calls.setdefault(setting.function, call)
            setting = setting._replace(branches=(branch, *setting.branches))
        result.append(setting)
    return result
