"""``migrate``: a preset rewritten for another release, the difference shown first, whole or not at all."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from npuprof import checks, document, report
from npuprof.commands.edit import _BOM, _locked, _read, _target
from npuprof.commands.flags import one_of
from npuprof.compare import changes
from npuprof.document.profile import Profile
from npuprof.edit import migration
from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.store import Folder, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.edit.migration import Migration
    from npuprof.resolve.config import Config


def migrate_preset(spec_: str, cann: str, product: str | None, format_: str, dry_run: bool, store: str | None, color: str) -> int:
    """Move a preset to a release. Exit 1 where something is left to decide, 0 otherwise."""
    one_of("--format", format_, ("text", "json"))
    one_of("--color", color, ("auto", "always", "never"))
    context = spec.build_context(cann, product)
    release = str(context.cann)
    target = _target(spec_, store)
    if target.path == "-":
        dry_run = True
    with _locked(target.folder):
        raw = output.read_file_content(target.path) if target.path != "-" else b""
        profile = _read(target, raw) if raw else target.profile
        before = _resolved(profile, store, context)
        moved = migration.migrate_profile(profile, before, release)
        new = Profile(document.parse_document(profile.name, profile.document.source, moved.text), profile.key, profile.home)
        after = _resolved(new, store, context)
        moved = moved._replace(findings=(*moved.findings, *migration.check_heirs(moved.made, _heirs(profile, store, context))))
        left = _left(moved, after, before)
        answer = _json(moved, before, after, left, release) if format_ == "json" else ""
        if format_ == "text":
            _show(moved, before, after, left, release, output.is_colour_wanted(color, sys.stdout))
        changed = moved.text != profile.document.text
        if changed and not dry_run:
            if output.read_file_content(target.path) != raw:
                what = f"{profile.document.source} has changed meanwhile"
                raise NpuprofError([Finding("NP922", "error", what, "Another program wrote it.", "try again", where=(target.path, 0, 0))])
            output.write_files_atomically({target.path: (_BOM if raw.startswith(_BOM) else b"") + moved.text.encode()})
    if format_ == "json":
        output.write_answer(answer)
    source = profile.document.source
    output.write_to_stderr(f"npuprof: {'nothing to change in' if not changed else 'would write' if dry_run else 'wrote'} {source}")
    return 1 if any(finding.severity != "info" for finding in left) else 0


def _resolved(profile: Profile, store: str | None, context: Any) -> Config:
    workspace = spec.Workspace(store, context)
    if isinstance(profile.home, Folder):
        workspace.use_store(profile.home)
    return workspace.resolver.resolve_profile(profile)


def _heirs(profile: Profile, store: str | None, context: Any) -> list[Profile]:
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


def _left(moved: Migration, after: Config, before: Config) -> list[Finding]:
    """Return what is left to decide: steps not made, and what the checks say of the result in that release."""
    told = {finding.key for finding in moved.findings}
    known = {(finding.code, finding.key) for finding in checks.check_config(before)}
    brought = [
        finding
        for finding in checks.check_config(after)
        if (finding.severity == "error" and finding.key not in told)
        or (finding.severity == "warning" and (finding.code, finding.key) not in known and finding.key not in told)
    ]
    return checks.fold_findings([*moved.findings, *brought])


def _show(moved: Migration, before: Config, after: Config, left: list[Finding], release: str, coloured: bool) -> None:
    from npuprof.compare import plain

    lines: list[str] = []
    for change in changes.compare_configs(before, after):
        lines += plain.format_change_lines(change, "", coloured)
    for made in moved.made:
        lines.append(f"{report.escape_controls(str(made))} ({made.step.why[0].lower()}{made.step.why[1:].rstrip('.')})")
    output.write_answer("".join(f"{line}\n" for line in lines) + report.format_findings(left, coloured))
    todo = sum(finding.severity != "info" for finding in left)
    steps = f"{report.format_count(len(moved.made), 'step')} made"
    output.write_to_stderr(f"npuprof: CANN {release}: {steps}, {todo or 'nothing'} left to decide")


def _json(moved: Migration, before: Config, after: Config, left: list[Finding], release: str) -> str:
    from npuprof.compare.data import build_change_dict

    return report.format_json_answer({
        "schema": "npuprof.migrate/1",
        "preset": after.name,
        "cann": release,
        "changes": [build_change_dict(change) for change in changes.compare_configs(before, after)],
        "steps": [
            {"rule": made.step.rule, "option": made.step.option, "to": made.step.to or None, "before": made.before,
             "after": made.after, "why": made.step.why}
            for made in moved.made
        ],
        "findings": [report.build_finding_dict(finding) for finding in left],
    })  # fmt: skip
