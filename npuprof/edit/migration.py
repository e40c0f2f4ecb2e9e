"""A preset's text moved to another release: the steps of ``catalog/releases.toml``, those that lose nothing made.

Text in, text and findings out. A step is made where its condition is certain for the file's own values; what is
inherited, or needs a decision, comes back as a finding.
"""

from __future__ import annotations

from typing import Any

from npuprof import edit
from npuprof.catalog import condition, load_built_part, releases, values
from npuprof.document.keys import format_short_value
from npuprof.document.profile import PROFILE_KEYS, Profile
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.model import Finding, Origin, Path, Record
from npuprof.resolve.config import Config

#: What conditions of steps take an option for that is not set.
UNSET_VALUES = {"iterations_per_loop": 1}


class Step(Record):
    """One row of the catalogue: a ``step`` of a release in ``catalog/releases.toml``."""

    rule: str
    option: str
    when: Any
    since: str
    loss: str
    action: str
    to: str
    values: tuple[tuple[str, Any], ...]
    scenarios: tuple[str, ...]
    why: str
    decide: str
    source: str


class MadeStep(Record):
    """A step that was made: its rule, the path of the old value, and what took its place (None: nothing)."""

    step: Step
    path: Path
    before: Any
    after: Any

    def __str__(self) -> str:
        old = f"{self.path[-1]} = {format_short_value(self.before)}"
        if self.step.action == "drop":
            return f"{self.step.rule}: {old} is taken out"
        return f"{self.step.rule}: {old} becomes {self.step.to or self.step.option} = {format_short_value(self.after)}"


class Migration(Record):
    """What came of it: the new text, the steps made in it, and what is left to decide."""

    text: str
    made: tuple[MadeStep, ...] = ()
    findings: tuple[Finding, ...] = ()


def load_migration_steps(release: str) -> list[Step]:
    """Return the steps that count for a release, in the order of the catalogue."""
    now = releases.release_index(release)
    return [step for step in (Step(*row) for row in load_built_part("migrations")["steps"]) if releases.release_index(step.since) <= now]


def migrate_profile(profile: Profile, config: Config, release: str, since: str = "") -> Migration:
    """Return the text of a profile moved to a release. ``config`` is the profile resolved; where it names no release, it is for ``since``.

    Raises NpuprofError.
    """
    made: list[MadeStep] = []
    changes: list[PathChange] = []
    findings: list[Finding] = []
    gone: set[tuple[Path, str]] = set()
    data = profile.document.data
    bases: list[Path] = [(), *((("override", number)) for number in range(len(data.get("override", []))))]
    steps = load_migration_steps(release)
    for step in steps:
        hindrance = None  # the same for the preset and its overrides
        for base in bases:
            table = find_at_path(data, (*base, "options"))
            if not isinstance(table, dict) or step.option not in table or (base, step.option) in gone:
                continue
            if not _is_step_due(step, table, config):
                continue
            path: Path = (*base, "options", step.option)
            done, stopped = None, ""
            if _is_step_certain(step, config, base, data):
                hindrance = stopped = _find_hindrance(step, steps, bases, data, config) if hindrance is None else hindrance
                done = None if stopped else _find_step_changes(step, path, table)
            if done is None:
                findings.append(_build_decision_finding(step, profile.origin(*path), profile.name, stopped))
            else:
                changes += done
                made.append(MadeStep(step, path, table[step.option], None if done[0].value is MISSING else done[0].value))
                gone |= {(base, step.option)} if step.to else set()
        findings += _check_inherited_value(step, profile, config)
    findings += _check_unset_and_locked(profile, made)
    findings += _check_changed_defaults(config, release, since)
    changes += _find_range_change(profile, config, release, made)
    return Migration(edit.apply_changes(profile.document.text, changes), tuple(made), tuple(findings))


def _is_step_due(step: Step, table: dict[str, Any], config: Config) -> bool:
    lookup = _build_setting_lookup(table, config, _find_overruled_key(step, config))
    return condition.evaluate_condition(step.when, lookup) is True


def _find_overruled_key(step: Step, config: Config) -> str:
    """Return the new name of a key where only a parent sets it so far: the value here is to overrule that one."""
    origin = config.origin(step.to) if step.action == "rename" and step.to in config.settings else None
    return step.to if origin is not None and origin.document is not config.lineage[-1].document else ""


def _build_setting_lookup(table: dict[str, Any], config: Config, overruled: str = "") -> Any:
    def look_up_setting(path: tuple[str, ...]) -> tuple[bool | None, Any]:
        name = path[0]
        if name in table:
            return True, table[name]
        if name in config.settings and name != overruled:
            return True, config.settings[name]
        return False, UNSET_VALUES.get(name)

    return look_up_setting


def _is_step_certain(step: Step, config: Config, base: Path, data: dict[str, Any]) -> bool:
    if step.loss == "decide" or step.action == "tell":
        return False
    if not step.scenarios:
        return True
    match = find_at_path(data, (*base, "match", "scenario")) if base else None
    scenario = match if isinstance(match, str) else config.scenario
    return scenario in step.scenarios


def _find_hindrance(step: Step, steps: list[Step], bases: list[Path], data: dict[str, Any], config: Config) -> str:
    """Return what else in the file keeps a key from getting its new name: it does so everywhere, or nowhere."""
    if step.action not in ("rename", "modes"):
        return ""
    for parent in config.lineage[:-1]:
        set_there = step.option in parent.document.data.get("options", {})
        if set_there and step.option not in config.lineage[-1].table.get("unset", ()):
            return f"{parent.name} sets it too and has to be migrated first"
    ways = [other for other in steps if (other.option, other.to, other.action) == (step.option, step.to, step.action)]
    for base in bases:
        where = "an override" if base else "the preset"
        block = find_at_path(data, base) if base else data
        table = block.get("options", {})
        if not isinstance(table, dict):
            continue
        if step.to in table:
            return f"{where} sets {step.to} as well"
        if base and step.option in block.get("unset", ()):
            return "an override has it in unset"
        if step.option in table and not any(_does_step_fit(way, base, table, data, config) for way in ways):
            return f"{where} gives it {format_short_value(table[step.option])}, for which {step.to} has no word"
        if step.action == "modes" and base and step.option not in table and "optypelist_for_implmode" in table:
            return "an override changes optypelist_for_implmode alone"
    return ""


def _does_step_fit(step: Step, base: Path, table: dict[str, Any], data: dict[str, Any], config: Config) -> bool:
    if not _is_step_certain(step, config, base, data) or not _is_step_due(step, table, config):
        return False
    return step.action == "rename" or "optypelist_for_implmode" in table


def _find_step_changes(step: Step, path: Path, table: dict[str, Any]) -> list[PathChange] | None:
    """Return one step as changes, what takes the place of the old value first; None where it cannot be made."""
    old = table[step.option]
    if step.action == "drop":
        return [PathChange(path, MISSING)]
    if step.action == "modes":
        return _find_mode_changes(step, path, table)
    known = dict(step.values)
    mark = str(old).lower() if isinstance(old, bool) else str(old)
    return [PathChange(path, known[mark], (), step.to if step.action == "rename" else "")] if mark in known else None


def _find_mode_changes(step: Step, path: Path, table: dict[str, Any]) -> list[PathChange] | None:
    listed = values.parse_structured_value("optypelist_for_implmode", table.get("optypelist_for_implmode"))
    if isinstance(listed, str):
        listed = [name.strip() for name in listed.split(",")]
    if not isinstance(listed, list) or not listed:
        return None  # the other half is inherited
    new = {"ByOpType": dict.fromkeys(map(str, listed), table[step.option])}
    return [PathChange(path, new, (), step.to), PathChange((*path[:-1], "optypelist_for_implmode"), MISSING)]


def _build_decision_finding(step: Step, origin: Origin | None, name: str, hindrance: str = "") -> Finding:
    what = f"{step.rule}: {step.option} needs a decision"
    severity = "info" if step.rule == "M19" else "warning"
    if hindrance:
        what = f"{step.rule}: {step.option} is not turned into {step.to}: {hindrance}"
        why = "Done in part, it would leave the old key and the new one side by side."
        return Finding("NP511", what, why, "clear that away and migrate again", origin, step.option, (name,), severity=severity)
    return Finding("NP511", what, step.why, step.decide, origin, step.option, (name,), severity=severity)


def _check_inherited_value(step: Step, profile: Profile, config: Config) -> list[Finding]:
    """Return a step that counts for a value of a parent."""
    own = step.option in profile.document.data.get("options", {})
    if own or step.option not in config.settings:
        return []
    if condition.evaluate_condition(step.when, _build_setting_lookup({}, config)) is not True:
        return []
    origin = config.origin(step.option)
    if origin is None or origin.document is profile.document:
        return []
    what = f"{step.rule}: {step.option} = {format_short_value(config.settings[step.option])} comes from {origin.profile}"
    hint = f"npuprof migrate {origin.profile} --cann ..., or decide here: {step.decide}"
    return [Finding("NP513", what, step.why, hint, origin, step.option, (profile.name,))]


def check_heirs(made: tuple[MadeStep, ...], heirs: list[Profile]) -> list[Finding]:
    """Return the places where presets that extend the migrated one still use a key that has another name there now."""
    found = []
    steps = {change.step.option: change.step for change in made if change.step.to}
    for heir in heirs:
        blocks = [((), heir.document.data), *((("override", n), block) for n, block in enumerate(heir.document.data.get("override", [])))]
        for step in steps.values():
            for base, block in blocks:
                table = block.get("options", {})
                if isinstance(table, dict) and step.option in table:
                    origin = heir.origin(*base, "options", step.option)
                elif step.option in (block if base else heir.table).get("unset", ()):
                    origin = heir.origin(*(base or ("profile",)), "unset")
                else:
                    continue
                what = f"{step.rule}: {heir.name} names {step.option}, and inherits {step.to} now"
                why = "It overruled or cleared the value of this preset; now both keys stand side by side."
                hint = f"npuprof migrate {heir.name} --cann ..."
                found.append(Finding("NP513", what, why, hint, origin, step.option, (heir.name,)))
    return found


def _check_unset_and_locked(profile: Profile, made: list[MadeStep]) -> list[Finding]:
    """Return the places where ``unset`` and ``locked`` name a key that was renamed."""
    found = []
    steps = {change.step.option: change.step for change in made}
    for name in (name for name, key in PROFILE_KEYS.items() if key.names_settings):
        for index, key in enumerate(profile.table.get(name, ())):
            step = steps.get(key) if isinstance(key, str) else None
            if step is not None:
                what = f"{step.rule}: {name} names {key}, which became {step.to or 'nothing'}"
                why = "A key that is not set any more cannot be cleared or locked."
                origin = profile.origin("profile", name, index)
                found.append(Finding("NP511", what, why, f"name {step.to}" if step.to else "remove it", origin, key))
    return found


class ChangedDefault(Record):
    """A default that is another one since a release; ``unless`` is an option beside which it does not count."""

    option: str
    unless: str
    since: str
    before: str
    after: str

    def build_finding(self) -> Finding:
        """Return what there is to say where nobody sets the option."""
        what = f"{self.option} is not set, and its default changed in CANN {self.since}: {self.before}, then {self.after}"
        return Finding(
            "NP512", what, "Leaving it out means something else now.", f"set {self.option} if the old behaviour matters", key=self.option
        )


def list_changed_defaults(before: str, release: str) -> list[ChangedDefault]:
    """Return the defaults that changed on the way from one release to another, in the order of the catalogue."""
    first, now = releases.release_index(before), releases.release_index(release)
    rows = [ChangedDefault(*row) for row in load_built_part("migrations")["defaults"]]
    return [row for row in rows if first < releases.release_index(row.since) <= now]


def _check_changed_defaults(config: Config, release: str, since: str) -> list[Finding]:
    """Return the defaults that changed between the oldest release a preset is meant for and the one asked for."""
    within = releases.find_releases_in_range(config.cann) if config.cann else (since,) if since else None
    if not within:
        return []
    origin = config.find_profile_origin("cann") or config.lineage[-1].origin()
    return [
        row.build_finding()._replace(origin=origin, profiles=(config.name,))
        for row in list_changed_defaults(within[0], release)
        if row.option not in config.settings and row.unless not in config.settings
    ]


def _find_range_change(profile: Profile, config: Config, release: str, made: list[MadeStep]) -> list[PathChange]:
    """Return what makes ``cann`` hold the release, and none that does not know what is set now."""
    from npuprof import catalog

    spec = profile.table.get("cann")
    within = releases.find_releases_in_range(spec) if spec else None
    if not spec or within is None:
        return []
    came = [option for name in {change.step.to for change in made} if (option := catalog.find_option(name)) is not None]
    unknown = any(option.states[releases.release_index(name)] == "." for option in came for name in within)
    if release in within and not unknown:
        return []
    upper = [clause.strip() for clause in spec.split(",") if clause.strip().startswith("<")]
    kept = [clause for clause in upper if release in (releases.find_releases_in_range(clause) or ())]
    return [PathChange(("profile", "cann"), ",".join([f">={release}", *kept]))]
