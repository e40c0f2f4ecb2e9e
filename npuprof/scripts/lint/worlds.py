"""What a script sets together: one view for the checks for each way its branches can go.

A rule may speak only where it is certain. Settings of other branches may or may not be there, values may depend
on the run, and a configuration that comes from elsewhere may hold more than the script shows; all of that is
answered with "cannot be known".
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from npuprof import catalog
from npuprof.catalog import products
from npuprof.checks.view import Fault, Scope, View
from npuprof.model import Context, Finding, Origin, Place
from npuprof.scripts.reading.found import UNSET, Branch, FoundSetting, Site

#: The value of a setting that is there, while the run decides what it holds: equal to nothing.
UNDECIDED = object()

#: Where a script makes a session itself: training or inference, which of the two often nobody can tell, but never a conversion.
_ONLINE_SURFACES = ("session", "run_config", "global_options")

#: On these surfaces the rules of the session were not made for everything; these hold on all of them.
COMMON_RULES = {"NP301", "NP302", "NP303"}


class _SomeOnlineScenario:
    """The scenario of a script that makes a session: not offline; which of the others cannot be told, so comparing says nothing."""

    def __eq__(self, other: object) -> bool:
        if other == "offline-inference":
            return False
        raise TypeError

    __hash__ = None  # type: ignore[assignment]


class ScriptView(View):
    """A view of settings found in a script; see ``checks.view.View`` for what the checks ask of it."""

    def __init__(
        self, name: str, found: dict[str, FoundSetting], maybe: dict[str, FoundSetting], asked: Context, surface: str, closed: bool
    ) -> None:
        self.found = found
        self.maybe = maybe
        self.surface = surface
        self.closed = closed
        self.settings = {key: one.value if not one.reason else UNDECIDED for key, one in found.items()}
        self.asked = asked
        self.scenario = "online-inference" if self.settings.get("graph_run_mode") == 0 else None
        self.releases = (asked.cann,) if asked.cann else ()
        self.families = (products.find_product_family(products.find_product(asked.product) or asked.product),) if asked.product else ()
        self.scope = Scope(self.scenario, self.releases, self.families)
        self.memory = {}  # of its own: what is certain here depends on more than the values
        shape: Any = SimpleNamespace(abstract=False, name=name, lineage=(), cann=None, products=())
        self.config = shape

    def build_finding(self, fault: Fault, key: str, origin: Origin | None = None) -> Finding:
        """Return a fault as a finding at the place where the script sets the key."""
        one = self.found.get(key) or self.maybe.get(key) or next(iter(self.found.values()))
        message, why, hint = (text.replace("this preset", "this script").replace("a preset", "a script") for text in (
            fault.message, fault.why, fault.hint))  # fmt: skip
        return Finding(fault.code, message, why, hint, None, one.key, (), Place(one.file, one.line, one.column), severity=fault.severity)

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
        if self.surface == "run_config" and (option := catalog.find_option(head)) is not None and "run_config" not in option.spelling:
            return None, None
        return super().lookup_operand(path, family)


def build_script_views(name: str, found: list[FoundSetting], site: Site | None, asked: Context) -> list[ScriptView]:
    """Return one view for each way the branches around one configuration can go."""
    base = site.branches if site else ()
    live = [one for one in found if one.key and not one.dead and not one.commented]
    arms = {one.branches for one in live} | {base}
    surface = site.surface if site else live[0].surface if live else ""
    result = []
    for arm in sorted(arms, key=lambda branches: (len(branches), str(branches))):
        sure: dict[str, FoundSetting] = {}
        maybe: dict[str, FoundSetting] = {}
        for one in live:
            if one.reason == UNSET:
                maybe[one.key] = one
            elif _is_branch_within(one.branches, arm) or _is_branch_within(one.branches, base):
                maybe.pop(one.key, None)
                sure[one.key] = one
            elif not are_exclusive(one.branches, arm):
                maybe[one.key] = one
        result.append(ScriptView(name, sure, maybe, asked, surface, bool(site and site.closed)))
    return result


def _is_branch_within(branches: tuple[Branch, ...], arm: tuple[Branch, ...]) -> bool:
    return branches == arm[: len(branches)]


def are_exclusive(one: tuple[Branch, ...], other: tuple[Branch, ...]) -> bool:
    """Return whether two places can never run together: other arms of one ``if``."""
    arms = {branch[0]: branch[1] for branch in other}
    return any(arms.get(branch[0], branch[1]) != branch[1] for branch in one)
