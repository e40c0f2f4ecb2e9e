"""Each preset of a store as the pages show it: what it is for, its settings with their authors, its findings, what it is written as."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from npuprof import checks, renderers
from npuprof.document.profile import Profile
from npuprof.model import SEVERITIES, Finding, NpuprofError, Record
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.files import format_clear_and_export_lines
from npuprof.renderers.shell import SHELLS
from npuprof.report.isolating import isolate_faults
from npuprof.resolve import contexts
from npuprof.resolve.config import Config
from npuprof.site.settings import Scope, SettingRow, build_compared_rows, build_setting_rows, list_scopes
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
    """The content of a preset's page. ``is_resolved`` is false if it could not be resolved; its findings say why.

    ``parents`` are as written in ``extends``, ``parent_names`` are names: of this store without their versions.
    """

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
    parent_names: tuple[str, ...] = ()
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

    @property
    def worst(self) -> str:
        """The gravest severity of its findings; an empty text if there is none."""
        return next((severity for severity, number in zip(SEVERITIES, self.counts, strict=True) if number), "")

    def drop_details(self) -> PresetPage:
        """Return the page with only what lists of presets show."""
        return self._replace(settings=(), texts=(), scopes=(), compared=())


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
        references = self.profile.extends if self.profile is not None else ()
        return [reference if is_source_reference(reference) else reference.partition("@")[0] for reference in references]


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


def build_page(preset: Resolved, top: str) -> PresetPage:
    """Return the page of a preset; ``top`` is the folder that files are cited from."""
    table = preset.profile.table if preset.profile is not None else {}
    texts: dict[str, Any] = {name: str(table.get(name, "")) for name in ("description", "owner", "scenario", "cann", "deprecated")}
    page = PresetPage(
        preset.name,
        preset.config is not None,
        preset.profile.document.source if preset.profile is not None else "",
        **texts,
        parents=preset.profile.extends if preset.profile is not None else (),
        parent_names=tuple(preset.parents),
        findings=tuple(map(_build_finding_row, preset.problems)),
    )
    shown: PresetPage = drop_folder(_add_config(page, preset.config) if preset.config is not None else page, top)
    return shown


def _add_config(page: PresetPage, config: Config) -> PresetPage:
    """Return a page with what is known of a preset that can be resolved."""
    verdict = checks.judge_config(config, notes=True)
    settings = build_setting_rows(config)
    return page._replace(
        scenario=config.scenario or "",
        cann=config.cann or "",
        products=tuple(config.products),
        abstract=config.abstract,
        digest=config.digest,
        lineage=tuple(member.name for member in config.lineage[:-1]),
        settings=settings,
        findings=tuple(map(_build_finding_row, checks.fold_findings(verdict.findings))),
        texts=tuple(_render_all(config, any(finding.severity == "error" for finding in verdict.findings))),
        scopes=tuple(list_scopes(config)),
        compared=build_compared_rows(config, settings),
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
    sidecars: dict[str, str] = {}

    def resolve_for(target: str) -> tuple[Config | None, str]:
        """Return what is written there, and why it is refused."""
        differs = by_target or target in _TOLD_CONTEXT
        there = contexts.resolve_elsewhere(config, config.context._replace(target=target)) if differs else config
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
        sidecars |= rendered.sidecars
        yield RenderedText(name, rendered.text)
    for name, text in sidecars.items():
        yield RenderedText(f"{name}, a file beside the code", text)
    there, reason = resolve_for("env")
    yield from [RenderedText("exports", "", reason)] if reason or there is None else _export_to_all(there)


def _find_refusal(config: Config | None) -> str:
    """Return why a preset is not written: its errors there; an empty text where it has none."""
    if config is None:
        return "it cannot be resolved for this target"
    return _join_messages([finding for finding in checks.check_before_export(config) if finding.severity == "error"])


def _join_messages(findings: Iterable[Finding]) -> str:
    return "; ".join(finding.message for finding in findings)


def _export_to_all(config: Config) -> Iterable[RenderedText]:
    """Yield the exports for the shells; those that are told the same share a text."""
    try:
        variables, _ = collect_env_variables(config, None, "./npuprof-files", False)
    except NpuprofError as error:
        yield RenderedText("exports", "", _join_messages(error.findings))
        return
    shells: dict[tuple[str, str], list[str]] = {}
    for name, shell in SHELLS.items():
        refused = [f"{variable}: {why}" for variable, text in variables.items() if (why := shell.refuses(text))]
        shells.setdefault(("", "; ".join(refused)) if refused else (format_clear_and_export_lines(config, name, variables), ""), []).append(
            name
        )
    for (text, reason), names in shells.items():
        yield RenderedText(f"exports for {', '.join(names)}", text, reason)
