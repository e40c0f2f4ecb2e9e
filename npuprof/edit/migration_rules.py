"""Rules of a team that read a key which a migration gives another name or value, or takes away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npuprof.catalog import condition, written_condition
from npuprof.document.policy import Policy, TeamRule, is_name_meant
from npuprof.edit.migration import MadeStep
from npuprof.edit.migration_steps import Step, load_migration_steps
from npuprof.model import Finding

_WHY = "A rule on a key that its presets do not set any more is broken in all of them, or binds none, and says nothing of it."


def check_rules(policy: Policy | None, made: Mapping[str, Iterable[MadeStep]], release: str) -> list[Finding]:
    """Return what to write in the rules that bind migrated presets and read what was migrated; ``made`` is by name of the preset."""
    found: list[Finding] = []
    steps = load_migration_steps(release)
    for rule in policy.rules if policy else ():
        due: dict[str, Step] = {}
        for name, changes in made.items():
            if is_name_meant(rule.presets, name):
                due |= {change.step.option: change.step for change in changes}
        found += [_build_finding(rule, due[option], steps) for option in written_condition.list_team_reads(rule) if option in due]
    return found


def _build_finding(rule: TeamRule, step: Step, steps: Iterable[Step]) -> Finding:
    now = f"which is {step.to} now" if step.to else "which is not set any more" if step.action == "drop" else "whose values are others now"
    what = f"rule {rule.code} reads {step.option}, {now}"
    words = {
        old: new
        for one in steps
        if (one.option, one.to, one.action) == (step.option, step.to, step.action)
        for old, new in one.values
        if str(old) != str(new) or type(old) is not type(new)
    }
    told = ", ".join(f"{old} is {new!r}" for old, new in words.items())
    if step.action == "drop":
        hint = f"take {step.option} out of the rule"
    else:
        hint = f"write {step.to or step.option} in the rule" + (f", with its values: {told}" if told else "")
    when = rule.when is not None and step.option in map(".".join, condition.collect_condition_paths(rule.when[1]))
    reading = "when" if when else "require"
    origin = rule.origin._replace(path=(*rule.origin.path, reading)) if rule.origin else None
    return Finding("NP511", what, _WHY, hint, origin, step.option)
