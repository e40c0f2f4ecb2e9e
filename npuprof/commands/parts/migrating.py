"""Presets moved to another release: one with its file, or all of a store, parents first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from npuprof import checks, document
from npuprof.commands.parts.alongside import find_baseline_files, format_baseline_change, tell_outdated_blocks
from npuprof.commands.parts.baselines import carry_marks, plan_changed_baselines
from npuprof.commands.parts.migrating_project import MovedProject, migrate_rules, set_project_text
from npuprof.document.profile import Profile
from npuprof.edit import migration
from npuprof.edit.families import plan_renames
from npuprof.edit.heirs import refuse_broken_heirs
from npuprof.edit.migration import MadeStep, Migration
from npuprof.edit.migration_rules import check_rules
from npuprof.edit.migration_steps import load_migration_steps
from npuprof.edit.preset_file import PresetFile, format_difference, read_preset_file, refuse_builtin
from npuprof.model import Context, Finding, NpuprofError, Record
from npuprof.report import output
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.isolating import isolate_faults
from npuprof.report.text import escape_controls
from npuprof.report.writing import Wanted
from npuprof.resolve.config import Config
from npuprof.store import Folder, spec


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
        lines += self.format_steps()
        return "".join(f"{line}\n" for line in lines) + format_findings(self.left, coloured)

    def format_steps(self) -> list[str]:
        """Return the steps that were made, and why, a line each."""
        whys = [(made, made.step.why) for made in self.moved.made]
        told = [f"{escape_controls(str(made))} ({why[0].lower()}{why[1:].rstrip('.')})" for made, why in whys]
        return told + [escape_controls(str(one)) for one in self.moved.carried]

    def build_fields(self) -> dict[str, Any]:
        """Return the fields of the JSON form."""
        from npuprof.compare.changes import compare_configs
        from npuprof.compare.data import build_change_dict

        return {
            "preset": self.after.name,
            "changes": [build_change_dict(change) for change in compare_configs(self.before, self.after)],
            "steps": [
                {"rule": made.step.rule, "option": made.step.option, "to": made.step.to or None, "before": made.before,
                 "after": made.after, "loss": made.step.loss, "why": made.step.why}
                for made in self.moved.made
            ],
            "carried": [
                {"option": one.step.option, "to": one.step.to, "path": list(one.path)} for one in self.moved.carried
            ],
            "findings": [build_finding_dict(finding) for finding in self.left],
        }  # fmt: skip


def migrate_file(file: PresetFile, store: str | None, context: Context, since: str = "") -> Outcome:
    """Return a preset moved to a release, nothing written; it comes from ``since`` where it names none. Raises NpuprofError."""
    profile = file.profile
    before = _resolve_profile(profile, store, context)
    moved = migration.migrate_profile(profile, before, str(context.cann), since)
    after = _resolve_profile(file.parse_changed(moved.text), store, context)
    heirs = _find_heirs(profile, store, context) if moved.made else []
    told = migration.check_heirs(moved.made, heirs, str(context.cann))
    if isinstance(profile.home, Folder) and moved.made:
        told += check_rules(profile.home.load_policy(), {profile.name: moved.made}, str(context.cann))
    moved = moved._replace(findings=(*moved.findings, *told))
    return Outcome(moved, before, after, _list_left(moved, after, before))


def _resolve_profile(profile: Profile, store: str | None, context: Context) -> Config:
    workspace = spec.Workspace(store, context)
    if isinstance(profile.home, Folder):
        workspace.use_store(profile.home)
    return workspace.resolver.resolve_profile(profile)


def _find_heirs(profile: Profile, store: str | None, context: Context) -> list[Profile]:
    """Return the presets of the same store that extend a preset, those left out that cannot be read.

    Raises NpuprofError where npuprof fails on one: it may be such a preset.
    """
    if not isinstance(profile.home, Folder):
        return []
    workspace = spec.Workspace(store, context)
    workspace.use_store(profile.home)
    found = []
    faults: list[Finding] = []
    for name in profile.home.names():
        with suppress(NpuprofError), isolate_faults(profile.home.cite_file(f"{name}.toml"), faults, name):
            other = profile.home.profile(name)
            lineage = workspace.resolver.lineages.find_lineage(other)[:-1]
            if any(one.document.source == profile.document.source for one in lineage):
                found.append(other)
    if faults:
        raise NpuprofError(faults)
    return found


def _list_left(moved: Migration, after: Config, before: Config) -> list[Finding]:
    """Return what is left to decide: steps not made, and what the checks say of the result in that release."""
    told = {finding.key for finding in moved.findings}
    known = {(finding.code, finding.key) for finding in checks.check_config(before)}
    brought = [
        finding
        for finding in checks.check_config(after)
        if finding.key not in told
        and (finding.severity == "error" or (finding.severity == "warning" and (finding.code, finding.key) not in known))
    ]
    return checks.fold_findings([*moved.findings, *brought])


def refuse_to_part_heirs(outcome: Outcome, file: PresetFile, store: str | None) -> None:
    """Raise NpuprofError where presets that build on a migrated one still mean its old key, or would have errors they have not now."""
    parted = [finding for finding in outcome.moved.findings if finding.code == "NP513" and finding.profiles != (outcome.after.name,)]
    if parted:
        told = "nothing written: presets that extend it set the old key; --all migrates them too, --no-check writes it anyway"
        output.tell_remark(told)
        raise NpuprofError(finding._replace(severity="error") for finding in parted)
    refuse_broken_heirs(store, file.parse_changed(outcome.moved.text), file.path)


class Alongside(Record):
    """What goes with one migrated preset: baselines as they shall be, and a remark on scripts."""

    baselines: list[Wanted]
    remarks: tuple[str, ...]


def plan_alongside(outcome: Outcome, file: PresetFile, store: str | None) -> Alongside:
    """Return what goes with a migrated preset of a store."""
    home = file.profile.home
    if not isinstance(home, Folder) or outcome.moved.text == file.text:
        return Alongside([], ())
    new = file.parse_changed(outcome.moved.text)

    def open_migrated(asked: Context) -> spec.Workspace:
        workspace = spec.Workspace(store, asked)
        workspace.store.lay_over(Profile(new.document, home=workspace.store))
        return workspace

    baselines = _carry_baselines(home, {new.name: outcome.moved.made}, open_migrated)
    return Alongside(baselines, tell_outdated_blocks(home, store, open_migrated))


def _carry_baselines(
    home: Folder, made: Mapping[str, Sequence[MadeStep]], open_migrated: Callable[[Context], spec.Workspace]
) -> list[Wanted]:
    """Return the baselines of the repository as they shall be: what is known of an old key is known of the new one."""
    keys = {home.profile_path(name): renamed for name, steps in made.items() if (renamed := migration.list_renamed_keys(steps))}
    if not keys:
        return []

    def list_findings() -> list[Finding]:
        workspace = open_migrated(Context())
        found: list[Finding] = []
        for name in home.names():
            with suppress(NpuprofError):
                found += checks.check_config(workspace.resolver.resolve_profile(workspace.store.profile(name)))
        return checks.fold_findings(found)

    return plan_changed_baselines(find_baseline_files(home), lambda known: carry_marks(known, keys, list_findings), [])


class StoreMigration(Record):
    """All presets of a store moved to a release: the files that change with their new texts, and what came of each preset.

    ``project`` is what becomes of the rules of the team; what is left to do in them is in ``left`` as well. ``baselines`` go along,
    and ``remarks`` tell of scripts.
    """

    files: list[tuple[PresetFile, str]]
    outcomes: list[Outcome]
    left: list[Finding]
    project: MovedProject
    baselines: list[Wanted]
    remarks: tuple[str, ...]

    def list_wanted(self) -> list[Wanted]:
        """Return all files as they shall be."""
        return [*(file.build_wanted(text) for file, text in self.files), *self.project.wanted, *self.baselines]

    def format_text(self, coloured: bool) -> str:
        """Return the steps, what changes as a unified diff, and what is left to decide."""
        steps = [f"{escape_controls(outcome.after.name)}: {line}\n" for outcome in self.outcomes for line in outcome.format_steps()]
        steps += [f"{escape_controls(str(due))}\n" for due in self.project.made]
        shown = [format_difference(file.source, file.text, text) for file, text in self.files]
        shown += [self.project.difference, *map(format_baseline_change, self.baselines)]
        return "".join([*steps, *shown]) + format_findings(self.left, coloured)

    def build_fields(self, release: str) -> dict[str, Any]:
        """Return the fields of the JSON form."""
        told = [outcome.build_fields() for outcome in self.outcomes]
        return {
            "schema": "npuprof.migrate-store/1",
            "cann": release,
            "files": [*(file.source for file, _ in self.files), *(one.path for one in (*self.project.wanted, *self.baselines))],
            "presets": [one for one in told if one["changes"] or one["steps"] or one["carried"] or one["findings"]],
            "rules": [build_finding_dict(finding) for finding in self.project.left],
            "rewritten_rules": [{"code": due.rule.code, **due.texts} for due in self.project.made],
        }


def migrate_store(store: str | None, context: Context, since: str = "") -> StoreMigration:
    """Return all presets of a store moved to a release, nothing written; those that name none come from ``since``.

    Raises NpuprofError where one cannot be read or resolved, or npuprof fails on one.
    """
    home, laid = (spec.Workspace(store, context).store for _ in range(2))
    refuse_builtin(home)
    before = _resolve_all(home, store, context)
    files: list[tuple[PresetFile, str]] = []
    moved: dict[str, Migration] = {}
    steps = load_migration_steps(str(context.cann))
    plan = plan_renames(before.values(), steps, lambda member: member.home is home)
    faults: list[Finding] = []
    for name in sorted(before, key=lambda name: (len(before[name].lineage), name)):
        profile = laid.profile(name)
        with isolate_faults(home.cite_file(f"{name}.toml"), faults, name):
            # What its parents are by now decides what is left to do in it.
            moved[name] = migration.migrate_profile(profile, _resolve_profile(profile, store, context), str(context.cann), since, plan)
            if moved[name].text != profile.document.text:
                file = read_preset_file(home, name)
                files.append((file, moved[name].text))
                laid.lay_over(Profile(document.parse_document(name, file.source, moved[name].text), home=laid))
    if faults:
        raise NpuprofError(faults)
    made = {name: one.made for name, one in moved.items()}
    texts = {file.profile.name: (file.source, text) for file, text in files}

    def open_migrated(asked: Context, project: str | None = None) -> spec.Workspace:
        workspace = spec.Workspace(store, asked)
        for name, (source, text) in texts.items():
            workspace.store.lay_over(Profile(document.parse_document(name, source, text), home=workspace.store))
        if project is not None:
            set_project_text(workspace.store, project)
        return workspace

    def resolve_beside(project: str) -> dict[str, Config]:
        return _resolve_all(open_migrated(context, project).store, store, context)

    project = migrate_rules(home, made, before, resolve_beside, str(context.cann))
    after = resolve_beside(project.text) if project.made else _resolve_all(laid, store, context)
    baselines = _carry_baselines(home, made, lambda asked: open_migrated(asked, project.text or None))
    remarks = tell_outdated_blocks(home, store, open_migrated) if files else ()
    heirs: dict[str, list[Profile]] = {}
    for config in after.values():
        for member in config.lineage[:-1]:
            if made.get(member.key):
                heirs.setdefault(member.key, []).append(config.lineage[-1])
    outcomes = []
    for name, done in moved.items():
        with isolate_faults(home.cite_file(f"{name}.toml"), faults, name):
            told = migration.check_heirs(done.made, heirs.get(name, []), str(context.cann))
            done = done._replace(findings=(*done.findings, *told))
            outcomes.append(Outcome(done, before[name], after[name], _list_left(done, after[name], before[name])))
    if faults:
        raise NpuprofError(faults)
    return StoreMigration(files, outcomes, [*_fold(outcomes), *project.left], project, baselines, remarks)


def _resolve_all(home: Folder, store: str | None, context: Context) -> dict[str, Config]:
    """Return all presets of a store resolved. Raises NpuprofError with all that cannot be."""
    workspace = spec.Workspace(store, context)
    workspace.use_store(home)
    found: dict[str, Config] = {}
    problems: list[Finding] = []
    for name in home.names():
        try:
            with isolate_faults(home.cite_file(f"{name}.toml"), problems, name):
                found[name] = workspace.resolver.resolve_profile(home.profile(name))
        except NpuprofError as error:
            problems += error.findings
    if problems:
        raise NpuprofError(dict.fromkeys(problems))
    return found


def _fold(outcomes: Sequence[Outcome]) -> list[Finding]:
    return checks.fold_findings(finding for outcome in outcomes for finding in outcome.left)
