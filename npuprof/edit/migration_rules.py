"""Findings about team rules that read a key which a migration renames, removes, or gives other values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npuprof.catalog import build_finding, condition, written_condition
from npuprof.document.policy import Policy, TeamRule, is_name_meant
from npuprof.edit.migration import MadeStep
from npuprof.edit.migration_steps import Step, load_migration_steps
from npuprof.model import Finding

_WHY = "A rule on a key that its presets do not set any more is broken in all of them, or binds none, and says nothing of it."


def check_rules(policy: Policy | None, made: Mapping[str, Iterable[MadeStep]], release: str) -> list[Finding]:
    """Return what to write in the rules that bind migrated presets and read a migrated key; ``made`` is by preset name."""
    findings: list[Finding] = []
    steps = load_migration_steps(release)
    for rule in policy.rules if policy else ():
        due: dict[str, Step] = {}
        for name, changes in made.items():
            if is_name_meant(rule.presets, name):
                due |= {change.step.option: change.step for change in changes}
        findings += [_build_finding(rule, due[option], steps) for option in written_condition.list_team_reads(rule) if option in due]
    return findings


def _build_finding(rule: TeamRule, step: Step, steps: Iterable[Step]) -> Finding:
    now = f"which is {step.to} now" if step.to else "which is not set any more" if step.action == "drop" else "whose values are others now"
    same_way = [later for later in steps if (later.option, later.to, later.action) == (step.option, step.to, step.action)]
    renamed_values = {old: new for later in same_way for old, new in later.values if str(old) != str(new) or type(old) is not type(new)}
    if step.action == "drop":
        hint = f"take {step.option} out of the rule"
    else:
        listed = ", ".join(f"{old} is {new!r}" for old, new in renamed_values.items())
        hint = f"write {step.to or step.option} in the rule" + (f", with its values: {listed}" if listed else "")
    in_when = rule.when is not None and step.option in map(".".join, condition.collect_condition_paths(rule.when[1]))
    origin = rule.origin._replace(path=(*rule.origin.path, "when" if in_when else "require")) if rule.origin else None
    return build_finding("NP511", f"rule {rule.code} reads {step.option}, {now}", _WHY, hint, origin, step.option)
