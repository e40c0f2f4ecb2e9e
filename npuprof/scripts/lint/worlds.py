"""What a script sets together: one view for the checks for each way its branches can go.

A rule may speak only where it is certain. Settings of other branches may or may not be there, values may depend
on the run, and a configuration that comes from elsewhere may hold more than the script shows; all of that is
answered with "cannot be known".
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from npuprof import catalog
from npuprof.catalog import products
from npuprof.checks.view import Fault, Scope, View, find_chip, narrow_scope
from npuprof.model import Context, Finding, Origin, Place
from npuprof.scripts.reading.found import UNSET, Branch, FoundSetting, Site

#: The value of a setting that is there, while the run decides what it holds: equal to nothing.
UNDECIDED = object()

#: So many ways through the branches of a script are judged; each is looked at with all settings.
MOST_WAYS = 300
_SURE, _MAYBE, _NEVER = range(3)

#: Where a script makes a session itself: training or inference, which of the two often nobody can tell, but never a conversion.
_ONLINE_SURFACES = ("session", "run_config", "global_options")
#: Where only some of the options of a session can be set.
_PARTIAL_SURFACES = ("run_config", "global_options", "atc")


class _SomeOnlineScenario:
    """The scenario of a script that makes a session: not offline; which of the others cannot be told, so comparing says nothing."""

    def __eq__(self, other: object) -> bool:
        if other == "offline-inference":
            return False
        raise TypeError

    __hash__ = None  # type: ignore[assignment]


class _Nothing:
    """The value of what is not set: no comparison with it holds."""

    def __eq__(self, other: object) -> bool:
        return False

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None  # type: ignore[assignment]


NOTHING = _Nothing()


class ScriptView(View):
    """A view of settings found in a script; see ``checks.view.View`` for what the checks ask of it."""

    speaks_of_doubts = False

    def __init__(
        self, name: str, found: dict[str, FoundSetting], maybe: dict[str, FoundSetting], asked: Context, surface: str, closed: bool
    ) -> None:
        self.found = found
        self.maybe = maybe
        self.surface = surface
        self.closed = closed
        self.settings = {key: _read_value(one) for key, one in found.items()}
        self.asked = asked
        self.scenario = (
            "offline-inference" if surface == "atc" else "online-inference" if self.settings.get("graph_run_mode") == 0 else None
        )
        self.releases = (asked.cann,) if asked.cann else ()
        self.families = (products.find_product_family(products.find_product(asked.product) or asked.product),) if asked.product else ()
        self.named = self.families
        self.scope = Scope(self.scenario, self.releases, self.families)
        if surface == "atc" and (chip := find_chip(self.settings)):
            self.scope = narrow_scope(self.scope, chip[1])
            self.families = self.scope.families
        self.memory = {}  # of its own: what is certain here depends on more than the values
        shape: Any = SimpleNamespace(abstract=False, name=name, lineage=(), cann=None, products=())
        self.config = shape

    def build_finding(self, fault: Fault, key: str, origin: Origin | None = None) -> Finding:
        """Return a fault as a finding at the place where the script sets the key."""
        one = self.found.get(key) or self.maybe.get(key) or next(iter(self.found.values()))
        message, why, hint = (text.replace("this preset", "this script").replace("a preset", "a script") for text in (
            fault.message, fault.why, fault.hint))  # fmt: skip
        return Finding(fault.code, message, why, hint, None, one.key, (), Place(one.file, one.line, one.column), severity=fault.severity)

    def is_decided(self, key: str) -> bool:
        """Return whether the script says itself what a setting holds."""
        return not self.found[key].reason

    def may_be_given(self, keys: Iterable[str], of_conversion: bool) -> bool:
        """Return whether a flag may be on the command line although it is not certain to be."""
        return not self.closed or any(key in self.maybe for key in keys)

    def look_up_written(self, path: tuple[str, ...]) -> tuple[bool | None, Any]:
        """Return whether what a condition of a team names is set, and its value: what is certainly not set compares to nothing."""
        from npuprof.catalog.written_condition import find_key

        key, _ = find_key(path)
        if path == ("scenario",):
            return self.lookup_operand(path, None)
        if key in self.maybe:
            return None, None
        if key in self.settings:
            return (True, None) if self.found[key].reason else super().look_up_written(path)
        known = self.closed and "." not in key and self.surface not in _PARTIAL_SURFACES
        return (False, NOTHING) if known else (None, None)

    def lookup_operand(self, path: tuple[str, ...], family: str | None) -> tuple[bool | None, Any]:
        """Return whether what a condition names is set, and its value; None is "cannot be known"."""
        head = path[0]
        if head == "scenario" and self.scenario is None:
            return None, _SomeOnlineScenario() if self.surface in _ONLINE_SURFACES else None
        if head in ("product", "scenario"):
            return super().lookup_operand(path, family)
        key = f"{head}.{path[1]}" if head in ("env", "estimator", "atc") else head
        if key in self.maybe:
            return None, None
        if key in self.found and self.found[key].reason:
            return True, None
        if key in self.settings:
            return super().lookup_operand(path, family)
        if head in ("env", "estimator", "atc") or not self.closed:
            return None, None
        if self.surface == "run_config" and head in catalog.estimator_defaults():
            return True, catalog.estimator_defaults()[head]
        if self.surface in _PARTIAL_SURFACES and (option := catalog.find_option(head)) and self.surface not in option.spelling:
            return None, None  # said elsewhere, if at all
        return super().lookup_operand(path, family)


def _read_value(one: FoundSetting) -> Any:
    """Return what the rules see of a setting: what its file holds, where that has been read."""
    return UNDECIDED if one.reason else one.value if one.content is None else one.content


def build_script_views(name: str, found: list[FoundSetting], site: Site | None, asked: Context) -> list[ScriptView]:
    """Return one view for each way the branches around one configuration can go, ``MOST_WAYS`` at most."""
    base = site.branches if site else ()
    live = [one for one in found if one.key and not one.dead and not one.commented]
    surface = site.surface if site else live[0].surface if live else ""
    places = list({one.branches: None for one in live})
    numbers = {place: number for number, place in enumerate(places)}
    steps = [(numbers[one.branches], one) for one in live]
    touched: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        for branch in place:
            touched.setdefault(branch[0], []).append(number)
    usual = [_SURE if place == base[: len(place)] else _MAYBE for place in places]  # where an arm does not touch them
    result = []
    for arm in list_ways(live, site)[:MOST_WAYS]:
        kinds = [*usual]
        for number in {number for branch in arm for number in touched.get(branch[0], ())}:
            if usual[number] != _SURE:
                kinds[number] = _judge_place(places[number], arm)
        sure: dict[str, FoundSetting] = {}
        maybe: dict[str, FoundSetting] = {}
        for number, one in steps:
            if one.reason == UNSET:
                maybe[one.key] = one
            elif kinds[number] == _SURE:
                maybe.pop(one.key, None)
                sure[one.key] = one
            elif kinds[number] == _MAYBE:
                maybe[one.key] = one
        result.append(ScriptView(name, sure, maybe, asked, surface, bool(site and site.closed)))
    return result


def place_under_functions(found: Iterable[FoundSetting]) -> list[FoundSetting]:
    """Return settings of a whole process as ones that count where their functions are called: which ones one run calls nobody can tell."""
    result = list(found)
    functions = {name: -1 - number for number, name in enumerate(dict.fromkeys(one.function for one in result if one.function))}
    return [
        one._replace(branches=((functions[one.function], 0, f"{one.function}() is called"), *one.branches)) if one.function else one
        for one in result
    ]


def list_ways(found: list[FoundSetting], site: Site | None) -> list[tuple[Branch, ...]]:
    """Return the ways the branches around some settings of one configuration can go, the shortest first."""
    arms = {one.branches for one in found if one.key and not one.dead and not one.commented} | {site.branches if site else ()}
    return sorted(arms, key=lambda branches: (len(branches), str(branches)))


def _judge_place(place: tuple[Branch, ...], arm: tuple[Branch, ...]) -> int:
    """Return whether what stands in a place counts where an arm is taken: surely, maybe or never."""
    if place == arm[: len(place)]:
        return _SURE
    return _NEVER if are_exclusive(place, arm) else _MAYBE


def are_exclusive(one: tuple[Branch, ...], other: tuple[Branch, ...]) -> bool:
    """Return whether two places can never run together: other arms of one ``if``."""
    arms = {branch[0]: branch[1] for branch in other}
    return any(arms.get(branch[0], branch[1]) != branch[1] for branch in one)
