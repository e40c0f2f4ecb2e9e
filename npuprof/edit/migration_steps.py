"""The steps of ``catalog/releases.toml``: whether each is due, and certain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.catalog import condition, load_built_part, releases
from npuprof.document.keys import format_short_value
from npuprof.edit.paths import find_at_path
from npuprof.model import Context, Path, Record, TomlTable, build_usage_error
from npuprof.resolve.config import Config
from npuprof.store.spec import build_context

#: The values of unset options in conditions of steps.
UNSET_VALUES = {"iterations_per_loop": 1}


class Step(Record):
    """One row of the catalogue: a ``step`` of a release in ``catalog/releases.toml``."""

    rule: str
    option: str
    why: str
    since: str
    action: str = "drop"
    to: str = ""
    when: Any = None
    loss: str = "none"
    values: tuple[tuple[str, Any], ...] = ()
    scenarios: tuple[str, ...] = ()
    decide: str = ""
    source: str = ""


class MadeStep(Record):
    """An applied step, the path of the old value, and both values; ``after`` may be None."""

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


def load_migration_steps(release: str) -> list[Step]:
    """Return the steps for a release, in catalogue order; none without a release."""
    if not release:
        return []
    now = releases.release_index(release)
    steps = [Step(**row) for row in load_built_part("migrations")["steps"]]
    return [step for step in steps if releases.release_index(step.since) <= now]


def is_step_due(step: Step, table: TomlTable, config: Config) -> bool:
    """Return whether the values of a table, else of a config, satisfy the condition of a step."""
    lookup = build_setting_lookup(table, config, _find_overridden_key(step, config))
    return condition.evaluate_condition(step.when, lookup) is True


def _find_overridden_key(step: Step, config: Config) -> str:
    """Return the new name of a key if only a parent sets it: the renamed value overrides it."""
    if step.action != "rename" or step.to not in config.settings:
        return ""
    origin = config.origin(step.to)
    is_inherited = origin and origin.document is not config.profile.document
    return step.to if is_inherited else ""


def build_setting_lookup(table: TomlTable, config: Config, overridden: str = "") -> Any:
    """Return a lookup function for conditions: in a table, else in a config.

    The config's value of an ``overridden`` key is ignored.
    """

    def look_up_setting(path: tuple[str, ...]) -> tuple[bool | None, Any]:
        name = path[0]
        if name in table:
            return True, table[name]
        if name in config.settings and name != overridden:
            return True, config.settings[name]
        return False, UNSET_VALUES.get(name)

    return look_up_setting


def is_step_certain(step: Step, config: Config, base: Path, data: TomlTable) -> bool:
    """Return whether a step needs no decision in the block of a document at ``base``."""
    if step.loss == "decide" or step.action == "tell":
        return False
    if not step.scenarios:
        return True
    match = find_at_path(data, (*base, "match", "scenario"))
    scenario = match if isinstance(match, str) else config.scenario
    return scenario in step.scenarios


def does_step_fit(
    step: Step, base: Path, table: TomlTable, data: TomlTable, config: Config
) -> bool:
    """Return whether a step is possible for the value in a table."""
    if not is_step_certain(step, config, base, data) or not is_step_due(step, table, config):
        return False
    # "modes" joins two options, of which the other may be set by a parent
    return step.action == "rename" or "optypelist_for_implmode" in table


def find_earlier_releases(texts: Sequence[str], context: Context) -> dict[str, str]:
    """Return the releases of ``--from`` by axis: RELEASE if one is named to move to, NAME=RELEASE.

    Those of other frameworks on which they run are included. Raises NpuprofError for a release that
    is unknown, later than the target, or without one.
    """
    targets = context.list_named()
    since = {}
    for text in texts:
        name, _, release = text.rpartition("=")
        if not name and len(targets) == 1:
            name = next(iter(targets))
        if name not in targets:
            hint = f"say --cann RELEASE as well, or --framework NAME=RELEASE; --from NAME={release}"
            raise build_usage_error("--from needs to know which release to move to", hint)
        is_cann = name == releases.CANN
        built = build_context(release) if is_cann else build_context(versions={name: release})
        since[name] = built.list_named()[name]
        known = releases.load_releases(name)
        if known.index(since[name]) > known.index(targets[name]):
            flag = "--cann " if is_cann else f"--framework {name}="
            what = f"--from {text} is later than {flag}{targets[name]}"
            raise build_usage_error(
                what, "say it the other way round", "A move goes to a later release."
            )
    return releases.list_selected(since)
