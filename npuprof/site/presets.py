"""Each preset of a store as the pages show it: what it is for, its settings with their authors, its findings, what it is written as."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from npuprof import catalog, checks, renderers
from npuprof.compare.changes import find_unit_and_risk
from npuprof.document import keys
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Record
from npuprof.resolve import origins
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.store.parents import is_source_reference

#: How long a value may be on a page; the whole is in the file.
_LONGEST_VALUE = 2000


class Author(Record):
    """Who wrote a value: the preset, and the place of its file."""

    profile: str
    place: str


class SettingRow(Record):
    """One setting in force. ``losers`` are the values that it overruled, with who wrote them."""

    key: str
    section: str
    value: str
    unit: str = ""
    meaning: str = ""
    risk: tuple[str, ...] = ()
    author: Author | None = None
    losers: tuple[tuple[str, Author], ...] = ()


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

    @property
    def worst(self) -> str:
        """The gravest severity of its findings; an empty text where nothing was found."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in ("error", "warning", "info") if severity in found), "")


def read_preset_pages(workspace: spec.Workspace, names: Iterable[str]) -> list[PresetPage]:
    """Return the pages of presets, also of those that cannot be read or resolved."""
    return [_read_preset_page(workspace, name) for name in names]


def _read_preset_page(workspace: spec.Workspace, name: str) -> PresetPage:
    profile: Profile | None = None
    try:
        profile = workspace.profile(name)
        config = workspace.resolver.resolve_profile(profile)
    except NpuprofError as error:
        return _build_broken_page(name, profile, error.findings)
    return build_config_page(name, config, profile)


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
        tuple(build_setting_row(config, key) for key in config.ordered_settings()),
        tuple(_build_finding_row(finding) for finding in checks.fold_findings(verdict.findings)),
        tuple(_render_all(config)),
    )


def build_setting_row(config: Config, key: str) -> SettingRow:
    """Return one setting of a preset, with who wrote it and whom that overruled."""
    section, name = keys.split_section_and_name(key)
    unit, risk = find_unit_and_risk(key)
    meaning = str(catalog.find_record_texts(section, name).get("summary", ""))
    origin = config.origin(key)
    author = Author(origin.profile, str(origin)) if origin else None
    losers = tuple((_format_value(value), Author(by.profile, str(by))) for value, by in origins.find_overruled(config, key, ()))
    return SettingRow(key, section, _format_value(config.settings[key]), unit, meaning, risk, author, losers)


def _format_value(value: object) -> str:
    text = keys.format_toml_value(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text):,} characters)"


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
    with suppress(NpuprofError):
        from npuprof.renderers.environment import collect_env_variables
        from npuprof.renderers.shell import SHELLS, format_export_lines

        found, _ = collect_env_variables(config, None, "./npuprof-files", False)
        yield RenderedText("environment (bash)", format_export_lines(SHELLS["bash"], found))


def list_parent_names(page: PresetPage) -> list[str]:
    """Return whom a preset extends, by name: of this store without their versions, of another as they are written."""
    return [reference if is_source_reference(reference) else reference.partition("@")[0] for reference in page.parents]
