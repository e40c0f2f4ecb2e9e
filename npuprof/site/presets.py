"""Each preset of a store for the pages: claims, settings, findings, rendered texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import compress
from typing import Any

from npuprof import checks, renderers
from npuprof.checks.store import PresetReport
from npuprof.compare.changes import Change
from npuprof.document import keys
from npuprof.document.profile import Profile
from npuprof.model import SEVERITIES, Fields, Finding, NpuprofError, Record, select_errors
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import format_clear_and_export_lines
from npuprof.renderers.shell import SHELLS
from npuprof.resolve import contexts
from npuprof.resolve.config import Config
from npuprof.site.catalogue import find_framework
from npuprof.site.setting_rows import Setting, build_compared_fields, build_settings, list_scopes
from npuprof.store import is_source_reference, spec

#: Targets whose text includes the context.
_WITH_CONTEXT = ("toml", "json")


class RenderedText(Record):
    """A preset rendered for one target: its text, or why there is none.

    ``is_main`` if the preset is for this target; others only fit it.
    """

    target: str
    text: str
    reason: str = ""
    is_main: bool = False


class Preset(Record):
    """One preset of the store, read and resolved as far as possible, with its findings."""

    name: str
    profile: Profile | None
    config: Config | None
    findings: tuple[Finding, ...]

    @cached_property
    def head(self) -> Fields:
        """Its own ``[profile]`` keys, and inherited ones if it can be resolved.

        An empty string is unset.
        """
        table = self.profile.table if self.profile else {}
        own = {
            name: str(table.get(name, ""))
            for name in ("description", "owner", "deprecated", "scenario", "cann")
        }
        config = self.config
        if config is None:
            return {
                **own,
                "versions": {},
                "axes": {},
                "products": (),
                "frameworks": (),
                "abstract": False,
                "digest": "",
            }
        return {
            **own,
            "scenario": config.scenario or "",
            "cann": config.cann or "",
            "products": tuple(config.products),
            "frameworks": _list_frameworks(config),
            "versions": config.versions,
            "axes": config.axes,
            "abstract": config.abstract,
            "digest": config.digest,
        }

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The numbers of errors, warnings and notes."""
        return tuple(
            sum(finding.severity == severity for finding in self.findings)
            for severity in SEVERITIES
        )

    @cached_property
    def worst(self) -> str:
        """The worst severity of its findings; an empty string if there are none."""
        return next(compress(SEVERITIES, self.counts), "")

    @property
    def parents(self) -> list[str]:
        """Its parents by name: those of this store without versions, others as written."""
        references = self.profile.extends if self.profile else ()
        return [
            reference if is_source_reference(reference) else reference.partition("@")[0]
            for reference in references
        ]


class Details(Record):
    """The additional data of a preset's page, and its side of a comparison."""

    settings: tuple[Setting, ...] = ()
    texts: tuple[RenderedText, ...] = ()
    scopes: tuple[tuple[str, list[Change]], ...] = ()
    compared: Sequence[list[Any]] = ()

    @property
    def row_count(self) -> int:
        """The number of rows of all settings."""
        return sum([len(setting.rows) for setting in self.settings])


def _list_frameworks(config: Config) -> tuple[str, ...]:
    """Return the frameworks that read a preset's settings.

    ATC reads the options of an offline conversion.
    """
    is_offline = config.scenario == "offline-inference"
    names = (find_framework(*keys.split_section_and_name(key)) for key in config.ordered_settings())
    frameworks = (
        "ATC" if name == "TensorFlow" and is_offline else name
        for name in names
        if name not in ("", "CANN")
    )
    return tuple(dict.fromkeys(frameworks))


def describe_preset(workspace: spec.Workspace, report: PresetReport) -> Preset:
    """Return a preset of the store with its findings, errors first."""
    profile: Profile | None = None
    with suppress(Exception):  # its findings give the reason
        profile = workspace.profile(report.name)
    findings = sorted(
        checks.fold_findings((*report.findings, *report.faults)),
        key=lambda finding: SEVERITIES.index(finding.severity),
    )
    return Preset(report.name, profile, report.config, tuple(findings))


def build_details(
    config: Config, findings: tuple[Finding, ...], inherited: dict[Any, Setting]
) -> Details:
    """Return the additional data of a resolvable preset's page."""
    config.profile.document.find_positions()  # a page shows all of them
    texts = _sort_texts(config, [*_render_all(config, bool(select_errors(findings)))])
    settings = build_settings(config, inherited)
    compared = build_compared_fields(config, settings)
    return Details(settings, tuple(texts), tuple(list_scopes(config)), compared)


def _render_all(config: Config, has_errors: bool) -> Iterable[RenderedText]:
    """Yield the output of ``render`` and ``env`` for a preset, or why it is rejected.

    Sidecar files come with it.
    """
    if config.abstract:
        return
    has_target_overrides = any(
        "target" in override.match for profile in config.lineage for override in profile.overrides
    )
    refusal = _find_refusal(config) if has_errors else ""
    sidecars: dict[str, str] = {}

    def resolve_for(target: str) -> tuple[Config | None, str]:
        """Return the config for a target, and why it is rejected."""
        if not has_target_overrides and target not in _WITH_CONTEXT:
            return config, refusal  # equal for all these targets: resolved and checked once
        resolved = contexts.resolve_elsewhere(config, config.context._replace(target=target))
        if resolved is config or not has_errors:
            return resolved, refusal
        return resolved, _find_refusal(resolved)

    for name in renderers.list_fitting_targets(config):
        resolved, reason = resolve_for(name)
        if reason or resolved is None:
            yield RenderedText(name, "", reason)
            continue
        try:
            target = renderers.load_target(name)
            target.reject_offline(resolved)
            rendered = target.write(resolved, False)
        except NpuprofError as error:
            # the findings are built when they are read: the names of lost options are enough
            lost = error.names if isinstance(error, renderers.NotCarriedError) else ()
            reason = f"cannot carry {', '.join(lost)}" if lost else _join_messages(error.findings)
            yield RenderedText(name, "", reason)
        else:
            sidecars |= rendered.sidecars  # after all targets, as several write the same file
            yield RenderedText(name, rendered.text)
    for name, text in sidecars.items():
        yield RenderedText(f"{name}, a sidecar file", text)
    resolved, reason = resolve_for("env")
    if reason or resolved is None:
        yield RenderedText("exports", "", reason)
    else:
        yield from _export_to_all(resolved)


def _sort_texts(config: Config, texts: Sequence[RenderedText]) -> list[RenderedText]:
    """Return rendered texts, those that the preset is for first.

    These are the first target with most of its sections, sidecar files, and exports of variables.
    """
    index = renderers.load_target_index()
    sections = config.shared_sections
    used = {name for name in sections if sections[name] and name != "env"}

    def rank(name: str) -> tuple[int, bool]:
        written = 0 if name in _WITH_CONTEXT else len(used.intersection(index[name].sections))
        return written, name == "atc" and config.scenario == "offline-inference"

    targets = [text.target for text in texts if text.text and text.target in index]
    main = {max(targets, key=rank)} if used and targets else set()
    if sections["env"] or not main:
        main.update(text.target for text in texts if text.target.startswith("exports for bash"))
    marked = [
        text._replace(is_main=text.target in main or "sidecar" in text.target) for text in texts
    ]
    return sorted(marked, key=lambda text: not text.is_main)


def _find_refusal(config: Config | None) -> str:
    """Return why a preset is not rendered: its errors for the target; empty if there are none."""
    if config is None:
        return "it cannot be resolved for this target"
    return _join_messages(select_errors(checks.check_before_export(config)))


def _join_messages(findings: Iterable[Finding]) -> str:
    return "; ".join(finding.message for finding in findings)


def _export_to_all(config: Config) -> Iterable[RenderedText]:
    """Yield the exports for the shells; shells with equal exports share a text."""
    try:
        variables, _ = collect_env_variables(config, None, "./npuprof-files")
    except NpuprofError as error:
        yield RenderedText("exports", "", _join_messages(error.findings))
        return
    shells = defaultdict(list)
    for name, shell in SHELLS.items():
        faults = {variable: shell.refuses(text) for variable, text in variables.items()}
        reason = "; ".join(f"{variable}: {why}" for variable, why in faults.items() if why)
        lines = format_clear_and_export_lines(config, name, variables) if not reason else ""
        shells[lines, reason].append(name)
    for (text, reason), names in shells.items():
        yield RenderedText(f"exports for {', '.join(names)}", text, reason)
