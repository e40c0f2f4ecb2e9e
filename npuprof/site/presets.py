"""Each preset of a store as the pages show it: what it is for, its settings with their authors, its findings, what it is written as."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from npuprof import checks, renderers
from npuprof.document.profile import Profile
from npuprof.model import SEVERITIES, Finding, NpuprofError, Record
from npuprof.report.isolating import isolate_faults
from npuprof.resolve import contexts
from npuprof.resolve.config import Config
from npuprof.site.compared import build_compared_rows
from npuprof.site.settings import Scope, SettingRow, build_setting_rows, list_scopes
from npuprof.store import ReadOnceStore, spec
from npuprof.store.parents import is_source_reference

#: Targets whose text says what it was resolved for.
_TOLD_CONTEXT = ("toml", "json")


class FindingRow(Record):
    """One finding, in texts."""

    code: str
    severity: str
    message: str
    why: str = ""
    hint: str = ""
    place: str = ""
    key: str = ""


class RenderedText(Record):
    """A preset written for one target: its text, or why there is none."""

    target: str
    text: str
    reason: str = ""


class PresetPage(Record):
    """What there is to tell of one preset. ``is_resolved`` is false where it could not be; its findings say why."""

    name: str
    is_resolved: bool
    place: str = ""
    description: str = ""
    owner: str = ""
    scenario: str = ""
    cann: str = ""
    products: tuple[str, ...] = ()
    abstract: bool = False
    deprecated: str = ""
    digest: str = ""
    parents: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    settings: tuple[SettingRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    texts: tuple[RenderedText, ...] = ()
    scopes: tuple[Scope, ...] = ()
    compared: tuple[SettingRow, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """How many errors, warnings and notes were found."""
        return tuple(sum(finding.severity == severity for finding in self.findings) for severity in SEVERITIES)


class Told(Record):
    """What the lists tell of one preset. ``counts`` are the numbers of its errors, warnings and notes."""

    name: str
    is_resolved: bool
    description: str
    owner: str
    scenario: str
    cann: str
    abstract: bool
    parents: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def worst(self) -> str:
        """The gravest severity of its findings; an empty text where nothing was found."""
        return next((severity for severity, number in zip(SEVERITIES, self.counts, strict=True) if number), "")


class Resolved(Record):
    """One preset of the store: read and resolved, or what there is of that, and why no more."""

    name: str
    profile: Profile | None = None
    config: Config | None = None
    problems: tuple[Finding, ...] = ()

    @property
    def lineage(self) -> tuple[str, ...]:
        """Whom it is made of besides itself."""
        return tuple(member.name for member in self.config.lineage[:-1]) if self.config is not None else ()

    @property
    def parents(self) -> list[str]:
        """Whom it extends, by name: of this store without their versions, of another as they are written."""
        said = self.profile.extends if self.profile is not None else ()
        return [reference if is_source_reference(reference) else reference.partition("@")[0] for reference in said]


def find_top(store: ReadOnceStore) -> str:
    """Return the folder that files are cited from: that of the store, so that pages are the same on every machine. Empty: as they are."""
    top = f"{os.path.dirname(store.label)}/"
    return top if os.path.isabs(top) else ""


def resolve_presets(workspace: spec.Workspace, names: Iterable[str], faults: list[Finding]) -> list[Resolved]:
    """Return presets resolved, as far as they can be; where npuprof fails on one, it goes to ``faults`` as well."""
    return [_resolve_preset(workspace, name, faults) for name in names]


def drop_folder(value: Any, folder: str) -> Any:
    """Return a value with the name of a folder taken out of all its texts, where files are cited by it."""
    if not folder or folder == "/":
        return value
    if isinstance(value, str):
        return value.replace(folder, "")
    if isinstance(value, tuple):
        return tuple(drop_folder(item, folder) for item in value)
    return (
        value._replace(**{name: drop_folder(item, folder) for name, item in value._asdict().items()})
        if isinstance(value, Record)
        else value
    )


def _resolve_preset(workspace: spec.Workspace, name: str, faults: list[Finding]) -> Resolved:
    profile: Profile | None = None
    problems: list[Finding] = []
    try:
        with isolate_faults(workspace.listed_store.cite_file(f"{name}.toml"), problems, name):
            profile = workspace.profile(name)
            return Resolved(name, profile, workspace.resolver.resolve_profile(profile))
    except NpuprofError as error:
        return Resolved(name, profile, None, tuple(error.findings))
    faults += problems
    return Resolved(name, profile, None, tuple(problems))


def tell_preset(one: Resolved, counts: tuple[int, ...]) -> Told:
    """Return what the lists tell of a preset, given how much is found in it."""
    table = one.profile.table if one.profile is not None else {}
    description, owner, scenario, cann = (str(table.get(key, "")) for key in ("description", "owner", "scenario", "cann"))
    config = one.config
    if config is not None:
        scenario, cann = config.scenario or "", config.cann or ""
    is_abstract = config is not None and config.abstract
    return Told(one.name, config is not None, description, owner, scenario, cann, is_abstract, tuple(one.parents), counts)


def build_page(one: Resolved, top: str) -> PresetPage:
    """Return the page of a preset; ``top`` is the folder that files are cited from."""
    if one.profile is not None and one.config is not None:
        return _drop_folder_of_page(_build_config_page(one.name, one.config, one.profile), top)
    told = tuple(_build_finding_row(finding) for finding in one.problems)
    if one.profile is None:
        return _drop_folder_of_page(PresetPage(one.name, False, findings=told), top)
    table = one.profile.table
    description, owner, scenario, cann = (str(table.get(key, "")) for key in ("description", "owner", "scenario", "cann"))
    page = PresetPage(one.name, False, one.profile.document.source, description, owner, scenario, cann)
    return _drop_folder_of_page(page._replace(parents=one.profile.extends, findings=told), top)


def _drop_folder_of_page(page: PresetPage, top: str) -> PresetPage:
    found: PresetPage = drop_folder(page, top)
    return found


def _build_config_page(name: str, config: Config, profile: Profile) -> PresetPage:
    table = profile.table
    verdict = checks.judge_config(config, notes=True)
    settings = build_setting_rows(config)
    return PresetPage(
        name,
        True,
        profile.document.source,
        str(table.get("description", "")),
        str(table.get("owner", "")),
        config.scenario or "",
        config.cann or "",
        tuple(config.products),
        config.abstract,
        str(table.get("deprecated", "")),
        config.digest,
        profile.extends,
        tuple(member.name for member in config.lineage[:-1]),
        settings,
        tuple(_build_finding_row(finding) for finding in checks.fold_findings(verdict.findings)),
        tuple(_render_all(config, any(finding.severity == "error" for finding in verdict.findings))),
        tuple(list_scopes(config)),
        build_compared_rows(config, settings),
    )


def _build_finding_row(finding: Finding) -> FindingRow:
    line = finding.line
    place = f"{finding.path}:{line}" if finding.path and line else finding.path or ""
    return FindingRow(finding.code, finding.severity, finding.message, finding.why, finding.hint, place, finding.key)


def _render_all(config: Config, has_errors: bool) -> Iterable[RenderedText]:
    """Yield what ``render`` and ``env`` write of a preset, or why they refuse it, and the files that the code needs beside it."""
    if config.abstract:
        return
    by_target = any("target" in override.match for profile in config.lineage for override in profile.overrides)
    refused = _find_refusal(config) if has_errors else ""
    beside: dict[str, str] = {}

    def resolve_for(target: str) -> tuple[Config | None, str]:
        """Return what is written there, and why it is refused."""
        told = by_target or target in _TOLD_CONTEXT
        there = contexts.resolve_elsewhere(config, config.context._replace(target=target)) if told else config
        return there, refused if there is config or not has_errors else _find_refusal(there)

    for name in renderers.MODULES:
        there, reason = resolve_for(name)
        if reason or there is None:
            yield RenderedText(name, "", reason)
            continue
        try:
            rendered = renderers.load_target(name).render(there)
        except NpuprofError as error:
            yield RenderedText(name, "", _join_messages(error.findings))
            continue
        beside |= rendered.sidecars
        yield RenderedText(name, rendered.text)
    for name, text in beside.items():
        yield RenderedText(f"{name}, a file beside the code", text)
    there, reason = resolve_for("env")
    yield from [RenderedText("exports", "", reason)] if reason or there is None else _export_to_all(there)


def _find_refusal(config: Config | None) -> str:
    """Return why a preset is not written: its errors there; an empty text where it has none."""
    if config is None:
        return "it cannot be resolved for this target"
    return _join_messages([one for one in checks.check_before_export(config) if one.severity == "error"])


def _join_messages(findings: Iterable[Finding]) -> str:
    return "; ".join(finding.message for finding in findings)


def _export_to_all(config: Config) -> Iterable[RenderedText]:
    """Yield the exports for the shells; those that are told the same share a text."""
    from npuprof.renderers.environment import collect_env_variables
    from npuprof.renderers.files import format_clear_and_export_lines
    from npuprof.renderers.shell import SHELLS

    try:
        found, _ = collect_env_variables(config, None, "./npuprof-files", False)
    except NpuprofError as error:
        yield RenderedText("exports", "", _join_messages(error.findings))
        return
    shells: dict[tuple[str, str], list[str]] = {}
    for name, shell in SHELLS.items():
        refused = [f"{variable}: {why}" for variable, text in found.items() if (why := shell.refuses(text))]
        shells.setdefault(("", "; ".join(refused)) if refused else (format_clear_and_export_lines(config, name, found), ""), []).append(
            name
        )
    for (text, reason), names in shells.items():
        yield RenderedText(f"exports for {', '.join(names)}", text, reason)
