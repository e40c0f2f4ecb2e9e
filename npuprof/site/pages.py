"""The pages of a site as files: templates filled with data; the same input gives the same bytes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import compress
from typing import Any

from jinja2 import Environment

from npuprof import catalog
from npuprof.catalog import products, releases
from npuprof.docs import GROUP_TITLES
from npuprof.model import SCENARIOS, SEVERITIES, Fields, Finding, __version__, build_error
from npuprof.report.html import frame_html_table
from npuprof.report.text import format_count
from npuprof.site import HOW_TO_INSTALL
from npuprof.site.catalogue import list_catalogue_rows, list_release_rows
from npuprof.site.inheritance_graph import LONGEST_NAME, draw_family
from npuprof.site.manual import load_topic_pages
from npuprof.site.markup import (
    escape_text,
    format_author,
    format_path,
    format_setting_rows,
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
#: The maximum number of presets listed below the picture; longer lists get their own page to keep
#: pages small.
_MOST_BELOW = 300
_KINDS = ("Cannot be resolved", "Models", "Debugging", "Bases", "Mix-ins")
#: The columns of the list of presets, each with the values that it shows.
_COLUMNS = {
    "for": ("scenario", "framework"),
    "products": ("product",),
    "owner": ("owner",),
    "found": ("found",),
}
_DEBUGGING = re.compile(r"(?:^|[/_.-])debug(?:[/_.-]|$)")
#: Releases that read an option, among the states of all.
_READ = re.compile(r"[^.]+")
_WORST = {"error": 0, "warning": 1, "info": 2, "": 2}


@cache
def _format_menu(here: str, up: str) -> Any:
    """Return the links to the pages of the menu, of which ``here`` may be one."""
    links = ""
    for path, label in _MENU.items():
        current = ' aria-current="page"' if path == here else ""
        links += f' <a href="{up}{path}"{current}>{label}</a>'
    return mark_markup(links)


@cache
def _open_templates() -> Environment:
    """Return the templates, each parsed once.

    Raises NpuprofError if a required library is not installed.
    """
    try:
        import jinja2
    except ImportError:
        why = "The pages of a site are filled in by it."
        raise build_error("NP981", "Jinja2 is not installed", why, HOW_TO_INSTALL) from None
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

    def fill(self, template: str, here: str, title: str, **values: Any) -> str:
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
                "link": partial(self._link_preset, up),
                "shared_link": self.shared_link,
                **values,
            }
        )

    def _link_preset(self, up: str, name: str) -> Any:
        """Return the name of a preset, as a link if it has a page."""
        path = self.paths.get(name)
        text = escape_text(name)
        if path:
            text = f'<a href="{up}{escape_text(path)}">{text}</a>'
        return mark_markup(text)

    def build_lists(self, values: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
        """Return the pages about all presets and the catalogue, given the values of each."""
        labels = {**_MENU, "family-text.html": "Graph as text"}
        return {
            path: self.fill(path, path, labels[path], **shown).encode()
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
    is_large = len(presets) > _MOST_BELOW
    marks = {preset.name: f"f-{preset.worst} s-{_find_scenario(preset)}" for preset in presets}
    drawn = (name for box in family.boxes for name in box.names)
    ranked = sorted(presets, key=lambda preset: (_WORST[preset.worst], preset.name))
    shown = {
        "index.html": {
            **_list_kinds([_build_row(preset, past) for preset in ranked]),
            "summary": _summarise(presets),
            "head": past.head,
            "apart": apart,
        },
        "family.html": {
            "family": family,
            "groups": groups,
            "apart": is_large,
            "marks": marks,
            "order": {name: number for number, name in enumerate(drawn)},
            "longest": LONGEST_NAME,
            "said": {preset.name: _describe_colours(preset) for preset in presets},
        },
    }
    if is_large:
        shown["family-text.html"] = {"groups": groups}
    return shown


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


def _find_scenario(preset: Preset) -> str:
    scenario = str(preset.head["scenario"])
    return scenario if scenario in SCENARIOS else ""


def _describe_colours(preset: Preset) -> str:
    """Return the meaning of a preset's colours in a picture."""
    state = ""
    if preset.config is None:
        state = "broken"
    elif preset.worst in ("error", "warning"):
        state = preset.worst
    return "".join(f", {meaning}" for meaning in (state, _find_scenario(preset)) if meaning)


def build_catalogue(set_by: Mapping[str, int]) -> Fields:
    """Return the values of the catalogue page.

    ``set_by`` is the number of presets that set each setting.
    """
    rows = list_catalogue_rows()
    known = releases.load_releases()
    groups = defaultdict(list)
    for row in rows:
        option = catalog.find_option(row.key)
        states = option.states[: len(known)] if option else ""
        # the releases that read an option, as indexes: ``3-20 22-30``, or ``none``
        spans = (f"{span.start()}-{span.end() - 1}" for span in _READ.finditer(states))
        shown = {
            "targets": [
                (surface, spelling if spelling != row.key else "")
                for surface, spelling in row.spelling
            ],
            "read_by": (" ".join(spans) or "none") if "." in states else "",
            "set_by": set_by.get(row.key, 0),
        }
        groups[row.kind, row.framework].append({**row._asdict(), **shown})
    return {
        "count": len(rows),
        "groups": groups,
        "kinds": list(dict.fromkeys(row.kind for row in rows)),
        "releases": list(reversed(known)),
        "products": list(products.load_products()),
        "frameworks": sorted({row.framework for row in rows if row.framework}),
        "surfaces": sorted({surface for row in rows for surface, _ in row.spelling}),
        "risks": sorted({risk for row in rows for risk in row.risk}),
        "changes": list_release_rows(),
        "newest": releases.describe_newest_releases(),
    }


def _summarise(presets: Sequence[Preset]) -> str:
    worst = ["broken" if preset.config is None else preset.worst for preset in presets]
    texts = {"broken": "cannot be resolved", "error": "with errors", "warning": "with warnings"}
    counts = [f"{worst.count(state)} {text}" for state, text in texts.items() if state in worst]
    shown = ", ".join(counts) or "no errors, no warnings"
    return f"{format_count(len(presets), 'preset')}: {shown}."
