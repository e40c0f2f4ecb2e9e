"""Migration of a preset's text to another release, by the steps of ``catalog/releases.toml``.

Text in, text and findings out. A lossless step is applied if its condition is certain for the
file's own values. Steps that concern inherited values or need a decision become findings, and so do
team rules that read a migrated key.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from copy import deepcopy

from npuprof import catalog, edit
from npuprof.catalog import (
    build_finding,
    condition,
    load_built_part,
    releases,
    values,
    written_condition,
)
from npuprof.checks.changed_defaults import OMITTED
from npuprof.document.keys import format_plain_value, format_short_value
from npuprof.document.policy import Policy, TeamRule, is_name_meant
from npuprof.document.profile import Profile
from npuprof.edit.families import Plan, list_mentions, plan_renames
from npuprof.edit.fixing import find_respellings
from npuprof.edit.migration_steps import (
    MadeStep,
    Step,
    build_setting_lookup,
    is_step_certain,
    is_step_due,
    load_migration_steps,
)
from npuprof.edit.moves import Upgrade, fit_range, list_blocks, plan_moves
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.model import Finding, Path, Record, TomlTable
from npuprof.resolve.config import Config


class CarriedName(Record):
    """A parent's renamed key in a preset's ``unset`` or ``locked`` list, with its new name."""

    step: Step
    path: Path

    def __str__(self) -> str:
        where = self.path[-2]
        if self.path[0] == "override":
            where = f"{where} of override {self.path[1] + 1}"
        return f"{where} names {self.step.to} in place of {self.step.option}"


class Migration(Record):
    """A migrated text: its steps, the renamed list entries, and the remaining decisions."""

    text: str
    made: tuple[MadeStep, ...]
    findings: tuple[Finding, ...]
    carried: tuple[CarriedName, ...]


def migrate_profile(
    profile: Profile, config: Config, was: Config, upgrade: Upgrade, plan: Plan | None = None
) -> Migration:
    """Return the text of a profile migrated to the releases of an upgrade.

    ``config`` is the profile resolved, and ``was`` the same before its parents were migrated.
    ``plan`` lists the keys that are renamed in all related presets; without it, the profile is
    migrated alone. Raises NpuprofError.
    """
    data = profile.document.data
    release = upgrade.releases.get(releases.CANN, "")
    steps = load_migration_steps(release)
    if plan is None:
        plan = plan_renames([config], steps, lambda member: member.document is profile.document)
    hindrances = plan.get(profile.key, {})
    made = []
    changes = []
    findings = []
    renamed_keys = set()  # a later step must not apply to the old key
    for step in steps:
        for base in list_blocks(data):
            path = (*base, "options", step.option)
            table = find_at_path(data, path[:-1])
            if (
                not isinstance(table, dict)
                or step.option not in table
                or path in renamed_keys
                or not is_step_due(step, table, config)
            ):
                continue
            step_changes = None
            hindrance = ""
            if is_step_certain(step, config, base, data) and not upgrade.widen:
                hindrance = hindrances.get(step.option, "") if step.to else ""
                step_changes = None if hindrance else _find_step_changes(step, path, table)
            if step_changes is None:
                findings.append(_build_decision_finding(step, profile, path, hindrance))
                continue
            changes += step_changes
            value = step_changes[0].value
            after = None if value is MISSING else value
            made.append(MadeStep(step, path, table[step.option], after))
            if step.to:
                renamed_keys.add(path)
        findings += _check_inherited_value(step, profile, config)
    movable = {
        option for option, hindrance in hindrances.items() if not (hindrance or upgrade.widen)
    }
    carried, list_changes = _carry_names(profile, steps, movable)
    changes += list_changes
    if release:
        findings += check_changed_defaults(config, release, upgrade.since.get(releases.CANN, ""))
        # the new range has no release that lacks a renamed option
        changes += fit_range(
            profile,
            releases.CANN,
            upgrade,
            lambda _, within: any(_is_option_missing(change.step.to, within) for change in made),
        )
    moves = plan_moves(profile, config, was, upgrade)
    made += moves.made
    findings += moves.findings
    changes += moves.changes
    changes += find_respellings(profile, deepcopy(data))
    text = edit.apply_changes(profile.document.text, changes)
    return Migration(text, tuple(made), tuple(findings), tuple(carried))


def _find_step_changes(step: Step, path: Path, table: TomlTable) -> list[PathChange] | None:
    """Return one step as changes, the replacement first; None if the step is impossible."""
    if step.action == "drop":
        return [PathChange(path, MISSING)]
    if step.action == "modes":
        return _find_mode_changes(step, path, table)
    new_values = dict(step.values)
    old = format_plain_value(table[step.option])
    if old not in new_values:
        return None
    return [PathChange(path, new_values[old], step.to if step.action == "rename" else "")]


def _find_mode_changes(step: Step, path: Path, table: TomlTable) -> list[PathChange] | None:
    """Return the changes that join a mode and its list of operators into one option."""
    listed = values.parse_structured_value(
        "optypelist_for_implmode", table.get("optypelist_for_implmode")
    )
    # the option takes a text with commas, too
    if isinstance(listed, str):
        listed = [name.strip() for name in listed.split(",")]
    if not isinstance(listed, list) or not listed:
        return None  # the other half is inherited
    new = {"ByOpType": dict.fromkeys(map(str, listed), table[step.option])}
    return [
        PathChange(path, new, step.to),
        PathChange((*path[:-1], "optypelist_for_implmode"), MISSING),
    ]


def _build_decision_finding(step: Step, profile: Profile, path: Path, hindrance: str) -> Finding:
    what = f"{step.rule}: {step.option} needs a decision"
    why = step.why
    hint = step.decide
    if hindrance:
        what = f"{step.rule}: {step.option} is not turned into {step.to}: {hindrance}"
        why = "Done in part, it would leave the old key and the new one side by side."
        hint = "clear that away and migrate again"
    return Finding(
        "NP511",
        what,
        why,
        hint,
        profile.origin(*path),
        step.option,
        (profile.name,),
        severity="info" if step.rule == "M19" else "warning",
    )


def _check_inherited_value(step: Step, profile: Profile, config: Config) -> list[Finding]:
    """Return the finding for a step that concerns a parent's value."""
    if (
        # an own value was migrated above
        step.option in profile.document.data.get("options", {})
        or step.option not in config.settings
        or condition.evaluate_condition(step.when, build_setting_lookup({}, config)) is not True
    ):
        return []
    origin = config.origin(step.option)
    if origin is None or origin.document is profile.document:
        return []
    what = (
        f"{step.rule}: {step.option} = "
        f"{format_short_value(config.settings[step.option])} comes from {origin.profile}"
    )
    hint = f"npuprof migrate {origin.profile} --cann ..., or decide here: {step.decide}"
    return [build_finding("NP513", what, step.why, hint, origin, step.option, (profile.name,))]


def check_dependents(
    made: tuple[MadeStep, ...], dependents: list[Profile], flags: str
) -> list[Finding]:
    """Return the places where dependents of the migrated preset still use a renamed key."""
    renames = {change.step.option: change.step for change in made if change.step.to}
    why = "It overrode, cleared or locked the value of this preset; now both keys are set."
    hint = f"npuprof migrate --all {flags} carries it over"
    return [
        build_finding(
            "NP513",
            f"{step.rule}: {child.name} names {option}, and inherits {step.to} now",
            why,
            hint,
            child.origin(*mention.path),
            option,
            (child.name,),
        )
        for child in dependents
        for option, step in renames.items()
        for mention in list_mentions(child, option)
    ]


def _carry_names(
    profile: Profile, steps: list[Step], options: set[str]
) -> tuple[list[CarriedName], list[PathChange]]:
    """Return the list entries that follow renamed options of related presets, and the changes."""
    renames = {
        step.option: step
        for step in reversed(steps)  # the first step of an option counts
        if step.option in options and step.action == "rename"
    }
    carried = [
        CarriedName(step, mention.path)
        for option, step in renames.items()
        for mention in list_mentions(profile, option)
        if mention.kind in ("unset", "locked")
    ]
    lists: dict[Path, list[str]] = {}
    for name in carried:
        *list_path, index = name.path
        path = tuple(list_path)
        lists.setdefault(path, [*find_at_path(profile.document.data, path)])[index] = name.step.to
    return carried, [PathChange(path, list(dict.fromkeys(names))) for path, names in lists.items()]


class ChangedDefault(Record):
    """A default that changed in a release; ``unless`` is an option that makes it irrelevant.

    ``surface`` is the affected surface, empty if all are.
    """

    option: str
    unless: str
    since: str
    before: str
    after: str
    surface: str = ""

    def build_finding(self) -> Finding:
        """Return the finding for a preset that does not set the option."""
        what = (
            f"{self.option} is not set, and its default changed in CANN {self.since}: "
            f"{self.before}, then {self.after}"
        )
        hint = f"set {self.option} if the old behaviour matters"
        return build_finding("NP512", what, OMITTED, hint, key=self.option)


def list_changed_defaults(
    before: str, release: str, surfaces: Container[str] | None = None
) -> list[ChangedDefault]:
    """Return the defaults that changed between two releases, in catalogue order.

    ``surfaces`` are the surfaces in use, None if unknown.
    """
    first = releases.release_index(before)
    now = releases.release_index(release)
    return [
        row
        for row in (
            ChangedDefault(**fields) for fields in load_built_part("migrations")["defaults"]
        )
        if (surfaces is None or not row.surface or row.surface in surfaces)
        and first < releases.release_index(row.since) <= now
    ]


def check_changed_defaults(config: Config, release: str, since: str = "") -> list[Finding]:
    """Return the defaults that changed between a preset's oldest release and the requested one."""
    oldest = since
    if config.cann:
        within = releases.find_releases_in_range(config.cann)
        oldest = within[0] if within else ""
    if not oldest:
        return []
    origin = config.find_profile_origin("cann") or config.profile.origin()
    return [
        row.build_finding()._replace(origin=origin, profiles=(config.name,))
        for row in list_changed_defaults(oldest, release)
        if row.option not in config.settings and row.unless not in config.settings
    ]


def _is_option_missing(name: str, within: Iterable[str]) -> bool:
    """Return whether one of some releases lacks an option of the catalogue."""
    option = catalog.find_option(name)
    return option is not None and any(
        option.states[releases.release_index(release)] == "." for release in within
    )


_WHY = (
    "A rule on a key that its presets do not set any more is broken in all of them, or binds "
    "none, and says nothing of it."
)


def check_rules(policy: Policy | None, made: Mapping[str, Iterable[MadeStep]]) -> list[Finding]:
    """Return what to change in team rules that cover migrated presets and read a migrated key.

    ``made`` is by preset name.
    """
    findings = []
    for rule in policy.rules if policy else ():
        due = {
            change.step.option: change.step
            for name, changes in made.items()
            if is_name_meant(rule.presets, name)
            for change in changes
        }
        findings += [
            _build_rule_finding(rule, due[option])
            for option in written_condition.list_team_reads(rule)
            if option in due
        ]
    return findings


def _build_rule_finding(rule: TeamRule, step: Step) -> Finding:
    hint = f"write {step.to or step.option} in the rule"
    if step.to:
        now = f"which is {step.to} now"
    elif step.action == "drop":
        now = "which is not set any more"
        hint = f"take {step.option} out of the rule"
    else:
        now = "whose values are others now"
    paths = condition.collect_condition_paths(rule.when[1]) if rule.when else ()
    field = "when" if step.option in map(".".join, paths) else "require"
    origin = rule.origin.locate_below(field)
    return build_finding(
        "NP511", f"rule {rule.code} reads {step.option}, {now}", _WHY, hint, origin, step.option
    )
