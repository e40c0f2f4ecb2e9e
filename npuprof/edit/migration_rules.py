"""Rules of a team that read a key which a migration gives another name or value, or takes away: rewritten, or told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from npuprof.catalog import build_finding, condition, written_condition
from npuprof.document.policy import Policy, TeamRule, is_name_meant
from npuprof.edit.migration import MadeStep
from npuprof.edit.migration_steps import Step, load_migration_steps
from npuprof.edit.rule_conditions import rewrite_condition
from npuprof.model import Finding, Record

_WHY = "A rule on a key that its presets do not set any more is broken in all of them, or binds none, and says nothing of it."


class DueRule(Record):
    """A rule that reads what was migrated in presets that it binds: the options with their steps.

    ``texts`` are its conditions rewritten, by their keys; there are none where something is in the way, which ``hindrance`` says.
    """

    rule: TeamRule
    options: dict[str, Step]
    texts: dict[str, str]
    hindrance: str

    def __str__(self) -> str:
        told = [f"{option} becomes {step.to}" if step.to else f"{option} has its new values" for option, step in self.options.items()]
        return f"rule {self.rule.code}: {', '.join(told)} in {' and '.join(self.texts)}"


def find_due_rules(policy: Policy | None, made: Mapping[str, Iterable[MadeStep]], release: str) -> list[DueRule]:
    """Return the rules that bind migrated presets and read what was migrated; ``made`` is by name of the preset."""
    found: list[DueRule] = []
    steps = load_migration_steps(release)
    for rule in policy.rules if policy else ():
        due: dict[str, Step] = {}
        for name, changes in made.items():
            if is_name_meant(rule.presets, name):
                due |= {change.step.option: change.step for change in changes}
        if options := {option: due[option] for option in written_condition.list_team_reads(rule) if option in due}:
            found.append(DueRule(rule, options, *_rewrite_rule(rule, options, steps)))
    return found


def _rewrite_rule(rule: TeamRule, options: Mapping[str, Step], steps: Iterable[Step]) -> tuple[dict[str, str], str]:
    """Return the conditions of a rule that change, rewritten; none, and why, where one cannot be."""
    texts = {"require": rule.require[0], **({"when": rule.when[0]} if rule.when else {})}
    for option, step in options.items():
        if step.action not in ("rename", "set"):
            return {}, f"what {option} means has no key of its own any more" if step.to else f"{option} is not set any more"
        words = _list_words(step, steps)
        for name, text in texts.items():
            texts[name], hindrance = rewrite_condition(text, option, step.to or option, words)
            if hindrance:
                return {}, hindrance
    was = {"require": rule.require[0], "when": rule.when[0] if rule.when else ""}
    return {name: text for name, text in texts.items() if text != was[name]}, ""


def _list_words(step: Step, steps: Iterable[Step]) -> dict[str, Any]:
    """Return what the values of an option are called now, by the text of the old ones, over all steps on the same way."""
    ways = (one for one in steps if (one.option, one.to, one.action) == (step.option, step.to, step.action))
    return {old: new for one in ways for old, new in one.values}


def check_rules(policy: Policy | None, made: Mapping[str, Iterable[MadeStep]], release: str) -> list[Finding]:
    """Return what to write in the rules that bind migrated presets and read what was migrated."""
    return [finding for due in find_due_rules(policy, made, release) for finding in build_rule_findings(due, release)]


def build_rule_findings(due: DueRule, release: str, reason: str = "") -> list[Finding]:
    """Return what to write in a rule that was not rewritten, and the reason why it was not, if there is one."""
    steps = load_migration_steps(release)
    return [_build_finding(due.rule, step, steps, reason) for step in due.options.values()]


def _build_finding(rule: TeamRule, step: Step, steps: Iterable[Step], reason: str) -> Finding:
    now = f"which is {step.to} now" if step.to else "which is not set any more" if step.action == "drop" else "whose values are others now"
    what = f"rule {rule.code} reads {step.option}, {now}" + (f"; it is left as it is: {reason}" if reason else "")
    words = {old: new for old, new in _list_words(step, steps).items() if str(old) != str(new) or type(old) is not type(new)}
    told = ", ".join(f"{old} is {new!r}" for old, new in words.items())
    if step.action == "drop":
        hint = f"take {step.option} out of the rule"
    else:
        hint = f"write {step.to or step.option} in the rule" + (f", with its values: {told}" if told else "")
    when = rule.when is not None and step.option in map(".".join, condition.collect_condition_paths(rule.when[1]))
    reading = "when" if when else "require"
    origin = rule.origin._replace(path=(*rule.origin.path, reading)) if rule.origin else None
    return build_finding("NP511", what, _WHY, hint, origin, step.option)
