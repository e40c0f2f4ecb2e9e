"""Three or more configs side by side: a row for each place that is not the same in all."""

from __future__ import annotations

from typing import Any

from npuprof.catalog import values
from npuprof.compare import changes as diff
from npuprof.document import keys
from npuprof.report import dump, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.resolve.config import Config

#: A row: key, value of each config (absent: no entry), whether all are the same.
Row = tuple[str, dict[int, Any], bool]


def rows(configs: Sequence[Config], everything: bool = False) -> list[Row]:
    """Return the settings that differ between any two configs, in the catalogue's order; all if asked."""
    from npuprof import catalog
    from npuprof.model import SECTIONS

    found: list[Row] = []
    for name in diff.META:
        held = {place: _meta(config, name) for place, config in enumerate(configs) if _meta(config, name) is not None}
        equal = len(held) in (0, len(configs)) and all(item == held[0] for item in held.values())
        if held and (everything or not equal):
            found.append((f"profile.{name}", held, equal))

    def place_of(key: str) -> tuple[Any, ...]:
        section, name = keys.section_and_name(key)
        known = catalog.order(section)
        return SECTIONS.index(section), known.get(name, len(known)), name

    for key in sorted({key for config in configs for key in config.settings}, key=place_of):
        held = {place: config.settings[key] for place, config in enumerate(configs) if key in config.settings}
        equal = len(held) == len(configs) and all(values.equal(key, held[0], item) for item in held.values())
        if everything or not equal:
            found.append((key, held, equal))
    return found


def _meta(config: Config, name: str) -> Any:
    found = config.meta(name)
    return sorted(found) if isinstance(found, list) else found


def text(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as aligned text; ``-`` is what is not set."""
    cells = [["", *(config.name for config in configs)], *_cells(configs, table)]
    cells = [[visible(cell) for cell in row] for row in cells]
    widths = [max(len(row[column]) for row in cells) for column in range(len(configs) + 1)]
    return "".join("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in cells)


def _cells(configs: Sequence[Config], table: list[Row]) -> list[list[str]]:
    return [[key, *(keys.toml(held[place]) if place in held else "-" for place in range(len(configs)))] for key, held, _ in table]


def markdown(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as a markdown table."""
    from npuprof.compare.markdown import LIMIT, code

    head = f"| key | {' | '.join(code(config.name) for config in configs)} |\n|---|{'---|' * len(configs)}\n"
    body = [f"| {' | '.join(code(cell) if cell != '-' else '' for cell in row)} |\n" for row in _cells(configs, table)]
    while body and len(head) + sum(map(len, body)) > LIMIT:
        body.pop()
    left = len(table) - len(body)
    return head + "".join(body) + (f"\n{left} more rows\n" if left else "")


def html(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as an HTML page."""
    from html import escape

    def row(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(visible(cell))}</{tag}>" for cell in cells) + "</tr>\n"

    title = escape(visible(", ".join(config.name for config in configs)))
    body = row("th", ["key", *(config.name for config in configs)]) + "".join(row("td", cells) for cells in _cells(configs, table))
    head = f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n</head>\n'
    return f"{head}<body>\n<table>\n{body}</table>\n</body>\n</html>\n"


def json(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as JSON: per key the value of each preset that sets it."""
    answer = {
        "schema": "npuprof.matrix/1",
        "presets": [{"name": config.name, "digest": config.digest} for config in configs],
        "rows": [
            {"key": key, "same": same, "values": [{"set": place in held, "value": held.get(place)} for place in range(len(configs))]}
            for key, held, same in table
        ],
    }
    return dump(answer)
