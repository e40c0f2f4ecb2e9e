"""A store as the files of a site: what is as the last run left it stays, all else is made; the same input gives the same bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import resources
from typing import Any

from npuprof.model import Record
from npuprof.report.html import read_style
from npuprof.report.output import read_plain_file
from npuprof.site import data, kept
from npuprof.site.boards import Board, build_upgrades, judge_everywhere, list_columns
from npuprof.site.compared import build_compared_rows
from npuprof.site.kept import KeptPreset, digest_content, digest_texts
from npuprof.site.pages import Around, Content, Writer, list_owners
from npuprof.site.past import Past, read_past
from npuprof.site.presets import Resolved, Told, build_page, drop_folder, find_top, resolve_presets, tell_preset
from npuprof.site.settings import SettingRow
from npuprof.store import Folder, ReadOnceStore, spec

#: What says how the presets of a store are read and judged, beside it.
_BESIDE = ("npuprof.toml", "npuprof.lock")


class Asked(Record):
    """What a site is asked for: the release of the upgrade board, further specs to compare with, what a release touches in scripts."""

    release: str
    also: tuple[str, ...] = ()
    scripts: tuple[tuple[str, tuple[Any, ...]], ...] = ()


def build_site(workspace: spec.Workspace, asked: Asked, folder: str) -> dict[str, bytes | None]:
    """Return the files of a site by their paths; None is one that ``folder`` holds already as it shall be. Raises NpuprofError."""
    return _Building(workspace, asked, folder).build()


class _Building:
    def __init__(self, workspace: spec.Workspace, asked: Asked, folder: str) -> None:
        self.workspace = workspace
        self.asked = asked
        self.folder = folder
        self.store = workspace.listed_store
        self.top = find_top(self.store)
        self.names = self.store.names()
        self.paths = data.name_pages(self.names)
        self.writer = Writer(os.path.basename(self.store.label) or self.store.label, self.paths)
        self.files: dict[str, bytes | None] = {}
        self.told: list[Told] = []
        self.settings: dict[str, list[tuple[str, str]]] = {}
        self.cells: dict[str, Any] = {}
        self.left: dict[str, KeptPreset] = {}

    def build(self) -> dict[str, bytes | None]:
        found = resolve_presets(self.workspace, self.names)
        past = read_past(self.store, {one.name: one.lineage for one in found})
        children: dict[str, list[str]] = {}
        for one in found:
            for name in dict.fromkeys(one.parents):
                children.setdefault(name, []).append(one.name)
        sides = self._build_sides()
        paths = data.name_data([*(one.name for one in found if one.config is not None), *sides])
        before, ground = kept.read_kept_presets(self.folder), self._digest_ground()
        for one in found:
            self._add_preset(one, self._list_around(one, children.get(one.name, []), past), paths, before.get(one.name), ground)
        self.files |= {paths[name]: data.build_side(name, rows) for name, rows in sides.items()}
        configs = {one.name: one.config for one in found}
        content = Content(
            self.writer.store, tuple(self.told), self.paths, past, Board(*list_columns(), self.cells),
            tuple(build_upgrades(configs, self.asked.release)), self.asked.release, self.asked.scripts, tuple(paths),
            data.count_settings(self.settings),
        )  # fmt: skip
        self.files |= self.writer.build_lists(content)
        self.files |= self.writer.build_documentation()
        self.files["data/index.js"] = data.build_index(paths)
        self.files["data/search.js"] = data.build_search(self.told, self.paths, self.settings)
        self.files["static/site.css"] = read_style().encode()
        for script in resources.files("npuprof.site").joinpath("static").iterdir():
            self.files[f"static/{script.name}"] = script.read_bytes()
        self.files[kept.FILE] = kept.format_kept_presets(self.left)
        return self.files

    def _list_around(self, one: Resolved, children: Sequence[str], past: Past) -> Around:
        owners = list_owners(tell_preset(one, ()), past)
        return Around(tuple(children), tuple(owners), tuple(past.versions.get(one.name, ())), tuple(past.commits.get(one.name, ())))

    def _add_preset(self, one: Resolved, around: Around, paths: Mapping[str, str], before: KeptPreset | None, ground: str) -> None:
        """Put the files of one preset to the others, or keep those that are there."""
        core = self._digest_core(one, ground)
        beside = self._digest_around(one, around)
        known = before if before is not None and core and before.core == core else None
        self.cells[one.name] = known.cells if known is not None else judge_everywhere(one.config)
        page, side = self.paths[one.name], paths.get(one.name, "")
        if known is not None and known.around == beside and kept.read_same(os.path.join(self.folder, page), known.page) is not None:
            held = kept.read_same(os.path.join(self.folder, side), known.data)
            if held is not None:
                self.files |= {page: None, side: None}
                self.told.append(tell_preset(one, known.counts))
                self.settings[one.name] = data.read_side(held)
                self.left[one.name] = known
                return
        made = build_page(one, self.top)
        content = self.writer.build_preset(made, around).encode()
        self.files[page] = content
        self.told.append(tell_preset(one, made.counts))
        if not side:
            return
        written = data.build_side(one.name, made.compared)
        self.files[side] = written
        self.settings[one.name] = data.read_side(written)
        if core:
            self.left[one.name] = KeptPreset(
                core, beside, digest_content(content), digest_content(written), made.counts, self.cells[one.name]
            )

    def _digest_ground(self) -> str:
        """Return a digest of what all pages are made of: npuprof, and what lies beside the store."""
        texts = [kept.digest_npuprof(), self.writer.store]
        for name in _BESIDE:
            content = b""
            with suppress(OSError, ValueError):
                content = read_plain_file(os.path.join(_find_project_folder(self.store), name))
            texts.append(digest_content(content))
        return digest_texts(*texts)

    def _digest_core(self, one: Resolved, ground: str) -> str:
        """Return a digest of what a preset is made of; an empty text where that is more than the texts of this store.

        What comes from another store or another commit, and what only the user's trust decides, is always told anew.
        """
        from npuprof.renderers.trusting import list_needs

        if one.config is None or any(member.home is not self.store or member.document.revision for member in one.config.lineage):
            return ""
        if list_needs(one.config):
            return ""
        texts = [ground, one.name]
        for member in one.config.lineage:
            texts += [member.name, drop_folder(member.document.source, self.top), member.document.text]
        return digest_texts(*texts)

    def _digest_around(self, one: Resolved, around: Around) -> str:
        linked = [self.paths.get(name, "") for name in (one.name, *one.lineage, *one.parents, *around.children)]
        rows = [list(row._asdict().values()) for row in (*around.versions, *around.commits)]
        return digest_texts(json.dumps([around.children, around.owners, len(around.versions), rows, linked]))

    def _build_sides(self) -> dict[str, Sequence[SettingRow]]:
        """Return the settings of what else is to be compared with, by its spec. Raises NpuprofError."""
        sides: dict[str, Sequence[SettingRow]] = {}
        for one in self.asked.also:
            if one not in self.paths and one not in sides:
                sides[one] = drop_folder(build_compared_rows(self.workspace.resolve_spec(one)), self.top)
        return sides


def _find_project_folder(store: ReadOnceStore) -> str:
    project = store.project_file if isinstance(store, Folder) else ""
    return os.path.dirname(project) if project else os.path.dirname(os.path.abspath(store.root))
