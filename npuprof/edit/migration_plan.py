"""Presets moved to another release: one with its file, or all of a store, parents first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npuprof import checks
from npuprof.edit import migration
from npuprof.edit.changed import ChangedStore, build_opener, resolve_all, resolve_apart
from npuprof.edit.dependents import find_dependents, require_valid_dependents
from npuprof.edit.families import plan_renames
from npuprof.edit.migration import Migration, check_rules
from npuprof.edit.migration_steps import load_migration_steps
from npuprof.edit.preset_file import PresetFile, read_preset_file, require_writable_store
from npuprof.model import Context, Finding, NpuprofError, Record
from npuprof.report import output
from npuprof.report.isolating import isolate_faults
from npuprof.resolve.config import Config
from npuprof.store import Folder
from npuprof.store.spec import Workspace


class Outcome(Record):
    """A migration, the preset resolved before and after it, and what is left to decide."""

    moved: Migration
    before: Config
    after: Config
    left: list[Finding]


def migrate_file(file: PresetFile, context: Context, since: str = "") -> Outcome:
    """Return a preset moved to a release, nothing written; it comes from ``since`` where it names none. Raises NpuprofError."""
    profile, release = file.profile, str(context.cann)
    before = resolve_apart(profile, context)
    moved = migration.migrate_profile(profile, before, release, since)
    after = resolve_apart(file.parse_changed(moved.text), context)
    findings = list(moved.findings)
    if isinstance(profile.home, Folder) and moved.made:
        heirs = [profile.home.profile(name) for name in find_dependents(profile.home, profile.name)]
        findings += migration.check_heirs(moved.made, heirs, release)
        findings += check_rules(profile.home.load_policy(), {profile.name: moved.made})
    moved = moved._replace(findings=tuple(findings))
    return Outcome(moved, before, after, _list_left(moved, after, before))


def _list_left(moved: Migration, after: Config, before: Config) -> list[Finding]:
    """Return what is left to decide: steps not made, and what the checks say of the result in that release."""
    reported = {finding.key for finding in moved.findings}
    known = {(finding.code, finding.key) for finding in checks.check_config(before)}
    brought = [
        finding
        for finding in checks.check_config(after)
        if finding.key not in reported
        and (finding.severity == "error" or (finding.severity == "warning" and (finding.code, finding.key) not in known))
    ]
    return checks.fold_findings([*moved.findings, *brought])


def require_matching_dependents(outcome: Outcome, file: PresetFile, workspace: Workspace) -> None:
    """Raise NpuprofError where presets that build on a migrated one still mean its old key, or would have errors they have not now."""
    parted = [finding for finding in outcome.moved.findings if finding.code == "NP513" and finding.profiles != (outcome.after.name,)]
    if parted:
        message = "nothing written: presets that extend it set the old key; --all migrates them too, --no-check writes it anyway"
        output.tell_remark(message)
        raise NpuprofError(finding._replace(severity="error") for finding in parted)
    require_valid_dependents(workspace, file.path, file.profile, outcome.moved.text)


class StoreMigration(Record):
    """All presets of a store moved to a release: the files that change with their new texts, and what came of each preset.

    ``rules`` are findings about team rules, which are in ``left`` as well. ``open_migrated`` opens the store as it will be.
    """

    files: list[tuple[PresetFile, str]]
    outcomes: list[Outcome]
    left: list[Finding]
    rules: list[Finding]
    open_migrated: Callable[[Context], Workspace]


def migrate_store(home: Folder, context: Context, since: str) -> StoreMigration:
    """Return all presets of a store moved to a release, nothing written; those that name none come from ``since``.

    Raises NpuprofError where one cannot be read or resolved, or npuprof fails on one.
    """
    require_writable_store(home)
    before = _require_all(build_opener(home)(context))
    changed = ChangedStore(home)
    files, moved = _migrate_all(before, changed, context, since)
    open_migrated = build_opener(home, {file.profile.name: (file.source, text) for file, text in files})
    after = _require_all(open_migrated(context))
    rules = check_rules(home.load_policy(), {name: migrated.made for name, migrated in moved.items()})
    outcomes: list[Outcome] = []
    faults: list[Finding] = []
    for name, done in moved.items():
        with isolate_faults(home.cite_file(f"{name}.toml"), faults, name):
            outcomes.append(Outcome(done, before[name], after[name], _list_left(done, after[name], before[name])))
    if faults:
        raise NpuprofError(faults)
    left = [*checks.fold_findings(finding for outcome in outcomes for finding in outcome.left), *rules]
    return StoreMigration(files, outcomes, left, rules, open_migrated)


def _migrate_all(
    before: Mapping[str, Config], changed: ChangedStore, context: Context, since: str
) -> tuple[list[tuple[PresetFile, str]], dict[str, Migration]]:
    """Return the files that change with their new texts, which ``changed`` has then, and what was done to each preset."""
    files: list[tuple[PresetFile, str]] = []
    moved: dict[str, Migration] = {}
    faults: list[Finding] = []
    plan = plan_renames(before.values(), load_migration_steps(str(context.cann)), lambda member: member.home is changed.below)
    for name in sorted(before, key=lambda name: (len(before[name].lineage), name)):
        profile = changed.profile(name)
        with isolate_faults(changed.cite_file(f"{name}.toml"), faults, name):
            # What its parents are by now decides what is left to do in it.
            moved[name] = migration.migrate_profile(profile, resolve_apart(profile, context), str(context.cann), since, plan)
            if moved[name].text != profile.document.text:
                file = read_preset_file(changed.below, name)
                files.append((file, moved[name].text))
                changed.set_text(name, file.source, moved[name].text)
    if faults:
        raise NpuprofError(faults)
    return files, moved


def _require_all(workspace: Workspace) -> dict[str, Config]:
    """Return all presets of a store resolved. Raises NpuprofError with all that cannot be."""
    problems: list[Finding] = []
    configs = resolve_all(workspace, problems)
    if problems:
        raise NpuprofError(problems)
    return configs
