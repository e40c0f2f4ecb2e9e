"""The catalogue for the pages: options, variables, flags, rules, and changes by release."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases, risks
from npuprof.edit.migration import list_changed_defaults
from npuprof.model import Record
from npuprof.system import group_pairs

#: Releases that read an option, among the states of all.
_READ = re.compile(r"[^.]+")
#: The maximum number of rows of a page.
_MOST_ROWS = 700


class CatalogueRow(Record):
    """One record of the catalogue.

    ``readers`` are the releases that read it, empty if all do, ``read_by`` the same of an option as
    indexes: ``3-20 22-30``, or ``none``.

    ``spelling`` is its name on each surface.
    """

    key: str
    kind: str
    summary: str
    doc: str
    value: str
    default: str
    unit: str
    risk: tuple[str, ...]
    products: tuple[str, ...]
    spelling: tuple[tuple[str, str], ...]
    readers: str
    state: str
    replacement: str
    framework: str
    read_by: str


class ReleaseRow(Record):
    """The changes of a release since the previous one: new and removed keys, changed defaults."""

    release: str
    new: tuple[str, ...]
    gone: tuple[str, ...]
    defaults: tuple[str, ...]


@cache
def list_catalogue_rows() -> tuple[CatalogueRow, ...]:
    """Return the records of all sections, in catalogue order."""
    return tuple(
        _build_row(section, name)
        for section in catalog.load_sections().values()
        for name in section.names
    )


@cache
def list_parts() -> dict[str, tuple[str, tuple[CatalogueRow, ...]]]:
    """Return the titles and rows of the catalogue's pages by path: one kind of one framework.

    Large ones are split, so that no page is too large.
    """
    groups = group_pairs(((row.kind, row.framework), row) for row in list_catalogue_rows())
    parts = {}
    for (kind, framework), rows in groups.items():
        count = -(-len(rows) // _MOST_ROWS)
        for number in range(count):
            title = f"{kind.capitalize()}s of {framework}"
            path = f"catalogue/{kind}s-{framework}".lower()
            if count > 1:
                title += f", part {number + 1} of {count}"
                path += f"-{number + 1}"
            size = -(-len(rows) // count)
            parts[f"{path}.html"] = title, tuple(rows[number * size : (number + 1) * size])
    return parts


@cache
def find_parts() -> dict[str, str]:
    """Return the page of each setting by its key."""
    return {row.key: path for path, (_, rows) in list_parts().items() for row in rows}


def find_record(key: str) -> str:
    """Return the setting of the catalogue that contains a path, empty if there is none."""
    while key and key not in find_parts():
        key = key.rpartition(".")[0]
    return key


def _build_row(section: catalog.Section, name: str) -> CatalogueRow:
    record = section.find(name)
    texts = catalog.find_record_texts(section.name, name)
    fields = record._asdict() if record else {}
    key = section.format_key(name)
    states = fields["states"][: len(releases.load_releases())] if section.name == "options" else ""
    since = [*fields.get("default_since", ())]
    spans = (f"{span.start()}-{span.end() - 1}" for span in _READ.finditer(states))
    return CatalogueRow(
        key,
        section.noun,
        str(texts.get("summary", "")),
        str(texts.get("doc", "")),
        _describe_values(fields),
        ", ".join(releases.list_defaults(fields, f" since {since[-1]}" if since else "")),
        fields.get("unit", ""),
        risks.find_unit_and_risk(key)[1],
        tuple(fields.get("products", ())),
        tuple(pair for pair in fields.get("spelling", {}).items() if pair[1]),
        releases.describe_readers(section.name, record),
        _describe_state(fields),
        fields.get("replaced_by", "") if releases.is_past(record) else "",
        find_framework(section.name, name),
        (" ".join(spans) or "none") if "." in states else "",
    )


def _describe_state(fields: Mapping[str, Any]) -> str:
    """Return what the newest known release says of a setting, empty for nothing."""
    if fields.get("no_effect", "").endswith("Y"):
        return "without effect"
    return "deprecated" if fields.get("deprecated", "").endswith("Y") else ""


def find_framework(section: str, name: str) -> str:
    """Return the program that reads a setting, for a badge.

    An empty string for an unknown variable.
    """
    if section != "env":
        return catalog.load_sections()[section].title
    variable = catalog.find_variable(name)
    return str(catalog.load_built_part("titles")[variable.framework]) if variable else ""


def _describe_values(fields: Mapping[str, Any]) -> str:
    kind = str(fields.get("kind", ""))
    if choices := fields.get("choices"):
        return f"{kind}: {', '.join(map(str, choices))}" if kind else ", ".join(map(str, choices))
    low = fields.get("minimum")
    high = fields.get("maximum")
    bounds = (
        f"{'' if low is None else low}..{'' if high is None else high}"
        if (low, high) != (None, None)
        else ""
    )
    return f"{kind} {bounds}".strip()


def list_release_rows() -> list[ReleaseRow]:
    """Return the changes of each release, newest first.

    Changes with an unknown release are listed at the first known one.
    """
    known = releases.load_releases()
    changed = defaultdict[tuple[str, bool], list[str]](list)  # by release, and if it is new
    for option in catalog.list_records(catalog.Option):
        last = ""
        for release, state in zip(known, option.states, strict=False):
            if last and state not in (last, "?"):
                changed[release, state == "Y"].append(option.name)
            last = last if state == "?" else state
    rows = [
        ReleaseRow(
            release,
            tuple(sorted(changed[release, True])),
            tuple(sorted(changed[release, False])),
            tuple(row.build_finding().message for row in list_changed_defaults(before, release)),
        )
        for before, release in pairwise(known)
    ]
    return [row for row in reversed(rows) if row.new or row.gone or row.defaults]
