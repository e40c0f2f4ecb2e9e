"""The pages of a site as files: templates filled with data; the same input gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import compress
from typing import Any

import jinja2

from npuprof.catalog import releases
from npuprof.docs import GROUP_TITLES
from npuprof.hosting.findings_page import format_finding_list
from npuprof.model import (
    SCENARIOS,
    SEVERITIES,
    Fields,
    Finding,
    Origin,
    __version__,
)
from npuprof.report.html import frame_html_table
from npuprof.site.catalogue import (
    CatalogueRow,
    list_catalogue_rows,
    list_parts,
    list_release_rows,
)
from npuprof.site.inheritance_graph import LONGEST_NAME, draw_family
from npuprof.site.manual import load_topic_pages
from npuprof.site.markup import (
    Links,
    escape_text,
    format_author,
    format_path,
    format_setting_rows,
    format_source,
    mark_markup,
    show_value,
)
from npuprof.site.past import Past
from npuprof.site.presets import Preset
from npuprof.site.setting_rows import format_value
from npuprof.system import find_folder, group_pairs

#: The content security policy: only the site's own style and script files, also for pages opened as
#: files; nothing inline.
POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: "
    "data:; base-uri 'none'; form-action 'none'"
)
_MENU = {
    "index.html": "Presets",
    "search.html": "Search",
    "family.html": "Graph",
    "compare.html": "Compare",
    "compatibility.html": "Compatibility",
    "catalogue.html": "Catalogue",
    "rules.html": "Rules",
    "docs/index.html": "Docs",
}
#: The maximum number of settings on the first page of the catalogue.
_MOST_USED = 300
_KINDS = ("Cannot be resolved", "Models", "Debugging", "Bases", "Mix-ins")
#: The columns of the list of presets, each with the values that it shows.
_COLUMNS = {
    "for": ("scenario", "framework"),
    "products": ("product",),
    "owner": ("owner",),
    "found": ("found",),
}
_DEBUGGING = re.compile(r"(?:^|[/_.-])debug(?:[/_.-]|$)")


@cache
def _format_menu(here: str, up: str) -> Any:
    """Return the links to the pages of the menu, of which ``here`` may be one."""
    links = ""
    for path, label in _MENU.items():
        current = ' aria-current="page"' if path == here else ""
        links += f' <a href="{up}{path}"{current}>{label}</a>'
    return mark_markup(links)


@cache
def _open_templates() -> jinja2.Environment:
    """Return the templates, each parsed once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("npuprof.site", "templates"),
        autoescape=True,
        # a misspelt name would otherwise be an empty text
        undefined=jinja2.StrictUndefined,
        finalize=show_value,
        # lines with tags only would leave empty lines in thousands of rows
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "table": _frame_table,
        "author": _as_markup(format_author),
        "source": _as_markup(format_source),
        "finding_list": _as_markup(format_finding_list),
        "setting_rows": _as_markup(format_setting_rows),
    }
    environment.filters |= {"value": format_value, "path": _as_markup(format_path)}
    return environment


def _frame_table(caption: str, *header: str, caller: Callable[[], str], **options: Any) -> Any:
    """Return a table whose rows are written by a template."""
    return mark_markup(frame_html_table(caption, header, caller(), **options))


def _as_markup(write: Callable[..., str]) -> Callable[..., Any]:
    return lambda *values: mark_markup(write(*values))


class Writer:
    """Fills the templates. Raises NpuprofError if a required library is not installed."""

    def __init__(self, store: str, paths: Mapping[str, str]) -> None:
        self.open = cache(_open_templates().get_template)
        self.store = store
        self.paths = paths
        self.shared_link = cache(
            partial(self._link_preset, "\0")
        )  # the path to the top differs by page
        self.link_line: Callable[[Origin], str] = lambda _: ""

    def fill(self, template: str, here: str, /, title: str, **values: Any) -> str:
        """Return a page, given its template, path, title and values."""
        up = "../" * here.count("/")
        return self.open(template).render(
            {
                "policy": POLICY,
                "title": title,
                "up": up,
                "menu": _format_menu(here if here in _MENU else "", up),
                "store": self.store,
                "version": __version__,
                "head": "",
                "paths": self.paths,
                "links": Links(partial(self._link_preset, up), self.link_line),
                "shared_links": Links(self.shared_link, self.link_line),
                **values,
            }
        )

    def _link_preset(self, up: str, name: str) -> Any:
        """Return the name of a preset, as a link if it has a page."""
        path = self.paths.get(name)
        text: str = escape_text(name)
        if path:
            text = f'<a href="{up}{escape_text(path)}">{text}</a>'
        return mark_markup(text)

    def build_lists(self, values: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
        """Return the pages about all presets and the catalogue, given the values of each."""
        return {
            path: self.fill(
                path if path in _MENU else "catalogue-part.html",
                path,
                **{"title": _MENU.get(path), **shown},
            ).encode()
            for path, shown in values.items()
        }

    def build_documentation(self) -> dict[str, bytes]:
        """Return the documentation pages and their images. Raises NpuprofError."""
        pages = load_topic_pages()
        groups = [
            (group, title, [page for page in pages if page.topic.group == group])
            for group, title in GROUP_TITLES.items()
        ]
        index = self.fill("topics.html", "docs/index.html", "Documentation", groups=groups)
        files = {"docs/index.html": index.encode()}
        for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
            html = mark_markup(page.html)  # npuprof's own pages, already escaped
            files[page.path] = self.fill(
                "topic.html",
                page.path,
                page.topic.title,
                html=html,
                kinds=GROUP_TITLES,
                group=page.topic.group,
                before=before,
                after=after,
            ).encode()
            files |= dict(page.pictures)
        return files


def list_owners(preset: Preset, past: Past) -> list[str]:
    """Return the owners of a preset: its own ``owner``, then those of CODEOWNERS."""
    owners = (preset.head["owner"], *past.owners.get(preset.name, ()))
    return list(dict.fromkeys(filter(None, owners)))


def list_shown(
    presets: Sequence[Preset], apart: Sequence[Finding], past: Past
) -> dict[str, Fields]:
    """Return the values of the pages about all presets, by path.

    ``apart`` are the findings about other files of the store.
    """
    family = draw_family({preset.name: preset.parents for preset in presets})
    by_parents = group_pairs((tuple(dict.fromkeys(preset.parents)), preset) for preset in presets)
    groups = sorted(by_parents.items(), key=lambda group: group[0] != ())  # first without parents
    drawn = (name for box in family.boxes for name in box.names)
    ranked = sorted(
        presets,
        key=lambda preset: (preset.worst != "error", preset.worst != "warning", preset.name),
    )
    return {
        "index.html": {
            **_list_kinds([_build_row(preset, past) for preset in ranked]),
            "presets": presets,
            "head": past.head,
            "apart": apart,
        },
        "family.html": {
            "family": family,
            "groups": groups,
            "scenarios": SCENARIOS,
            "order": {name: number for number, name in enumerate(drawn)},
            "longest": LONGEST_NAME,
            "presets": {preset.name: preset for preset in presets},
        },
    }


def _build_row(preset: Preset, past: Past) -> Fields:
    """Return one preset's row in the list of all."""
    states = ["broken"] if preset.config is None else []
    states += compress(SEVERITIES[:2], preset.counts)
    return {
        "preset": preset,
        "owners": list_owners(preset, past),
        "found": states,
        "kind": _find_kind(preset),
    }


def _find_kind(preset: Preset) -> str:
    head = preset.head
    if preset.config is None:
        return "Cannot be resolved"
    if head["abstract"]:
        return "Bases" if head["scenario"] else "Mix-ins"
    if _DEBUGGING.search(preset.name):
        return "Debugging"
    folder = find_folder(preset.name)
    return f"Models in {folder}" if folder else "Models"


def _list_kinds(rows: Sequence[Fields]) -> Fields:
    """Return the rows by kind, the columns that are not empty, and the choices of filters."""
    values = {
        "scenario": {row["preset"].head["scenario"] for row in rows},
        "framework": {name for row in rows for name in row["preset"].head["frameworks"]},
        "product": {name for row in rows for name in row["preset"].head["products"]},
        "owner": {name for row in rows for name in row["owners"]},
        "found": {state for row in rows for state in row["found"]},
    }
    columns = {"preset": 0}  # with their widths
    for name, filters in _COLUMNS.items():
        if any(any(values[filter_name]) for filter_name in filters):
            columns[name] = 1 if name in ("owner", "found") else 2
    return {
        "kinds": group_pairs(
            sorted(
                ((row["kind"], row) for row in rows),
                key=lambda pair: (_KINDS.index(pair[0].partition(" in ")[0]), pair[0]),
            )
        ),
        "columns": list(columns),
        "widths": list(columns.values()),
        "choices": {name: sorted(filter(None, texts)) for name, texts in values.items()},
    }


def build_catalogue(set_by: Mapping[str, int]) -> dict[str, Fields]:
    """Return the values of the pages of the catalogue, by path.

    ``set_by`` is the number of presets that set each setting.
    """
    rows = list_catalogue_rows()
    parts = list_parts()
    used = sorted((row for row in rows if row.key in set_by), key=lambda row: -set_by[row.key])
    listed = [
        (path, title, len(held), sum(row.key in set_by for row in held))
        for path, (title, held) in parts.items()
    ]
    pages = {
        path: _build_rows(held, set_by) | {"title": title} for path, (title, held) in parts.items()
    }
    pages["catalogue.html"] = {
        **_build_rows(used[:_MOST_USED], set_by),
        "count": len(rows),
        "parts": listed,
        "changes": list_release_rows(),
        "newest": releases.describe_newest_releases(),
    }
    return pages


def _build_rows(rows: Sequence[CatalogueRow], set_by: Mapping[str, int]) -> Fields:
    """Return the rows of a page of the catalogue by kind and framework, and its filters."""
    choices = {
        "kind": {row.kind for row in rows},
        "framework": {row.framework for row in rows if row.framework},
        "surface": {surface for row in rows for surface, _ in row.spelling},
        "product": {name for row in rows for name in row.products},
        "risk": {risk for row in rows for risk in row.risk},
        "state": {row.state for row in rows if row.state},
        "here": {("not set", "set")[row.key in set_by] for row in rows},
    }
    shown = {name: sorted(values) for name, values in choices.items() if len(values) > 1}
    known = list(reversed(releases.load_releases()))
    if any(row.read_by for row in rows):
        shown["release"] = known
    groups = group_pairs(((row.kind, row.framework), row) for row in rows)
    return {"groups": groups, "releases": known, "choices": shown, "set_by": set_by}
