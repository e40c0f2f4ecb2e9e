"""``migrate``: a preset rewritten for another release, the difference shown first, whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from npuprof.commands.parameters import COLOR, PRODUCT, STORE, formats
from npuprof.commands.verb import Verb, argument, flag, required_option
from npuprof.document.profile import Profile
from npuprof.model import Context, Finding, NpuprofError, Record
from npuprof.report.answer import Answer
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.text import escape_controls, format_count
from npuprof.resolve.config import Config
from npuprof.store import Folder, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.edit.migration import Migration
    from npuprof.edit.preset_file import PresetFile
    from npuprof.report.answer import Forms


class Migrate(Verb):
    """Rewrite a preset for another CANN release.

    Lossless steps are made, the rest are findings (exit 1 if any is left to decide).
    """

    group = "scripts"
    prose = True
    undoable = True

    spec: str = argument("SPEC", "A preset of the store, or a path ending in .toml.")
    cann: str = required_option("--cann", metavar="RELEASE", text="The CANN release to move to.")
    product: str | None = PRODUCT
    format: str = formats("text", "json")
    dry_run: bool = flag("--dry-run", text="Show what would change; write nothing.")
    store: str | None = STORE
    color: str = COLOR

    def run(self) -> Answer:
        """Return the changes and what is left to decide; the file is written unless it is a dry run. Raises NpuprofError."""
        from npuprof.edit.preset_file import open_for_edit

        context = spec.build_context(self.cann, self.product)
        with open_for_edit(self.spec, self.store) as file:
            outcome = _migrate_profile(file, self.store, context)
            dry_run = self.dry_run or file.path == "-"
            changed = outcome.moved.text != file.text
            if changed and not dry_run:
                file.write_changed(outcome.moved.text)
        done = "nothing to change in" if not changed else "would write" if dry_run else "wrote"
        todo = sum(finding.severity != "info" for finding in outcome.left)
        steps = f"{format_count(len(outcome.moved.made), 'step')} made"
        summary = [f"CANN {context.cann}: {steps}, {todo or 'nothing'} left to decide"] if self.format == "text" else []
        forms: Forms = {"text": lambda: outcome.format_text(self.coloured), "json": lambda: outcome.build_fields(str(context.cann))}
        return Answer(forms, (*summary, f"{done} {file.source}"), 1 if todo else 0)


class Outcome(Record):
    """A migration, the preset resolved before and after it, and what is left to decide."""

    moved: Migration
    before: Config
    after: Config
    left: list[Finding]

    def format_text(self, coloured: bool) -> str:
        """Return the changes, the steps and the findings as people read them."""
        from npuprof.compare import plain
        from npuprof.compare.changes import compare_configs

        lines = [line for change in compare_configs(self.before, self.after) for line in plain.format_change_lines(change, "", coloured)]
        whys = [(made, made.step.why) for made in self.moved.made]
        lines += [f"{escape_controls(str(made))} ({why[0].lower()}{why[1:].rstrip('.')})" for made, why in whys]
        return "".join(f"{line}\n" for line in lines) + format_findings(self.left, coloured)

    def build_fields(self, release: str) -> dict[str, Any]:
        """Return the fields of the JSON form."""
        from npuprof.compare.changes import compare_configs
        from npuprof.compare.data import build_change_dict

        return {
            "schema": "npuprof.migrate/1",
            "preset": self.after.name,
            "cann": release,
            "changes": [build_change_dict(change) for change in compare_configs(self.before, self.after)],
            "steps": [
                {"rule": made.step.rule, "option": made.step.option, "to": made.step.to or None, "before": made.before,
                 "after": made.after, "why": made.step.why}
                for made in self.moved.made
            ],
            "findings": [build_finding_dict(finding) for finding in self.left],
        }  # fmt: skip


def _migrate_profile(file: PresetFile, store: str | None, context: Context) -> Outcome:
    from npuprof.edit import migration

    profile = file.profile
    before = _resolve_profile(profile, store, context)
    moved = migration.migrate_profile(profile, before, str(context.cann))
    after = _resolve_profile(file.parse_changed(moved.text), store, context)
    moved = moved._replace(findings=(*moved.findings, *migration.check_heirs(moved.made, _find_heirs(profile, store, context))))
    return Outcome(moved, before, after, _list_left(moved, after, before))


def _resolve_profile(profile: Profile, store: str | None, context: Context) -> Config:
    workspace = spec.Workspace(store, context)
    if isinstance(profile.home, Folder):
        workspace.use_store(profile.home)
    return workspace.resolver.resolve_profile(profile)


def _find_heirs(profile: Profile, store: str | None, context: Context) -> list[Profile]:
    """Return the presets of the same store that extend a preset, those left out that cannot be read."""
    if not isinstance(profile.home, Folder):
        return []
    workspace = spec.Workspace(store, context)
    workspace.use_store(profile.home)
    found = []
    for name in profile.home.names():
        with suppress(NpuprofError):
            other = profile.home.profile(name)
            lineage = workspace.resolver.resolve_lineage(other)[:-1]
            if any(one.document.source == profile.document.source for one in lineage):
                found.append(other)
    return found


def _list_left(moved: Migration, after: Config, before: Config) -> list[Finding]:
    """Return what is left to decide: steps not made, and what the checks say of the result in that release."""
    from npuprof import checks

    told = {finding.key for finding in moved.findings}
    known = {(finding.code, finding.key) for finding in checks.check_config(before)}
    brought = [
        finding
        for finding in checks.check_config(after)
        if finding.key not in told
        and (finding.severity == "error" or (finding.severity == "warning" and (finding.code, finding.key) not in known))
    ]
    return checks.fold_findings([*moved.findings, *brought])


VERB = Migrate
