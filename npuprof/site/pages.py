"""The pages of a site as files: templates filled with what was read; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import products, releases
from npuprof.catalog.pages import load_pages
from npuprof.docs import GROUP_TITLES
from npuprof.model import SCENARIOS, Finding, NpuprofError, Record, __version__
from npuprof.report.text import escape_lines, format_count
from npuprof.site import HOW_TO_INSTALL
from npuprof.site.boards import Board, Upgrade, group_rows
from npuprof.site.catalogue import KINDS, CatalogueRow, list_catalogue_rows, list_release_rows
from npuprof.site.family import LONGEST_NAME, draw_family
from npuprof.site.manual import load_topic_pages
from npuprof.site.past import CommitRow, Past, VersionRow
from npuprof.site.presets import PresetPage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jinja2 import Environment

#: What pages may load: their own style and script, also where they are opened as files. Nothing else, and nothing written into them.
POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; base-uri 'none'; form-action 'none'"
)
_MENU = (
    ("index.html", "Presets"),
    ("search.html", "Search"),
    ("family.html", "Family"),
    ("compare.html", "Compare"),
    ("boards.html", "Boards"),
    ("catalogue.html", "Catalogue"),
    ("rules.html", "Rules"),
    ("docs/index.html", "Docs"),
)
#: Of how many presets the text stands below the picture; that of more is a page of its own, as no page shall be heavy.
_MOST_BELOW = 300
_WORST = {"error": 0, "warning": 1, "info": 2, "": 3}


class Content(Record):
    """What the lists show. ``scripts`` are what an upgrade touches in scripts, by path; ``sides`` are all that can be compared.

    ``set_by`` says how many presets set each setting.
    """

    store: str
    presets: tuple[PresetPage, ...]
    paths: dict[str, str]
    past: Past
    board: Board
    upgrades: tuple[Upgrade, ...]
    release: str
    scripts: tuple[tuple[str, tuple[Any, ...]], ...]
    sides: tuple[str, ...]
    set_by: dict[str, int]


class Around(Record):
    """What the page of a preset shows besides itself: who extends it, who looks after it, its versions, its history."""

    children: tuple[str, ...]
    owners: tuple[str, ...]
    versions: tuple[VersionRow, ...]
    commits: tuple[CommitRow, ...]


@cache
def _open_templates() -> Environment:
    """Return the templates, each parsed once. Raises NpuprofError where what they are filled with is not installed."""
    try:
        import jinja2
    except ImportError:
        why = "The pages of a site are filled in by it."
        raise NpuprofError([Finding("NP981", "Jinja2 is not installed", why, HOW_TO_INSTALL)]) from None
    loader = jinja2.PackageLoader("npuprof.site", "templates")
    return jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, finalize=_show, trim_blocks=True, lstrip_blocks=True
    )


class Writer:
    """Fills the templates. Raises NpuprofError where what they are filled with is not installed."""

    def __init__(self, store: str, paths: Mapping[str, str]) -> None:
        self.jinja = _open_templates()
        self.store = store
        self.paths = paths

    def fill(self, template: str, here: str, title: str, **values: Any) -> str:
        """Return a page: a template, its path, what it is called, and what it shows."""
        base = {
            "policy": POLICY, "title": title, "here": here, "up": "../" * here.count("/"), "menu": _MENU, "store": self.store,
            "version": __version__, "head": "", "paths": self.paths,
        }  # fmt: skip
        return self.jinja.get_template(template).render({**base, **values})

    def build_lists(self, content: Content) -> dict[str, bytes]:
        """Return the pages that are about all presets, and those of the catalogue."""
        parents = {page.name: page.parent_names for page in content.presets}
        marks = {page.name: f"f-{page.worst} s-{page.scenario if page.scenario in SCENARIOS else ''}" for page in content.presets}
        pages = sorted(content.presets, key=lambda page: (_WORST[page.worst], page.name))
        rows = [self._build_row(page, content.past) for page in pages]
        board, family, groups = content.board, draw_family(parents), _group_by_parents(content.presets)
        order = {name: number for number, name in enumerate(name for box in family.boxes for name in box.names)}
        values: dict[str, dict[str, Any]] = {
            "index.html": {"pages": rows, "summary": _summarise(content.presets), "head": content.past.head},
            "search.html": {},
            "family.html": {
                "family": family, "groups": groups, "apart": len(parents) > _MOST_BELOW, "marks": marks, "order": order,
                "longest": LONGEST_NAME, "said": {page.name: _say_colours(page) for page in content.presets},
            },
            "compare.html": {"names": content.sides},
            "boards.html": {
                "board": board, "groups": group_rows(board), "upgrades": content.upgrades, "release": content.release,
                "scripts": content.scripts,
            },
            "catalogue.html": dict(_build_catalogue(list_catalogue_rows(), content.set_by)),
            "rules.html": {"rows": load_pages().values()},
        }  # fmt: skip
        if len(parents) > _MOST_BELOW:
            values["family-text.html"] = {"groups": groups}
        labels = {**dict(_MENU), "family-text.html": "Family as text"}
        return {path: self.fill(path, path, labels[path], **shown).encode() for path, shown in values.items()}

    def _build_row(self, page: PresetPage, past: Past) -> dict[str, Any]:
        """Return one preset in the list of all."""
        purpose = ", ".join(filter(None, ("abstract" if page.abstract else "", page.scenario, page.cann and f"CANN {page.cann}")))
        counts = ", ".join(
            format_count(number, severity) for severity, number in zip(("error", "warning"), page.counts, strict=False) if number
        )
        counts = counts if page.is_resolved else f"broken: {counts}"
        owner = ", ".join(list_owners(page, past))
        return {"path": self.paths[page.name], "preset": page, "purpose": purpose, "owner": owner, "found": counts}

    def build_preset(self, page: PresetPage, around: Around) -> str:
        """Return the page of one preset."""
        return self.fill("preset.html", self.paths[page.name], page.name, preset=page, **around._asdict())

    def build_documentation(self) -> dict[str, bytes]:
        """Return the pages of the documentation and what they show. Raises NpuprofError."""
        from markupsafe import Markup

        pages = load_topic_pages()
        groups = [(title, [page for page in pages if page.topic.group == group]) for group, title in GROUP_TITLES.items()]
        files = {"docs/index.html": self.fill("topics.html", "docs/index.html", "Documentation", groups=groups).encode()}
        for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
            html = Markup(page.html)  # noqa: S704 - made of our own pages, whose markup is escaped
            files[page.path] = self.fill("topic.html", page.path, page.topic.title, html=html, before=before, after=after).encode()
            files |= dict(page.pictures)
        return files


def list_owners(page: PresetPage, past: Past) -> list[str]:
    """Return who looks after a preset: as it says itself, then by CODEOWNERS."""
    return list(dict.fromkeys([*([page.owner] if page.owner else []), *past.owners.get(page.name, ())]))


def _group_by_parents(presets: Sequence[PresetPage]) -> list[tuple[tuple[str, ...], list[PresetPage]]]:
    """Return the presets that extend the same together, those that extend nothing first."""
    groups: dict[tuple[str, ...], list[PresetPage]] = {(): []}
    for page in presets:
        groups.setdefault(tuple(dict.fromkeys(page.parent_names)), []).append(page)
    return [(parents, children) for parents, children in groups.items() if children]


def _say_colours(page: PresetPage) -> str:
    """Return in words what the colours of a picture say of a preset."""
    state = "broken" if not page.is_resolved else page.worst if page.worst in ("error", "warning") else ""
    return "".join(f", {word}" for word in (state, page.scenario if page.scenario in SCENARIOS else "") if word)


def _show(value: Any) -> Any:
    """Return what a template shows of a value: no character that shows nothing by itself. What is markup already stays so."""
    return escape_lines(value) if type(value) is str else value


def _build_catalogue(rows: list[CatalogueRow], set_by: Mapping[str, int]) -> Mapping[str, Any]:
    known = releases.load_releases()
    shown = []
    for row in rows:
        option = catalog.find_option(row.key) if row.kind == KINDS["options"] else None
        read_by = (
            [name for name, state in zip(known, option.states, strict=False) if state != "."] if option and option.states else list(known)
        )
        names = [text.partition(":")[0] for text in row.surfaces]
        shown.append(
            {
                **row._asdict(),
                "surface_names": names,
                "read_by": read_by if len(read_by) < len(known) else ["any"],
                "set_by": set_by.get(row.key, 0),
            }
        )
    families = dict.fromkeys(products.find_product_family(name) for name in products.product_names())
    return {
        "rows": shown, "kinds": list(KINDS.values()), "releases": list(reversed(known)), "products": list(families),
        "surfaces": sorted({name for row in shown for name in row["surface_names"]}),
        "risks": sorted({risk for row in rows for risk in row.risk}), "changes": list_release_rows(),
    }  # fmt: skip


def _summarise(presets: Sequence[PresetPage]) -> str:
    broken = sum(not page.is_resolved for page in presets)
    wrong = sum(page.worst == "error" for page in presets if page.is_resolved)
    doubtful = sum(page.worst == "warning" for page in presets)
    counts = [
        f"{broken} cannot be resolved" if broken else "",
        f"{wrong} with errors" if wrong else "",
        f"{doubtful} with warnings" if doubtful else "",
    ]
    return f"{format_count(len(presets), 'preset')}: {', '.join(filter(None, counts)) or 'nothing was found'}."
