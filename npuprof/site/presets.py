"""Each preset of a store as the pages show it: what it is for, its settings with their authors, its findings, what it is written as."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from npuprof import checks, renderers
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Record
from npuprof.resolve.config import Config
from npuprof.site.settings import Scope, SettingRow, build_setting_rows, list_scopes
from npuprof.store import spec
from npuprof.store.parents import is_source_reference


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

    @property
    def worst(self) -> str:
        """The gravest severity of its findings; an empty text where nothing was found."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in ("error", "warning", "info") if severity in found), "")


def read_presets(workspace: spec.Workspace, names: Iterable[str]) -> Iterator[tuple[PresetPage, Config | None]]:
    """Yield the pages of presets, and these resolved: None where one cannot be.

    Files are cited from the folder that the store lies in, so that the pages are the same on every machine.
    """
    top = f"{os.path.dirname(workspace.listed_store.label)}/"
    for name in names:
        page, config = _read_preset(workspace, name)
        yield drop_folder(page, top if os.path.isabs(top) else ""), config


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


def _read_preset(workspace: spec.Workspace, name: str) -> tuple[PresetPage, Config | None]:
    profile: Profile | None = None
    try:
        profile = workspace.profile(name)
        config = workspace.resolver.resolve_profile(profile)
    except NpuprofError as error:
        return _build_broken_page(name, profile, error.findings), None
    return build_config_page(name, config, profile), config


def _build_broken_page(name: str, profile: Profile | None, findings: Iterable[Finding]) -> PresetPage:
    told = tuple(_build_finding_row(finding) for finding in findings)
    if profile is None:
        return PresetPage(name, False, findings=told)
    description, owner, scenario, cann = (str(profile.table.get(key, "")) for key in ("description", "owner", "scenario", "cann"))
    return PresetPage(name, False, profile.document.source, description, owner, scenario, cann, parents=profile.extends, findings=told)


def build_config_page(name: str, config: Config, profile: Profile) -> PresetPage:
    """Return the page of a preset that is resolved."""
    table = profile.table
    verdict = checks.judge_config(config, notes=True)
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
        build_setting_rows(config),
        tuple(_build_finding_row(finding) for finding in checks.fold_findings(verdict.findings)),
        tuple(_render_all(config)),
        tuple(list_scopes(config)),
    )


def _build_finding_row(finding: Finding) -> FindingRow:
    line = finding.line
    place = f"{finding.path}:{line}" if finding.path and line else finding.path or ""
    return FindingRow(finding.code, finding.severity, finding.message, finding.why, finding.hint, place, finding.key)


def _render_all(config: Config) -> Iterable[RenderedText]:
    if config.abstract:
        return
    for name in renderers.MODULES:
        try:
            yield RenderedText(name, renderers.load_target(name).render(config).text)
        except NpuprofError as error:
            yield RenderedText(name, "", "; ".join(finding.message for finding in error.findings))
    yield from _export_to_all(config)


def _export_to_all(config: Config) -> Iterable[RenderedText]:
    """Yield the exports for the shells; those that are told the same share a text."""
    from npuprof.renderers.environment import collect_env_variables
    from npuprof.renderers.shell import SHELLS, format_export_lines

    try:
        found, _ = collect_env_variables(config, None, "./npuprof-files", False)
    except NpuprofError as error:
        yield RenderedText("exports", "", "; ".join(finding.message for finding in error.findings))
        return
    shells: dict[tuple[str, str], list[str]] = {}
    for name, shell in SHELLS.items():
        refused = [f"{variable}: {why}" for variable, text in found.items() if (why := shell.refuses(text))]
        shells.setdefault(("", "; ".join(refused)) if refused else (format_export_lines(shell, found), ""), []).append(name)
    for (text, reason), names in shells.items():
        yield RenderedText(f"exports for {', '.join(names)}", text, reason)


def list_parent_names(page: PresetPage) -> list[str]:
    """Return whom a preset extends, by name: of this store without their versions, of another as they are written."""
    return [reference if is_source_reference(reference) else reference.partition("@")[0] for reference in page.parents]
