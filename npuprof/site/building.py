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
from npuprof.site.compared import build_compared_rows
from npuprof.site.pages import Around, Content, Writer, list_owners
from npuprof.site.past import Past, read_past
from npuprof.site.presets import Resolved, Told, build_page, drop_folder, find_top, resolve_presets, tell_preset
from npuprof.site.settings import SettingRow
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
        self.told: list[Told] = []
        self.settings: dict[str, list[tuple[str, str]]] = {}
        self.cells: dict[str, Any] = {}

    def build(self) -> dict[str, bytes]:
        found = resolve_presets(self.workspace, self.names, self.faults)
        past = read_past(self.store, {one.name: one.lineage for one in found})
        children: dict[str, list[str]] = {}
        for one in found:
            for name in dict.fromkeys(one.parents):
                children.setdefault(name, []).append(one.name)
        sides = self._build_sides()
        paths = data.name_data([*(one.name for one in found if one.config is not None), *sides])
        for one in found:
            self._add_preset(one, self._list_around(one, children.get(one.name, []), past), paths)
        self.files |= {paths[name]: data.build_side(name, rows) for name, rows in sides.items()}
        content = Content(
            self.writer.store, tuple(self.told), self.paths, past, Board(*list_columns(), self.cells),
            tuple(build_upgrades(self.configs, self.asked.release, self.faults)), self.asked.release, self.asked.scripts, tuple(paths),
            data.count_settings(self.settings),
        )  # fmt: skip
        self.files |= self.writer.build_lists(content)
        self.files |= self.writer.build_documentation()
        self.files["data/index.js"] = data.build_index(paths)
        self.files["data/search.js"] = data.build_search(self.told, self.paths, self.settings)
        self.files["static/site.css"] = read_style().encode()
        for script in resources.files("npuprof.site").joinpath("static").iterdir():
            self.files[f"static/{script.name}"] = script.read_bytes()
        return self.files

    def _list_around(self, one: Resolved, children: Sequence[str], past: Past) -> Around:
        owners = list_owners(tell_preset(one, ()), past)
        return Around(tuple(children), tuple(owners), tuple(past.versions.get(one.name, ())), tuple(past.commits.get(one.name, ())))

    def _add_preset(self, one: Resolved, around: Around, paths: dict[str, str]) -> None:
        """Add the page of a preset, or one that says that npuprof fails on it; such a one is no side to compare."""
        failed: list[Finding] = []
        with isolate_faults(self.store.cite_file(f"{one.name}.toml"), failed, one.name):
            self._build_preset(one, around, paths)
        if failed:
            self.faults += failed
            paths.pop(one.name, None)
            self._build_preset(Resolved(one.name, None, None, tuple(failed)), around, paths)

    def _build_preset(self, one: Resolved, around: Around, paths: Mapping[str, str]) -> None:
        cells = judge_everywhere(one.config)
        made = build_page(one, self.top)
        page = self.writer.build_preset(made, around).encode()
        told = tell_preset(one, made.counts)
        if side := paths.get(one.name):
            values = data.list_values(made.compared)
            self.files[side] = data.build_side(one.name, made.compared)
            self.settings[one.name] = values
        self.cells[one.name] = cells
        self.files[self.paths[one.name]] = page
        self.told.append(told)
        self.configs |= {one.name: one.config} if one.config is not None else {}

    def _build_sides(self) -> dict[str, Sequence[SettingRow]]:
        """Return the settings of what else is to be compared with, by its spec. Raises NpuprofError."""
        sides: dict[str, Sequence[SettingRow]] = {}
        for one in self.asked.also:
            if one not in self.paths and one not in sides:
                sides[one] = drop_folder(build_compared_rows(self.workspace.resolve_spec(one)), self.top)
        return sides
