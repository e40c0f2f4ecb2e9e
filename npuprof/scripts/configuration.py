"""A launch as a configuration that ``checks`` judges: one for each path through its branches.

A rule must be certain. Settings of other branches may be missing, values may depend on the run, and
a configuration from other code may contain more than the script shows; all these are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from npuprof import catalog
from npuprof.catalog.attribute_values import list_attribute_paths
from npuprof.catalog.condition import find_key
from npuprof.checks.view import Fault, View, build_asked_scope, find_chip, narrow_scope
from npuprof.model import Context, Finding, Origin, Place
from npuprof.scripts.launches import Launch
from npuprof.scripts.script_records import EMPTY, UNSET, LocatedRecord, ScriptSetting

#: The value of a setting that the run decides: equal to nothing.
UNDECIDED = object()

#: The maximum number of paths; each is checked with all settings.
_MOST_WAYS = 300

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
        raise TypeError


class _Nothing:
    """The value of an unset setting: no comparison with it is true."""

    def __eq__(self, other: object) -> bool:
        return False

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__


class ScriptView(View):
    """A view of a script's settings; see ``checks.view.View`` for the queries.

    ``found`` are the certain settings, ``maybe`` others that may apply; ``closed``: settings that
    are missing are unset.
    """

    reports_undecided = False

    def __init__(
        self,
        name: str,
        found: dict[str, ScriptSetting],
        maybe: dict[str, ScriptSetting],
        requested: Context,
        surface: str,
        closed: bool,
    ) -> None:
        self.found = found
        self.maybe = maybe
        self.surface = surface
        self.closed = closed
        # the content of a file counts, if it was read
        seen = {
            key: setting.value if setting.assigned.content is None else setting.assigned.content
            for key, setting in found.items()
        }
        self.settings = {
            key: UNDECIDED if found[key].reason else value for key, value in seen.items()
        }
        self.names = tuple(self.settings)
        self.requested = requested
        online = "online-inference" if self.settings.get("graph_run_mode") == 0 else None
        self.scope = build_asked_scope(requested)._replace(
            scenario="offline-inference" if surface == "atc" else online, surface=""
        )
        self.named = self.scope.families
        if surface == "atc" and (chip := find_chip(self.settings)):
            self.scope = narrow_scope(self.scope, chip[1])
        self.scenario, self.releases, self.families = (
            self.scope.scenario,
            self.scope.releases,
            self.scope.families,
        )
        self.memory = {}  # not shared: results depend on more than the values
        self.config = cast(
            "Any",
            SimpleNamespace(
                abstract=False, name=name, lineage=(), cann=None, products=(), list_ranges=dict
            ),
        )

    def build_finding(self, fault: Fault, key: str, origin: Origin | None = None) -> Finding:
        """Return a fault as a finding at the script's line for the key."""
        texts = {"message": fault.message, "why": fault.why, "hint": fault.hint}
        texts = {
            name: text.replace("this preset", "this script").replace("a preset", "a script")
            for name, text in texts.items()
        }
        return place_fault(
            fault._replace(**texts),
            self.found.get(key) or self.maybe.get(key) or next(iter(self.found.values())),
        )

    def is_decided(self, key: str) -> bool:
        """Return whether the script determines a setting's value."""
        return not self.found[key].reason

    def may_be_given(self, keys: Iterable[str], of_conversion: bool) -> bool:
        """Return whether a flag may be on the command line without being certain."""
        return not self.closed or any(key in self.maybe for key in keys)

    def look_up_written(self, path: tuple[str, ...]) -> tuple[bool | None, Any]:
        """Return whether an operand of a team rule is set, and its value: a certainly unset one
        compares to nothing.
        """
        key, _ = find_key(path)
        if path == ("scenario",):
            return self.lookup_operand(path, {})
        if key in self.found:
            return super().look_up_written(path) if self.is_decided(key) else (True, None)
        known = (
            self.closed
            and key not in self.maybe
            and "." not in key
            and self.surface not in _PARTIAL_SURFACES
        )
        return (False, NOTHING) if known else (None, None)

    def lookup_operand(
        self, path: tuple[str, ...], point: Mapping[str, str | None]
    ) -> tuple[bool | None, Any]:
        """Return whether an operand is set, and its value; None means unknown."""
        head = path[0]
        if head == "scenario" and self.scenario is None:
            return None, _SomeOnlineScenario() if self.surface in _ONLINE_SURFACES else None
        key, _ = find_key(path)
        if key in point or key == "scenario" or key in self.found:
            return (
                super().lookup_operand(path, point)
                if key not in self.found or self.is_decided(key)
                else (True, None)
            )
        if key in self.maybe or "." in key or not self.closed:
            return None, None
        if self.surface == "run_config" and head in catalog.estimator_defaults():
            return True, catalog.estimator_defaults()[head]
        if (
            self.surface in _PARTIAL_SURFACES
            and (option := catalog.find_option(head))
            and self.surface not in option.spelling
        ):
            return None, None  # set elsewhere, if at all
        return super().lookup_operand(path, point)


NOTHING = _Nothing()


def place_fault(fault: Fault, at: ScriptSetting | LocatedRecord) -> Finding:
    """Return a fault as a finding at the place of a setting or another record of a script."""
    place = Place(at.file, at.line, at.column)
    key = at.key if isinstance(at, ScriptSetting) else ""
    return Finding(
        fault.code,
        fault.message,
        fault.why,
        fault.hint,
        key=key,
        where=place,
        severity=fault.severity,
    )


def configure_launch(name: str, launch: Launch, requested: Context) -> list[ScriptView]:
    """Return a configuration for each path through the branches around a launch of the file
    ``name``, at most ``_MOST_WAYS``.

    Settings that may be lost are in none.
    """
    closed = launch.site is not None and launch.site.closed and not launch.sets_unknown_keys
    usable = _place_under_functions(
        item for item in (*launch.environment, *launch.settings) if item.key and not _is_apart(item)
    )
    base = launch.site.branches if launch.site else ()
    numbers = {
        place: number
        for number, place in enumerate(dict.fromkeys(setting.branches for setting in usable))
    }
    always = {number for place, number in numbers.items() if place == base[: len(place)]}
    steps = [(numbers[setting.branches], setting) for setting in usable]
    arms: dict[int, dict[int, set[int]]] = {}  #: the places in each arm of each ``if``
    for place, number in numbers.items():
        for branch in place:
            arms.setdefault(branch[0], {}).setdefault(branch[1], set()).add(number)
    result = []
    ways = {setting.branches for setting in usable if setting.surface == launch.surface} | {
        base
    }  # not those of its environment
    for way in sorted(ways, key=lambda branches: (len(branches), str(branches)))[:_MOST_WAYS]:
        sure = always.union(
            numbers[way[:end]] for end in range(len(way) + 1) if way[:end] in numbers
        )
        known = sure.union(
            *(
                places
                for branch in way
                for arm, places in arms.get(branch[0], {}).items()
                if arm != branch[1]
            )
        )
        certain: dict[str, ScriptSetting] = {}
        maybe: dict[str, ScriptSetting] = {}
        for number, setting in steps:
            is_certain = number in sure and setting.reason != UNSET
            if is_certain or number not in known or setting.reason == UNSET:
                now, before = (certain, maybe) if is_certain else (maybe, certain)
                now[setting.key] = setting
                if setting.key in before:
                    del before[setting.key]
        if certain:
            result.append(ScriptView(name, certain, maybe, requested, launch.surface, closed))
    return result


def _is_apart(setting: ScriptSetting) -> bool:
    """Return whether a setting cannot be combined with others: it never runs, or the others may run
    without it.
    """
    return (
        setting.dead
        or setting.unused == EMPTY
        or bool(setting.surface == "env" and setting.unused)
        or is_setting_unread(setting)
    )


def is_setting_unread(setting: ScriptSetting) -> bool:
    """Return whether the adapter would not find the value at its place in the script."""
    if setting.surface == "global_options":
        return setting.name not in list_attribute_paths()
    option = catalog.find_option(setting.name)
    return setting.surface == "session" and (
        option is None or (option.field or setting.field) != setting.field
    )


def _place_under_functions(settings: Iterable[ScriptSetting]) -> list[ScriptSetting]:
    """Return process-wide settings as conditional on calls of their functions, as the called ones
    are unknown.
    """
    result = list(settings)
    names = dict.fromkeys(setting.function for setting in result if setting.function)
    calls = {name: (-1 - number, 0, f"{name}() is called") for number, name in enumerate(names)}
    return [
        setting._replace(branches=(calls[setting.function], *setting.branches))
        if setting.function
        else setting
        for setting in result
    ]
