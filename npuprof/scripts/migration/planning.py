"""Which steps are due for the settings of a script, and which of them lose nothing; the rest are findings at their lines."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog import condition
from npuprof.document.keys import format_short_value
from npuprof.edit.migration import list_changed_defaults
from npuprof.edit.migration_steps import UNSET_VALUES, Step, load_migration_steps
from npuprof.model import Finding, Place, Record
from npuprof.scripts.configurations import Layout
from npuprof.scripts.reading.found import UNSET, FoundSetting, ImportedFile, Site

#: Where the adapter's options are set, each of which has a default.
_ONLINE = ("session", "run_config", "global_options")
_SCENARIOS = {0: "online-inference", 1: "training"}
_HINTS = {"rename": "write it by hand", "modes": "write the file of modes, and name it in op_precision_mode", "drop": "take it out by hand"}


class DueStep(Record):
    """A step that loses nothing, for one setting: the value that takes the place of the old one, if any."""

    setting: FoundSetting
    step: Step
    value: Any = None

    @property
    def key(self) -> str:
        """The key that the setting has afterwards."""
        return self.step.to if self.step.action == "rename" else self.setting.key

    def build_finding(self, hindrance: str) -> Finding:
        """Return what there is to say where the step is not made."""
        one, step = self.setting, self.step
        to = f" to {step.to}" if step.to else ""
        what = f"{step.rule}: {one.key}{f' = {format_short_value(one.value)}' if not one.reason else ''} is not moved{to}: {hindrance}"
        hint = step.decide or _HINTS.get(step.action, "change it by hand")
        return Finding("NP511", what, step.why, hint, key=one.key, where=Place(one.file, one.line, one.column))


class Plan(Record):
    """The steps to make, in the order of the script, and what is left to decide."""

    due: list[DueStep]
    findings: list[Finding]


class _Group:
    """The settings of one configuration, as far as they run at all."""

    def __init__(self, found: list[FoundSetting], site: Site | None) -> None:
        self.found = found
        self.surface = found[0].surface
        self._known: dict[str, tuple[bool | None, Any]] = {}
        self.by_key: dict[str, list[FoundSetting]] = {}
        for one in found:
            self.by_key.setdefault(one.key, []).append(one)
        self.base = site.branches if site else ()
        # NPURunConfig shows all that it is given, unless a star hides it
        self.closed = "" not in self.by_key and (self.surface == "run_config" or bool(site and site.closed))
        self.whole = _Whole([self])

    @property
    def scenario(self) -> str:
        """The scenario, empty where the settings do not tell."""
        if self.surface == "atc":
            return "offline-inference"
        known, value = self.look_up("graph_run_mode")
        return _SCENARIOS.get(value, "") if known and any(self.by_key.get("graph_run_mode", ())) else ""

    def look_up(self, name: str) -> tuple[bool | None, Any]:
        """Return whether an option is set, None where that is not certain, and its value where that is known."""
        if name not in self._known:
            self._known[name] = self._find_state(name)
        return self._known[name]

    def _find_state(self, name: str) -> tuple[bool | None, Any]:
        ones = [one for one in self.by_key.get(name, ()) if one.reason != UNSET]
        if not ones:
            return self.whole.find_state(name)
        return self.judge_given(ones)

    def find_unset_state(self, name: str) -> tuple[bool | None, Any]:
        """Return the state of an option that nothing sets here."""
        if not self.closed or name in self.by_key:
            return None, None
        sent = catalog.estimator_defaults() if self.surface == "run_config" else {}
        return (True, sent[name]) if name in sent else (False, UNSET_VALUES.get(name))

    def judge_given(self, ones: list[FoundSetting]) -> tuple[bool | None, Any]:
        """Return the state of an option that these settings are about."""
        sure = any(one.branches == self.base[: len(one.branches)] for one in ones)
        return sure or None, ones[0].value if sure and len(ones) == 1 and not ones[0].reason else None

    def judge(self, step: Step, one: FoundSetting, certain: bool) -> bool | None:
        """Return whether a step is due for a setting; what nobody can tell is taken for unset where it need not be ``certain``."""

        def look_up(path: tuple[str, ...]) -> tuple[bool | None, Any]:
            if path[0] == one.key:
                return True, None if one.reason else one.value
            known, value = self.look_up(path[0])
            return (known, value) if known is not None or certain else (False, None)

        return condition.evaluate_condition(step.when, look_up)


class _Whole:
    """What is in force together: an NPURunConfig, the session config that it is given, parts of the two."""

    def __init__(self, groups: Sequence[_Group]) -> None:
        self._homes: dict[str, _Group] = {}
        for group in groups:
            for key, ones in group.by_key.items():
                if any(one.reason != UNSET for one in ones):
                    self._homes.setdefault(key, group)
        self._open = next((group for group in groups if not group.closed), None)
        self._main = next((group for group in groups if group.surface == "run_config"), groups[0])

    def find_state(self, name: str) -> tuple[bool | None, Any]:
        """Return the state of an option that the group which asks does not set."""
        home = self._homes.get(name)
        if home is not None:
            return home.judge_given([one for one in home.by_key[name] if one.reason != UNSET])
        return (self._open or self._main).find_unset_state(name)


def plan_script(imported: ImportedFile, release: str, find_use: Callable[[str], int], blocks: Sequence[tuple[int, int, str]] = ()) -> Plan:
    """Return what a release asks of a script.

    ``find_use`` gives the line in which else a script uses the name of an option, or may do so, 0 for none; ``blocks`` are lines that
    a preset writes, with its spec.
    """
    plan = Plan([], [])
    steps = load_migration_steps(release)
    sites = {site.scope: site for site in imported.sites}
    found: dict[str, list[FoundSetting]] = {}
    for one in imported.found:
        if not one.commented and not one.dead and one.surface != "env":
            found.setdefault(one.scope, []).append(one)
    groups = {scope: _Group(ones, sites.get(scope)) for scope, ones in found.items()}
    homes = find_homes(imported)
    clusters: dict[str, list[_Group]] = {}
    for scope, group in groups.items():
        clusters.setdefault(homes.get(scope, scope), []).append(group)
    for together in clusters.values():
        whole = _Whole(together)
        for group in together:
            group.whole = whole
        _plan_groups(together, steps, find_use, blocks, plan)
    plan.due.sort(key=lambda due: (due.setting.line, due.setting.column))
    return plan


def find_homes(imported: ImportedFile) -> dict[str, str]:
    """Return which configuration each scope of a script belongs to, where several are one: given to each other, or laid on each other."""
    layout = Layout(imported)
    homes: dict[str, str] = {}

    def find_root(scope: str) -> str:
        passed = []
        while (above := homes.get(scope, scope)) != scope:
            passed.append(scope)
            scope = above
        homes.update(dict.fromkeys(passed, scope))  # else the way would be as long as there are scopes
        return scope

    pairs = [(whole, session.scope) for whole, session in layout.find_given_sessions().items()]
    pairs += [(home.scope, group.scope) for group in layout.groups if (home := layout.find_home(group)) is not None]
    for one, other in pairs:
        if (root := find_root(one)) != (top := find_root(other)):
            homes[top] = root
    return {scope: find_root(scope) for scope in [*homes]}


def _plan_groups(
    groups: list[_Group], steps: list[Step], find_use: Callable[[str], int], blocks: Sequence[tuple[int, int, str]], plan: Plan
) -> None:
    """Plan the steps of groups that are in force together: a name changes in all of them, or in none."""
    held = {key for group in groups for key in group.by_key}
    computed = min((one.line for group in groups for one in group.by_key.get("", ())), default=0)
    for option in dict.fromkeys(step.option for step in steps if step.option in held):
        ways = [step for step in steps if step.option == option]
        given = [(group, one) for group in groups for one in group.by_key.get(option, ()) if one.reason != UNSET]
        planned = [found for group, one in given if (found := _plan_setting(group, ways, one, plan))]
        ones = [one for _, one in given]
        block = next((name for one in ones if (name := _find_block(blocks, one.line))), "")
        hindrance = f"the block belongs to the preset {block}; migrate that, and inject it again" if block else ""
        renamed = {due.step.to for due in planned if due.step.action == "rename"}
        if not hindrance and renamed:
            hindrance = _find_hindrance(option, ones, planned, renamed, find_use)
            if not hindrance and computed:
                hindrance = f"line {computed} sets a key that only a run tells, which may be {option} too"
        if hindrance:
            plan.findings.extend(due.build_finding(hindrance) for due in planned)
        else:
            plan.due.extend(planned)


def _find_block(blocks: Sequence[tuple[int, int, str]], line: int) -> str:
    """Return the spec of the block in which a line stands, empty where it stands in none; blocks are in the order of the file."""
    place = bisect_right(blocks, (line, sys.maxsize, "")) - 1
    return blocks[place][2] if place >= 0 and line <= blocks[place][1] else ""


def _plan_setting(group: _Group, ways: list[Step], one: FoundSetting, plan: Plan) -> DueStep | None:
    """Return the step that can be made for a setting; what can not goes to the findings of the plan."""
    place = Place(one.file, one.line, one.column)
    for step in ways:
        due = group.judge(step, one, certain=True)
        if due is None and not one.reason and step.action != "tell" and group.judge(step, one, certain=False):
            others = [name for (name, *_) in condition.collect_condition_paths(step.when) if name != one.key]
            plan.findings.append(DueStep(one, step).build_finding(f"the script does not show whether {' or '.join(others)} is set as well"))
            return None
        if not due:
            continue
        if step.loss == "decide" or step.action == "tell" or (step.scenarios and group.scenario not in step.scenarios):
            severity = "info" if step.rule == "M19" else "warning"
            what = f"{step.rule}: {one.key} needs a decision"
            plan.findings.append(Finding("NP511", what, step.why, step.decide, key=one.key, where=place, severity=severity))
            return None
        if step.action == "modes":
            plan.findings.append(DueStep(one, step).build_finding("it takes a file, which stands beside the script"))
            return None
        known = dict(step.values)
        mark = str(one.value).lower() if isinstance(one.value, bool) else str(one.value)
        if step.action == "drop" or (not one.reason and mark in known):
            return DueStep(one, step, known.get(mark))
    if one.reason and any(step.values for step in ways):
        what = f"{one.key} {one.reason}: what it is given there may have another name by now"
        moved = ", ".join(str(value) for step in ways for value, _ in step.values)
        to = next((step.to for step in ways if step.to), one.key)
        hint = f"where it is given one of {moved}, write what {to} has for it"
        plan.findings.append(Finding("NP511", what, "Only a run tells the value.", hint, key=one.key, where=place, severity="info"))
    return None


def _find_hindrance(
    option: str, ones: list[FoundSetting], planned: list[DueStep], renamed: set[str], find_use: Callable[[str], int]
) -> str:
    """Return why an option keeps its name in a configuration: it gets the new one everywhere, or nowhere."""
    to = ", ".join(sorted(renamed))
    moved = {id(due.setting) for due in planned}
    left = next((one for one in ones if id(one) not in moved), None)
    if left is not None and left.reason:
        return f"line {left.line} sets {option} too, to what a run decides"
    if left is not None:
        return f"line {left.line} sets {option} to {format_short_value(left.value)}, for which {to} has no word"
    line = find_use(option)
    return f"line {line} uses the name {option} for something else" if line else ""


def check_changed_defaults(imported: ImportedFile, since: str, release: str) -> list[Finding]:
    """Return the defaults that changed between two releases, of options that a script does not set: once for the file."""
    places = [(site.line, site.column) for site in imported.sites if site.surface in _ONLINE]
    places = places or [(one.line, one.column) for one in imported.found if one.surface in _ONLINE and not one.commented]
    if not since or not places:
        return []
    held = {one.key for one in imported.found if not one.commented and not one.dead}
    place = Place(imported.file, *min(places))
    surfaces = {site.surface for site in imported.sites} | {one.surface for one in imported.found if not one.commented}
    rows = [row for row in list_changed_defaults(since, release, surfaces) if row.option not in held and row.unless not in held]
    return [row.build_finding()._replace(where=place) for row in rows]
