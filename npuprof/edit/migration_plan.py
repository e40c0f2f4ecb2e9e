"""Migration of one preset with its file, or of a whole store, parents first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npuprof import checks
from npuprof.catalog import releases
from npuprof.edit import migration
from npuprof.edit.changed import ChangedStore, build_opener, resolve_all, resolve_apart
from npuprof.edit.dependents import find_dependents, require_valid_dependents
from npuprof.edit.families import plan_renames
from npuprof.edit.migration import Migration, check_rules
from npuprof.edit.migration_steps import load_migration_steps
from npuprof.edit.moves import Upgrade
from npuprof.edit.preset_file import PresetFile, read_preset_file, require_writable_store
from npuprof.model import Context, Finding, NpuprofError, Record, raise_any
from npuprof.report import output
from npuprof.report.isolating import isolate_faults
from npuprof.resolve import contexts
from npuprof.resolve.config import Config
from npuprof.store.folder import Folder
from npuprof.store.sources.lookups import Lookups
from npuprof.store.spec import Workspace


class Outcome(Record):
    """A migration, the preset resolved before and after it, and the remaining decisions."""

    moved: Migration
    before: Config
    after: Config
    decisions: list[Finding]


def migrate_file(file: PresetFile, context: Context, upgrade: Upgrade) -> Outcome:
    """Return a preset migrated to the releases of an upgrade without writing it.

    Raises NpuprofError.
    """
    profile = file.profile
    before = resolve_apart(profile, context)
    moved = migration.migrate_profile(profile, before, before, upgrade)
    after = resolve_apart(file.parse_changed(moved.text), context)
    findings = list(moved.findings)
    if isinstance(profile.home, Folder) and moved.made:
        dependents = [
            profile.home.profile(name) for name in find_dependents(profile.home, profile.name)
        ]
        findings += migration.check_dependents(moved.made, dependents, upgrade.flags)
        findings += check_rules(Lookups().load_policy(profile.home), {profile.name: moved.made})
    moved = moved._replace(findings=tuple(findings))
    return Outcome(moved, before, after, _list_decisions(moved, after, before, upgrade))


def _list_decisions(
    moved: Migration, after: Config, before: Config, upgrade: Upgrade
) -> list[Finding]:
    """Return the remaining decisions: skipped steps, all errors of the result, and new warnings."""
    reported = {finding.key for finding in moved.findings}
    since = upgrade.find_all_since(before)
    versions = tuple((axis, each) for axis, each in since.items() if axis != releases.CANN)
    # a warning is new if the releases from which the preset is moved do not have it
    there = Context(cann=since.get(releases.CANN), versions=versions)
    was = (since and contexts.resolve_elsewhere(before, there)) or before
    known = {(finding.code, finding.key) for finding in checks.check_config(was)}
    others = (
        finding
        for finding in checks.check_config(after)
        # a skipped step explains its key better than the rule that it breaks
        if finding.key not in reported
        and (
            finding.severity == "error"
            or (finding.severity == "warning" and (finding.code, finding.key) not in known)
        )
    )
    return checks.fold_findings((*moved.findings, *others))


def require_matching_dependents(outcome: Outcome, file: PresetFile, workspace: Workspace) -> None:
    """Raise NpuprofError if dependents still use the old key, or would have new errors."""
    outdated = [
        finding
        for finding in outcome.moved.findings
        if finding.code == "NP513" and finding.profiles != (outcome.after.name,)
    ]
    if outdated:
        output.print_note(
            "nothing written: presets that extend it set the old key; --all migrates them too, "
            "--no-check writes it anyway"
        )
        raise NpuprofError(finding._replace(severity="error") for finding in outdated)
    require_valid_dependents(workspace, file.path, file.profile, outcome.moved.text)


class StoreMigration(Record):
    """A store migrated to a release: the changed files with their new texts, and each outcome.

    ``rules`` are findings about team rules, also included in ``decisions``. ``open_migrated`` opens
    the migrated store.
    """

    files: list[tuple[PresetFile, str]]
    outcomes: list[Outcome]
    decisions: list[Finding]
    rules: list[Finding]
    open_migrated: Callable[[Context], Workspace]


def migrate_store(home: Folder, context: Context, upgrade: Upgrade) -> StoreMigration:
    """Return all presets of a store migrated to the releases of an upgrade, without writing.

    Raises NpuprofError if a preset cannot be read or resolved, or causes an internal error.
    """
    require_writable_store(home)
    before = _require_all(build_opener(home)(context))
    files, moved = _migrate_all(before, ChangedStore(home), context, upgrade)
    open_migrated = build_opener(
        home, {file.profile.name: (file.source, text) for file, text in files}
    )
    after = _require_all(open_migrated(context))
    rules = check_rules(
        Lookups().load_policy(home), {name: migrated.made for name, migrated in moved.items()}
    )
    outcomes = []
    faults: list[Finding] = []
    for name, done in moved.items():
        with isolate_faults(home.cite_file(f"{name}.toml"), faults, name):
            decisions = _list_decisions(done, after[name], before[name], upgrade)
            outcomes.append(Outcome(done, before[name], after[name], decisions))
    raise_any(faults)
    decisions = [finding for outcome in outcomes for finding in outcome.decisions]
    return StoreMigration(
        files, outcomes, [*checks.fold_findings(decisions), *rules], rules, open_migrated
    )


def _migrate_all(
    before: Mapping[str, Config], changed: ChangedStore, context: Context, upgrade: Upgrade
) -> tuple[list[tuple[PresetFile, str]], dict[str, Migration]]:
    """Return the changed files with their new texts, and each preset's migration.

    The new texts are also set in ``changed``: children are migrated after their parents.
    """
    files = []
    moved = {}
    faults: list[Finding] = []
    plan = plan_renames(
        before.values(),
        load_migration_steps(context.cann or ""),
        lambda member: member.home is changed.below,
    )
    for name in sorted(before, key=lambda name: (len(before[name].lineage), name)):
        profile = changed.profile(name)
        with isolate_faults(changed.cite_file(f"{name}.toml"), faults, name):
            # Its parents' new values decide what is left.
            moved[name] = migration.migrate_profile(
                profile, resolve_apart(profile, context), before[name], upgrade, plan
            )
            if moved[name].text != profile.document.text:
                file = read_preset_file(changed.below, name)
                files.append((file, moved[name].text))
                changed.set_text(name, file.source, moved[name].text)
    raise_any(faults)
    return files, moved


def _require_all(workspace: Workspace) -> dict[str, Config]:
    """Return all presets of a store resolved. Raises NpuprofError with all failures."""
    problems: list[Finding] = []
    configs = resolve_all(workspace, problems)
    raise_any(problems)
    return configs
