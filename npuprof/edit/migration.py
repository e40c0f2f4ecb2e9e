"""Migration of a preset's text to another release: applies the lossless steps of
``catalog/releases.toml``.

Text in, text and findings out. A step is applied if its condition is certain for the file's own
values. Steps that concern inherited values or need a decision become findings, and so do team rules
that read a migrated key.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from npuprof import catalog, edit
from npuprof.catalog import (
    build_finding,
    condition,
    load_built_part,
    releases,
    values,
    written_condition,
)
from npuprof.document.keys import format_plain_value, format_short_value
from npuprof.document.policy import Policy, TeamRule, is_name_meant
from npuprof.document.profile import Profile
from npuprof.edit.families import Plan, list_mentions, plan_renames
from npuprof.edit.migration_steps import (
    Step,
    build_setting_lookup,
    is_step_certain,
    is_step_due,
    load_migration_steps,
)
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.model import Finding, Origin, Path, Record
from npuprof.resolve.config import Config


class MadeStep(Record):
    """An applied step: its rule, the path of the old value, and the new value (None if
    there is none).
    """

    step: Step
    path: Path
    before: Any
    after: Any

    def __str__(self) -> str:
        old = f"{self.path[-1]} = {format_short_value(self.before)}"
        if self.step.action == "drop":
            return f"{self.step.rule}: {old} is taken out"
        return (
            f"{self.step.rule}: {old} becomes {self.step.to or self.step.option} = "
            f"{format_short_value(self.after)}"
        )


class CarriedName(Record):
    """A parent's renamed key in a preset's ``unset`` or ``locked`` list, updated to the
    new name.
    """

    step: Step
    path: Path

    def __str__(self) -> str:
        where = (
            f"{self.path[-2]} of override {self.path[1] + 1}"
            if self.path[0] == "override"
            else self.path[-2]
        )
        return f"{where} names {self.step.to} in place of {self.step.option}"


class Migration(Record):
    """The result of a migration: the new text, its steps, the renamed list entries, and the
    remaining decisions.
    """

    text: str
    made: tuple[MadeStep, ...] = ()
    findings: tuple[Finding, ...] = ()
    carried: tuple[CarriedName, ...] = ()


def migrate_profile(
    profile: Profile, config: Config, release: str, since: str = "", plan: Plan | None = None
) -> Migration:
    """Return the text of a profile migrated to a release.

    ``config`` is the profile resolved; ``since`` is its release if it sets none.

    ``plan`` lists the keys that are renamed in all related presets; without it, the profile is
    migrated alone. Raises NpuprofError.
    """
    made = []
    changes = []
    findings = []
    gone: set[tuple[Path, str]] = set()
    data = profile.document.data
    bases: list[Path] = [
        (),
        *((("override", number)) for number in range(len(data.get("override", [])))),
    ]
    steps = load_migration_steps(release)
    if plan is None:
        plan = plan_renames([config], steps, lambda member: member.document is profile.document)
    hindrances = plan.get(profile.key, {})
    for step in steps:
        for base in bases:
            table = find_at_path(data, (*base, "options"))
            if (
                not isinstance(table, dict)
                or step.option not in table
                or (base, step.option) in gone
            ):
                continue
            if not is_step_due(step, table, config):
                continue
            path: Path = (*base, "options", step.option)
            done, stopped = None, ""
            if is_step_certain(step, config, base, data):
                stopped = hindrances.get(step.option, "") if step.to else ""
                done = None if stopped else _find_step_changes(step, path, table)
            if done is None:
                findings.append(
                    _build_decision_finding(step, profile.origin(*path), profile.name, stopped)
                )
            else:
                changes += done
                made.append(
                    MadeStep(
                        step,
                        path,
                        table[step.option],
                        None if done[0].value is MISSING else done[0].value,
                    )
                )
                gone |= {(base, step.option)} if step.to else set()
        findings += _check_inherited_value(step, profile, config)
    carried, renamed = _carry_names(
        profile, steps, {option for option, hindrance in hindrances.items() if not hindrance}
    )
    changes += renamed
    findings += check_changed_defaults(config, release, since)
    changes += _find_range_change(profile, release, made)
    return Migration(
        edit.apply_changes(profile.document.text, changes),
        tuple(made),
        tuple(findings),
        tuple(carried),
    )


def _find_step_changes(step: Step, path: Path, table: dict[str, Any]) -> list[PathChange] | None:
    """Return one step as changes, the replacement first; None if the step is impossible."""
    old = table[step.option]
    if step.action == "drop":
        return [PathChange(path, MISSING)]
    if step.action == "modes":
        return _find_mode_changes(step, path, table)
    known = dict(step.values)
    mark = format_plain_value(old)
    return (
        [PathChange(path, known[mark], step.to if step.action == "rename" else "")]
        if mark in known
        else None
    )


def _find_mode_changes(step: Step, path: Path, table: dict[str, Any]) -> list[PathChange] | None:
    listed = values.parse_structured_value(
        "optypelist_for_implmode", table.get("optypelist_for_implmode")
    )
    if isinstance(listed, str):
        listed = [name.strip() for name in listed.split(",")]
    if not isinstance(listed, list) or not listed:
        return None  # the other half is inherited
    new = {"ByOpType": dict.fromkeys(map(str, listed), table[step.option])}
    return [
        PathChange(path, new, step.to),
        PathChange((*path[:-1], "optypelist_for_implmode"), MISSING),
    ]


def _build_decision_finding(
    step: Step, origin: Origin | None, name: str, hindrance: str = ""
) -> Finding:
    what = f"{step.rule}: {step.option} needs a decision"
    why, hint, severity = step.why, step.decide, "info" if step.rule == "M19" else "warning"
    if hindrance:
        what = f"{step.rule}: {step.option} is not turned into {step.to}: {hindrance}"
        why, hint = (
            "Done in part, it would leave the old key and the new one side by side.",
            "clear that away and migrate again",
        )
    return Finding("NP511", what, why, hint, origin, step.option, (name,), severity=severity)


def _check_inherited_value(step: Step, profile: Profile, config: Config) -> list[Finding]:
    """Return the finding for a step that concerns a parent's value."""
    own = step.option in profile.document.data.get("options", {})
    if own or step.option not in config.settings:
        return []
    if condition.evaluate_condition(step.when, build_setting_lookup({}, config)) is not True:
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


def check_heirs(made: tuple[MadeStep, ...], heirs: list[Profile], release: str) -> list[Finding]:
    """Return the places where dependents of the migrated preset still use a renamed key."""
    findings = []
    steps = {change.step.option: change.step for change in made if change.step.to}
    for heir in heirs:
        for step in steps.values():
            for mention in list_mentions(heir, step.option):
                what = f"{step.rule}: {heir.name} names {step.option}, and inherits {step.to} now"
                why = (
                    "It overrode, cleared or locked the value "
                    "of this preset; now both keys are set."
                )
                hint = f"npuprof migrate --all --cann {release} carries it over"
                findings.append(
                    build_finding(
                        "NP513",
                        what,
                        why,
                        hint,
                        heir.origin(*mention.path),
                        step.option,
                        (heir.name,),
                    )
                )
    return findings


def _carry_names(
    profile: Profile, steps: list[Step], options: set[str]
) -> tuple[list[CarriedName], list[PathChange]]:
    """Return the list entries that follow renamed options of related presets, and the changes."""
    carried: list[CarriedName] = []
    lists: dict[Path, list[str]] = {}
    ways = {
        step.option: step
        for step in reversed(steps)
        if step.option in options and step.action == "rename"
    }
    for option, step in ways.items():
        for mention in list_mentions(profile, option):
            if mention.kind not in ("unset", "locked"):
                continue
            names = lists.setdefault(
                mention.path[:-1], list(find_at_path(profile.document.data, mention.path[:-1]))
            )
            names[mention.path[-1]] = step.to
            carried.append(CarriedName(step, mention.path))
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
        return build_finding(
            "NP512",
            what,
            "Omitting it now means something else.",
            f"set {self.option} if the old behaviour matters",
            key=self.option,
        )


def list_changed_defaults(
    before: str, release: str, surfaces: Container[str] | None = None
) -> list[ChangedDefault]:
    """Return the defaults that changed between two releases, in catalogue order.

    ``surfaces`` are the surfaces in use, None if unknown.
    """
    first, now = releases.release_index(before), releases.release_index(release)
    rows = [ChangedDefault(**row) for row in load_built_part("migrations")["defaults"]]
    rows = [row for row in rows if surfaces is None or not row.surface or row.surface in surfaces]
    return [row for row in rows if first < releases.release_index(row.since) <= now]


def check_changed_defaults(config: Config, release: str, since: str = "") -> list[Finding]:
    """Return the defaults that changed between the oldest release of a preset and the
    requested one.
    """
    within = (
        releases.find_releases_in_range(config.cann) if config.cann else (since,) if since else None
    )
    if not within:
        return []
    origin = config.find_profile_origin("cann") or config.lineage[-1].origin()
    return [
        row.build_finding()._replace(origin=origin, profiles=(config.name,))
        for row in list_changed_defaults(within[0], release)
        if row.option not in config.settings and row.unless not in config.settings
    ]


def _find_range_change(profile: Profile, release: str, made: list[MadeStep]) -> list[PathChange]:
    """Return the change that makes ``cann`` include the release, and no release that lacks the
    current settings.
    """
    spec = profile.table.get("cann")
    within = releases.find_releases_in_range(spec) if spec else None
    if not spec or within is None:
        return []
    came = [
        option
        for name in {change.step.to for change in made}
        if (option := catalog.find_option(name)) is not None
    ]
    unknown = any(
        option.states[releases.release_index(name)] == "." for option in came for name in within
    )
    if release in within and not unknown:
        return []
    upper = [clause.strip() for clause in spec.split(",") if clause.strip().startswith("<")]
    remaining = [
        clause for clause in upper if release in (releases.find_releases_in_range(clause) or ())
    ]
    return [PathChange(profile.locate_range("cann"), ",".join([f">={release}", *remaining]))]


_WHY = (
    "A rule on a key that its presets do not set any more is broken in all of them, or binds "
    "none, and says nothing of it."
)


def check_rules(policy: Policy | None, made: Mapping[str, Iterable[MadeStep]]) -> list[Finding]:
    """Return what to change in team rules that cover migrated presets and read a migrated key.

    ``made`` is by preset name.
    """
    findings: list[Finding] = []
    for rule in policy.rules if policy else ():
        due: dict[str, Step] = {}
        for name, changes in made.items():
            if is_name_meant(rule.presets, name):
                due |= {change.step.option: change.step for change in changes}
        findings += [
            _build_rule_finding(rule, due[option])
            for option in written_condition.list_team_reads(rule)
            if option in due
        ]
    return findings


def _build_rule_finding(rule: TeamRule, step: Step) -> Finding:
    now = (
        f"which is {step.to} now"
        if step.to
        else "which is not set any more"
        if step.action == "drop"
        else "whose values are others now"
    )
    hint = (
        f"take {step.option} out of the rule"
        if step.action == "drop"
        else f"write {step.to or step.option} in the rule"
    )
    in_when = rule.when is not None and step.option in map(
        ".".join, condition.collect_condition_paths(rule.when[1])
    )
    origin = (
        rule.origin._replace(path=(*rule.origin.path, "when" if in_when else "require"))
        if rule.origin
        else None
    )
    return build_finding(
        "NP511", f"rule {rule.code} reads {step.option}, {now}", _WHY, hint, origin, step.option
    )
