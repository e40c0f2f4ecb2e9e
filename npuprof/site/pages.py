"""The pages of a site as files: templates filled with what was read; the same input gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib import resources
from typing import Any

from npuprof import catalog
from npuprof.catalog import products, releases
from npuprof.compare.pagehead import RISKS
from npuprof.docs import GROUP_TITLES, load_topics
from npuprof.model import SCENARIOS, Finding, NpuprofError, Record, __version__
from npuprof.report.html import read_style
from npuprof.report.text import escape_controls, escape_lines, format_count
from npuprof.site.boards import Board, Upgrade
from npuprof.site.catalogue import KINDS, CatalogueRow, list_catalogue_rows, list_release_rows, list_rule_rows
from npuprof.site.family import LONGEST_NAME, draw_family
from npuprof.site.manual import build_topic_pages
from npuprof.site.past import Past
from npuprof.site.presets import PresetPage, list_parent_names
from npuprof.site.settings import SettingRow

#: What pages may load: their own style and script, also where they are opened as files. Nothing else, and nothing written into them.
POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; base-uri 'none'; form-action 'none'"
)
_MENU = (
    ("index.html", "Presets"),
    ("family.html", "Family"),
    ("compare.html", "Compare"),
    ("boards.html", "Boards"),
    ("catalogue.html", "Catalogue"),
    ("rules.html", "Rules"),
    ("docs/index.html", "Docs"),
)
_WORST = {"error": 0, "warning": 1, "info": 2, "": 3}


class Side(Record):
    """One side of a comparison: a preset, a revision, a version or a run, by the spec it was asked for with."""

    name: str
    settings: tuple[SettingRow, ...]


class Content(Record):
    """All that a site shows. ``scripts`` are what an upgrade touches in scripts, by path; ``also`` are further sides to compare."""

    store: str
    presets: tuple[PresetPage, ...]
    past: Past
    board: Board
    upgrades: tuple[Upgrade, ...]
    release: str
    scripts: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    also: tuple[Side, ...] = ()


class _Row(Record):
    """One preset in the list of all."""

    path: str
    preset: PresetPage
    purpose: str
    owner: str
    found: str


def build_site_files(content: Content) -> dict[str, bytes]:
    """Return the files of a site by their paths. Raises NpuprofError where what it is made with is not installed."""
    writer = _Writer(content)
    script = resources.files("npuprof.site").joinpath("static", "site.js").read_bytes()
    files = {"static/site.css": read_style().encode(), "static/site.js": script}
    files |= writer.build_lists()
    files |= {path: text.encode() for path, text in writer.build_presets()}
    files |= writer.build_documentation()
    files |= _build_data(content)
    return files


class _Writer:
    def __init__(self, content: Content) -> None:
        try:
            import jinja2
        except ImportError:
            why = "The pages of a site are filled in by it."
            raise NpuprofError([Finding("NP981", "Jinja2 is not installed", why, "pip install 'npuprof[site]'")]) from None
        self.content = content
        loader = jinja2.PackageLoader("npuprof.site", "templates")
        self.jinja = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, finalize=_show, trim_blocks=True, lstrip_blocks=True
        )
        self.paths = name_pages([page.name for page in content.presets])

    def fill(self, template: str, here: str, title: str, **values: Any) -> str:
        """Return a page: a template, its path, what it is called, and what it shows."""
        base = {
            "policy": POLICY, "title": title, "here": here, "up": "../" * here.count("/"), "menu": _MENU, "store": self.content.store,
            "version": __version__, "head": self.content.past.head, "paths": self.paths,
        }  # fmt: skip
        return self.jinja.get_template(template).render({**base, **values})

    def build_lists(self) -> dict[str, bytes]:
        """Return the pages that are about all presets, and those of the catalogue."""
        content = self.content
        parents = {page.name: list_parent_names(page) for page in content.presets}
        marks = {page.name: f"f-{page.worst} s-{page.scenario if page.scenario in SCENARIOS else ''}" for page in content.presets}
        rows = sorted((self._build_row(page) for page in content.presets), key=lambda row: (_WORST[row.preset.worst], row.preset.name))
        names = list(name_data(content).items())
        catalogue = list_catalogue_rows()
        texts = {
            "index.html": self.fill("index.html", "index.html", "Presets", pages=rows, summary=_summarise(content.presets)),
            "family.html": self.fill(
                "family.html", "family.html", "Family", family=draw_family(parents), parents=parents, marks=marks, longest=LONGEST_NAME
            ),
            "compare.html": self.fill("compare.html", "compare.html", "Compare", names=names),
            "boards.html": self.fill(
                "boards.html", "boards.html", "Boards", board=content.board, upgrades=content.upgrades, release=content.release,
                scripts=content.scripts,
            ),
            "catalogue.html": self.fill("catalogue.html", "catalogue.html", "Catalogue", **_build_catalogue(catalogue)),
            "rules.html": self.fill("rules.html", "rules.html", "Rules", rows=list_rule_rows()),
        }  # fmt: skip
        return {path: text.encode() for path, text in texts.items()}

    def _build_row(self, page: PresetPage) -> _Row:
        purpose = ", ".join(filter(None, ("abstract" if page.abstract else "", page.scenario, page.cann and f"CANN {page.cann}")))
        counts = [(severity, sum(one.severity == severity for one in page.findings)) for severity in ("error", "warning")]
        found = ", ".join(format_count(number, severity) for severity, number in counts if number)
        owner = ", ".join(list_owners(page, self.content.past))
        return _Row(self.paths[page.name], page, purpose, owner, found if page.is_resolved else f"broken: {found}")

    def build_presets(self) -> Iterable[tuple[str, str]]:
        """Yield the page of each preset, with its path."""
        children: dict[str, list[str]] = {}
        for page in self.content.presets:
            for name in dict.fromkeys(list_parent_names(page)):
                children.setdefault(name, []).append(page.name)
        past = self.content.past
        for page in self.content.presets:
            path = self.paths[page.name]
            yield path, self.fill(
                "preset.html", path, page.name, preset=page, children=children.get(page.name, []),
                owners=list_owners(page, past), versions=past.versions.get(page.name, []), commits=past.commits.get(page.name, []),
            )  # fmt: skip

    def build_documentation(self) -> dict[str, bytes]:
        """Return the pages of the documentation and what they show. Raises NpuprofError."""
        from markupsafe import Markup

        pages = list(build_topic_pages(load_topics()))
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


def _show(value: Any) -> Any:
    """Return what a template shows of a value: no character that shows nothing by itself. What is markup already stays so."""
    return escape_lines(value) if type(value) is str else value


def name_pages(names: Sequence[str]) -> dict[str, str]:
    """Return the path of each preset's page; of names that differ in case only, the later ones get a number."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        path = f"presets/{name}.html" if name.isascii() else f"presets/{_hash(name)}.html"
        number = 2
        while path.lower() in taken:
            path, number = f"presets/{name}~{number}.html", number + 1
        taken.add(path.lower())
        found[name] = path
    return found


def name_data(content: Content) -> dict[str, str]:
    """Return the path of the data of each side that can be compared, by its name."""
    names = [*(page.name for page in content.presets if page.is_resolved), *(side.name for side in content.also)]
    return {name: f"data/{_hash(name)}.js" for name in names}


def _hash(name: str) -> str:
    return sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]


def _build_data(content: Content) -> dict[str, bytes]:
    """Return the settings of each side, as scripts: a page that is opened as a file may load no other kind."""
    paths = name_data(content)
    sides = {page.name: page.settings for page in content.presets if page.is_resolved}
    sides |= {side.name: side.settings for side in content.also}
    files = {path: _write_call("settings", name, [_build_fields(row) for row in sides[name]]) for name, path in paths.items()}
    files["data/index.js"] = _write_call("index", [[name, path] for name, path in paths.items()], list(RISKS))
    return files


def _build_fields(row: SettingRow) -> list[Any]:
    authors = ", ".join(f"{author.part} {author.profile} ({author.place})".lstrip() for author in row.authors)
    return [row.key, escape_controls(row.value), escape_controls(authors), list(row.risk), row.meaning]


def _write_call(function: str, *values: Any) -> bytes:
    written = ",".join(json.dumps(value, ensure_ascii=True, separators=(",", ":")) for value in values)
    return f"npuprof.{function}({written});\n".encode()


def _build_catalogue(rows: list[CatalogueRow]) -> Mapping[str, Any]:
    known = releases.load_releases()
    shown = []
    for row in rows:
        option = catalog.find_option(row.key) if row.kind == KINDS["options"] else None
        read_by = (
            [name for name, state in zip(known, option.states, strict=False) if state != "."] if option and option.states else list(known)
        )
        names = [text.partition(":")[0] for text in row.surfaces]
        shown.append({**row._asdict(), "surface_names": names, "read_by": read_by if len(read_by) < len(known) else ["any"]})
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
    said = [
        f"{broken} cannot be resolved" if broken else "",
        f"{wrong} with errors" if wrong else "",
        f"{doubtful} with warnings" if doubtful else "",
    ]
    return f"{format_count(len(presets), 'preset')}: {', '.join(filter(None, said)) or 'nothing was found'}."
