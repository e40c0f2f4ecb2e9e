"""Build the files of a site from a store; the same input gives the same bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from importlib import resources
from itertools import chain, pairwise
from typing import Any

from npuprof.catalog import releases
from npuprof.catalog.code_pages import load_pages
from npuprof.checks import fold_findings
from npuprof.model import Fields, Finding, Record
from npuprof.renderers.outputs import check_store
from npuprof.report.html import read_template
from npuprof.report.isolating import isolate_faults
from npuprof.site import page_data
from npuprof.site.compatibility import build_matrices, build_upgrades, judge_everywhere
from npuprof.site.pages import Writer, build_catalogue, list_owners, list_shown
from npuprof.site.past import Past, read_past
from npuprof.site.presets import Details, Preset, build_details, describe_preset
from npuprof.site.setting_rows import Setting, build_compared_fields, build_settings
from npuprof.store import spec
from npuprof.store.checked import CheckedStore
from npuprof.system import PausedCollection, group_pairs

#: The number of examples for an empty comparison.
_EXAMPLES = 4


class SiteRequest(Record):
    """The request for a site: release of the upgrade matrix, further specs, scripts to survey.

    ``source_url`` is the URL of the repository, to which origins are linked.
    """

    release: str
    also: tuple[str, ...]
    scripts: tuple[tuple[str, tuple[Any, ...]], ...]
    source_url: str | None


def build_site(
    workspace: spec.Workspace, requested: SiteRequest, faults: list[Finding]
) -> dict[str, bytes]:
    """Return the files of a site by path. Raises NpuprofError.

    If npuprof fails on a preset, its page reports that, and so does ``faults``.
    """
    with PausedCollection():
        return _Building(workspace, requested, faults).build()


class _Building:
    def __init__(
        self, workspace: spec.Workspace, requested: SiteRequest, faults: list[Finding]
    ) -> None:
        self.faults = faults
        self.workspace = workspace
        self.requested = requested
        self.store = workspace.listed_store
        if os.path.isabs(self.store.label):  # files are cited as on any other machine
            self.store.label = os.path.basename(self.store.label)
        self.paths = page_data.name_pages(self.store.names())
        self.writer = Writer(os.path.basename(self.store.label) or self.store.label, self.paths)
        self.files: dict[str, bytes] = {}
        self.presets: list[Preset] = []
        self.settings: dict[str, list[tuple[str, str]]] = {}
        self.inherited: dict[Any, Setting] = {}
        self.cells: Fields = {}

    def build(self) -> dict[str, bytes]:
        report = check_store(CheckedStore(self.workspace))
        self.faults += chain(report.faults, *(preset.faults for preset in report.presets))
        presets = [describe_preset(self.workspace, preset) for preset in report.presets]
        past = read_past(self.store, presets)
        self.writer.link_line = partial(past.link_origin, self.requested.source_url)
        self.children = group_pairs(
            (name, preset.name) for preset in presets for name in dict.fromkeys(preset.parents)
        )
        sides = self._build_sides()
        paths = page_data.name_data([*(preset.name for preset in presets if preset.config), *sides])
        for preset in presets:
            self._add_preset(preset, past, paths)
        compared = {key for rows in self.settings.values() for key, _ in rows}
        for name, fields in sides.items():
            self.files[paths[name]] = page_data.build_side(name, fields)
            compared.update(row[0] for row in fields)
        shown = {
            "search.html": {},
            "compare.html": self._list_sides(tuple(paths)),
            "compatibility.html": self._build_compatibility(),
            **build_catalogue(page_data.count_settings(self.settings)),
            "rules.html": {"rows": load_pages().values()},
        }
        self.files |= self.writer.build_lists(
            {**list_shown(self.presets, fold_findings(report.by_preset[""]), past), **shown}
        )
        self.files |= self.writer.build_documentation()
        self.files["data/index.js"] = page_data.build_index(paths, compared)
        self.files["data/catalogue.js"] = page_data.build_catalogue()
        self.files["data/search.js"] = page_data.build_search(
            self.presets, self.paths, self.settings
        )
        self.files["static/site.css"] = read_template("page.css").encode()
        for script in resources.files("npuprof.site").joinpath("static").iterdir():
            self.files[f"static/{script.name}"] = script.read_bytes()
        return self.files

    def _build_compatibility(self) -> Fields:
        configs = [preset.config for preset in self.presets if preset.config]
        named = sorted({axis for config in configs for axis in config.versions} - {releases.CANN})
        moves = {releases.CANN: self.requested.release}
        moves |= {axis: releases.find_stable_lines(axis)[0] for axis in named}
        upgrades = {
            releases.format_releases({axis: release}): build_upgrades(
                self.presets, axis, release, self.faults
            )
            for axis, release in moves.items()
        }
        return {
            "matrices": build_matrices(self.cells),
            "unresolved": [preset.name for preset in self.presets if preset.config is None],
            "upgrades": upgrades,
            "scripts": self.requested.scripts,
        }

    def _list_sides(self, names: tuple[str, ...]) -> Fields:
        """Return the sides of comparisons, with examples.

        Presets with a parent come first, then presets with the same parents.
        """
        runnable = [
            preset for preset in self.presets if preset.config and not preset.config.abstract
        ]
        shown = {preset.name for preset in runnable}
        examples = [
            (parent, preset.name)
            for preset in runnable
            for parent in preset.parents
            if parent in shown
        ]
        examples += [
            (before.name, preset.name)
            for before, preset in pairwise(runnable)
            if before.parents == preset.parents
        ]
        return {"names": names, "examples": examples[:_EXAMPLES]}

    def _add_preset(self, preset: Preset, past: Past, paths: dict[str, str]) -> None:
        """Add the page of a preset, or one with its internal error, which cannot be compared."""
        failed: list[Finding] = []
        with isolate_faults(self.store.cite_file(f"{preset.name}.toml"), failed, preset.name):
            self._build_preset(preset, past, paths)
        if failed:
            self.faults += failed
            # a broken preset has no side in comparisons
            paths.pop(preset.name, None)
            self._build_preset(Preset(preset.name, None, None, tuple(failed)), past, paths)

    def _build_preset(self, preset: Preset, past: Past, paths: Mapping[str, str]) -> None:
        name = preset.name
        path = self.paths[name]
        config = preset.config
        findings = preset.findings
        details = build_details(config, findings, self.inherited) if config else Details()
        self.cells[name] = judge_everywhere(config, findings) if config else ()
        self.files[path] = self.writer.fill(
            "preset.html",
            path,
            name,
            preset=preset,
            about=preset.head,
            details=details,
            children=self.children.get(name, ()),
            owners=list_owners(preset, past),
            versions=past.versions.get(name, ()),
            commits=past.commits.get(name, ()),
        ).encode()
        if side := paths.get(name):
            self.files[side] = page_data.build_side(name, details.compared)
            self.settings[name] = page_data.list_values(details.compared)
        self.presets.append(preset)

    def _build_sides(self) -> dict[str, list[list[Any]]]:
        """Return the settings of the further specs to compare. Raises NpuprofError."""
        return {
            reference: build_compared_fields(config, build_settings(config, {}))
            for reference in self.requested.also
            if reference not in self.paths
            for config in [self.workspace.resolve_spec(reference)]
        }
