"""Build the files of a site from a store; the same input gives the same bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from npuprof.model import Finding, Record
from npuprof.report.html import read_style
from npuprof.report.isolating import isolate_faults
from npuprof.resolve.config import Config
from npuprof.site import data
from npuprof.site.boards import Board, build_upgrades, judge_everywhere, list_columns
from npuprof.site.pages import Around, Content, Writer, list_owners
from npuprof.site.past import Past, read_past
from npuprof.site.presets import PresetPage, Resolved, build_page, drop_folder, find_top, resolve_presets
from npuprof.site.settings import SettingRow, build_compared_rows
from npuprof.store import spec


class Asked(Record):
    """What a site is asked for: the release of the upgrade board, further specs to compare with, what a release touches in scripts."""

    release: str
    also: tuple[str, ...] = ()
    scripts: tuple[tuple[str, tuple[Any, ...]], ...] = ()


def build_site(workspace: spec.Workspace, asked: Asked, faults: list[Finding]) -> dict[str, bytes]:
    """Return the files of a site by their paths. Raises NpuprofError.

    The page of a preset that npuprof fails on says so, which goes to ``faults`` as well.
    """
    return _Building(workspace, asked, faults).build()


class _Building:
    def __init__(self, workspace: spec.Workspace, asked: Asked, faults: list[Finding]) -> None:
        self.faults = faults
        self.configs: dict[str, Config] = {}
        self.workspace = workspace
        self.asked = asked
        self.store = workspace.listed_store
        self.top = find_top(self.store)
        self.names = self.store.names()
        self.paths = data.name_pages(self.names)
        self.writer = Writer(os.path.basename(self.store.label) or self.store.label, self.paths)
        self.files: dict[str, bytes] = {}
        self.pages: list[PresetPage] = []
        self.children: dict[str, list[str]] = {}
        self.settings: dict[str, list[tuple[str, str]]] = {}
        self.cells: dict[str, Any] = {}

    def build(self) -> dict[str, bytes]:
        presets = resolve_presets(self.workspace, self.names, self.faults)
        past = read_past(self.store, {preset.name: preset.lineage for preset in presets})
        for preset in presets:
            for name in dict.fromkeys(preset.parents):
                self.children.setdefault(name, []).append(preset.name)
        sides = self._build_sides()
        paths = data.name_data([*(preset.name for preset in presets if preset.config is not None), *sides])
        for preset in presets:
            self._add_preset(preset, past, paths)
        self.files |= {paths[name]: data.build_side(name, rows) for name, rows in sides.items()}
        content = Content(
            self.writer.store, tuple(self.pages), self.paths, past, Board(*list_columns(), self.cells),
            tuple(build_upgrades(self.configs, self.asked.release, self.faults)), self.asked.release, self.asked.scripts, tuple(paths),
            data.count_settings(self.settings),
        )  # fmt: skip
        self.files |= self.writer.build_lists(content)
        self.files |= self.writer.build_documentation()
        self.files["data/index.js"] = data.build_index(paths)
        self.files["data/search.js"] = data.build_search(self.pages, self.paths, self.settings)
        self.files["static/site.css"] = read_style().encode()
        for script in resources.files("npuprof.site").joinpath("static").iterdir():
            self.files[f"static/{script.name}"] = script.read_bytes()
        return self.files

    def _add_preset(self, preset: Resolved, past: Past, paths: dict[str, str]) -> None:
        """Add the page of a preset, or one that says that npuprof fails on it; such a one is no side to compare."""
        failed: list[Finding] = []
        with isolate_faults(self.store.cite_file(f"{preset.name}.toml"), failed, preset.name):
            self._build_preset(preset, past, paths)
        if failed:
            self.faults += failed
            paths.pop(preset.name, None)
            self._build_preset(Resolved(preset.name, None, None, tuple(failed)), past, paths)

    def _build_preset(self, preset: Resolved, past: Past, paths: Mapping[str, str]) -> None:
        name = preset.name
        cells = judge_everywhere(preset.config)
        page = build_page(preset, self.top)
        versions, commits = past.versions.get(name, ()), past.commits.get(name, ())
        around = Around(tuple(self.children.get(name, ())), tuple(list_owners(page, past)), tuple(versions), tuple(commits))
        self.files[self.paths[name]] = self.writer.build_preset(page, around).encode()
        if side := paths.get(name):
            self.files[side] = data.build_side(name, page.compared)
            self.settings[name] = data.list_values(page.compared)
        self.cells[name] = cells
        self.pages.append(page.drop_details())
        self.configs |= {name: preset.config} if preset.config is not None else {}

    def _build_sides(self) -> dict[str, Sequence[SettingRow]]:
        """Return the settings of what else is to be compared with, by its spec. Raises NpuprofError."""
        sides: dict[str, Sequence[SettingRow]] = {}
        for reference in self.asked.also:
            if reference not in self.paths and reference not in sides:
                sides[reference] = drop_folder(build_compared_rows(self.workspace.resolve_spec(reference)), self.top)
        return sides
