"""``migrate``: rewrite one preset, or all presets of a store, for another CANN release."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npuprof.catalog import releases
from npuprof.commands.framework import Verb, arguments, flag, many, option
from npuprof.commands.framework.parameters import (
    AXES,
    COLOR,
    DRY_RUN,
    FORMAT,
    FROM,
    PRODUCT,
    STORE,
    WRITE_ANYWAY,
)
from npuprof.compare import text_changes
from npuprof.compare.changes import compare_configs
from npuprof.compare.json_changes import build_change_dict
from npuprof.edit.changed import build_opener
from npuprof.edit.migration_plan import (
    Outcome,
    StoreMigration,
    migrate_file,
    migrate_store,
    require_matching_dependents,
)
from npuprof.edit.migration_steps import find_earlier_releases
from npuprof.edit.moves import Upgrade
from npuprof.edit.preset_file import (
    PresetFile,
    describe_write,
    format_difference,
    open_for_edit,
)
from npuprof.model import Context, Fields, Finding, build_usage_error
from npuprof.report import Answer
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.text import escape_controls, format_count
from npuprof.store import spec
from npuprof.store.folder import Folder
from npuprof.system import find_repository_top, join_lines, writing
from npuprof.system.locks import lock_folders


class Migrate(Verb):
    """Migrate presets to other releases of CANN and of frameworks.

    Applies the lossless steps and reports the rest as findings. Exits with 1 if a finding needs a
    decision. Scripts are not changed: npuprof scan reports what a release breaks in them.
    """

    usage_hint = (
        "npuprof migrate bert-training --cann 9.0.0, or "
        "npuprof migrate --all --framework vllm_ascend=0.23.0 for the whole store"
    )
    group = "presets"
    prose = True

    specs = arguments(
        "SPEC...", "Preset to migrate: NAME, a path ending in .toml, or - for stdin", "spec"
    )
    everything = flag("--all", text="Migrate all presets of the store, writing all files or none")
    cann = option(
        "--cann", metavar="RELEASE", text="Migrate to this CANN release", complete="release"
    )
    frameworks = many(
        "--framework",
        metavar="NAME=RELEASE",
        text="Migrate to this release of a framework; repeatable. vllm follows vllm_ascend",
        complete="framework",
    )
    since = FROM
    widen = flag(
        "--widen",
        text="Keep older releases in the ranges, and report settings that only those read",
    )
    keep_defaults = flag(
        "--keep-defaults", text="Write the old values of changed defaults into the presets"
    )
    product = PRODUCT
    axes = AXES
    format = FORMAT
    dry_run = DRY_RUN
    no_check = WRITE_ANYWAY
    store = STORE
    color = COLOR
    _upgrade = Upgrade({})

    def run(self) -> Answer:
        """Return the changes and the remaining decisions; write the changes unless it is a dry run.

        Raises NpuprofError.
        """
        if self.everything == bool(self.specs):
            what = (
                "a preset and --all are two ways"
                if self.everything
                else "which preset is to be moved?"
            )
            raise build_usage_error(what, "name one, or say --all")
        context = spec.build_context(
            self.cann, self.product, versions=self.frameworks, axes=self.axes, store=self.store
        )
        # before any file is opened: it rejects releases in the wrong order
        since = find_earlier_releases(self.since, context)
        named = context.list_named()
        for axis, written in context.newer:
            what = f"{axis} {written} is newer than all known releases"
            raise build_usage_error(what, f"update npuprof, or name {named[axis]}")
        if not named:
            raise build_usage_error("which release is to be moved to?", self.usage_hint)
        shown = " ".join(
            f"--cann {name}" if axis == releases.CANN else f"--framework {axis}={name}"
            for axis, name in named.items()
        )
        self._upgrade = Upgrade(
            releases.list_selected(named), since, self.widen, self.keep_defaults, shown
        )
        if not self.specs:
            return self._migrate_all(context)
        workspace = spec.Workspace(self.store)
        for name in self.specs:
            if (
                os.path.exists(name)
                and not name.endswith(".toml")
                and name not in workspace.store.names()
            ):
                raise build_usage_error(
                    f"{name} is not a preset",
                    f"npuprof scan {shlex.quote(name)} {self._upgrade.flags} reports what breaks "
                    "in scripts with that release",
                    "migrate rewrites presets, not scripts.",
                )
        if len(self.specs) > 1:
            what = f"{' and '.join(self.specs[:2])} are two presets"
            raise build_usage_error(
                what, "name one, or say --all", "One is moved at a time, or all in one plan."
            )
        return self._migrate_one(self.specs[0], workspace, context)

    def _migrate_one(self, name: str, workspace: spec.Workspace, context: Context) -> Answer:
        with open_for_edit(name, workspace) as file:
            outcome = migrate_file(file, context, self._upgrade)
            # standard input cannot be written
            dry_run = self.dry_run or file.path == "-"
            changed = outcome.moved.text != file.text
            if changed and not self.no_check:
                require_matching_dependents(outcome, file, workspace)
            notes = _describe_blocks_of(outcome, file) if changed else ()
            if changed and not dry_run:
                file.write_changed(outcome.moved.text)
        forms = {
            "text": lambda: _format_outcome(outcome, self.coloured),
            "json": lambda: {
                "schema": "npuprof.migrate/1",
                "preset": outcome.after.name,
                "cann": context.cann,
                "versions": dict(context.versions),
                **_build_fields(outcome),
            },
        }
        written = f"{describe_write(changed, dry_run)} {file.source}"
        return self._build_answer(context, forms, [outcome], outcome.decisions, (written, *notes))

    def _migrate_all(self, context: Context) -> Answer:
        home = spec.Workspace(self.store, context).store
        with lock_folders([home.root]):
            plan = migrate_store(home, context, self._upgrade)
            notes = _describe_outdated_blocks(home, plan.open_migrated) if plan.files else ()
            writes = [file.build_wanted(text) for file, text in plan.files]
            if writes and not self.dry_run:
                writing.write_planned_files(writes)
        summary = "nothing to change in any preset"
        if writes:
            done = describe_write(True, self.dry_run)
            summary = f"{done} {format_count(len(writes), 'file')}"
        forms = {
            "text": lambda: _format_plan(plan, self.coloured),
            "json": lambda: _build_plan_fields(plan, context),
        }
        return self._build_answer(context, forms, plan.outcomes, plan.decisions, (summary, *notes))

    def _build_answer(
        self,
        context: Context,
        forms: Mapping[str, Callable[[], Any]],
        outcomes: Sequence[Outcome],
        left: Sequence[Finding],
        notes: tuple[str, ...],
    ) -> Answer:
        """Return a migration as an answer, in text with a summary of its steps.

        Exit 1 if a finding is ``left`` to decide.
        """
        steps = sum(len(outcome.moved.made) for outcome in outcomes)
        todo = sum(finding.severity != "info" for finding in left)
        summary = (
            f"{releases.format_releases(context.list_named())}: {format_count(steps, 'step')} "
            f"made, {todo or 'nothing'} left to decide"
        )
        return Answer(forms, (summary, *notes) if self.format == "text" else notes, int(bool(todo)))


def _describe_blocks_of(outcome: Outcome, file: PresetFile) -> tuple[str, ...]:
    """Return a note on script blocks that the migration of one preset makes outdated."""
    home = file.profile.home
    if not isinstance(home, Folder):
        return ()
    return _describe_outdated_blocks(
        home, build_opener(home, {file.profile.name: (file.source, outcome.moved.text)})
    )


def _describe_outdated_blocks(
    home: Folder, open_migrated: Callable[[Context], spec.Workspace]
) -> tuple[str, ...]:
    """Return a note on script blocks that a migration makes outdated.

    Empty without a repository.
    """
    if not find_repository_top(home.root):
        return ()
    from npuprof.scripts.block_renaming import describe_outdated_blocks

    return describe_outdated_blocks(home, open_migrated)


def _format_outcome(outcome: Outcome, coloured: bool) -> str:
    """Return the changes, steps and findings of one preset as text."""
    lines = [
        line
        for change in compare_configs(outcome.before, outcome.after)
        for line in text_changes.format_change_lines(change, "", coloured)
    ]
    return join_lines([*lines, *_format_steps(outcome)]) + format_findings(
        outcome.decisions, coloured
    )


def _format_steps(outcome: Outcome) -> list[str]:
    """Return the applied steps with reasons, one per line."""
    return [
        f"{escape_controls(str(made))} ({made.step.why[0].lower()}{made.step.why[1:].rstrip('.')})"
        for made in outcome.moved.made
    ] + [escape_controls(str(carried)) for carried in outcome.moved.carried]


def _build_fields(outcome: Outcome) -> Fields:
    """Return the fields of the JSON form of one preset."""
    return {
        "preset": outcome.after.name,
        "changes": [
            build_change_dict(change) for change in compare_configs(outcome.before, outcome.after)
        ],
        "steps": [
            {
                "rule": step.step.rule,
                "option": step.step.option,
                "to": step.step.to or None,
                "before": step.before,
                "after": step.after,
                "loss": step.step.loss,
                "why": step.step.why,
            }
            for step in outcome.moved.made
        ],
        "carried": [
            {"option": carried.step.option, "to": carried.step.to, "path": list(carried.path)}
            for carried in outcome.moved.carried
        ],
        "findings": [build_finding_dict(finding) for finding in outcome.decisions],
    }


def _format_plan(plan: StoreMigration, coloured: bool) -> str:
    """Return the steps, the changes as a unified diff, and the remaining decisions."""
    steps = [
        f"{escape_controls(outcome.after.name)}: {line}\n"
        for outcome in plan.outcomes
        for line in _format_steps(outcome)
    ]
    shown = [format_difference(file.source, file.text, text) for file, text in plan.files]
    return "".join([*steps, *shown]) + format_findings(plan.decisions, coloured)


def _build_plan_fields(plan: StoreMigration, context: Context) -> Fields:
    """Return the fields of the JSON form of a store."""
    return {
        "schema": "npuprof.migrate-store/1",
        "cann": context.cann,
        "versions": dict(context.versions),
        "files": [file.source for file, _ in plan.files],
        "presets": [
            fields
            for fields in map(_build_fields, plan.outcomes)
            if fields["changes"] or fields["steps"] or fields["carried"] or fields["findings"]
        ],
        "rules": [build_finding_dict(finding) for finding in plan.rules],
        "rewritten_rules": [],  # always empty: kept for consumers of this schema
    }


VERB = Migrate
