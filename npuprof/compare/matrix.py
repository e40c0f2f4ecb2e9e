"""Three or more configs side by side: a row for each place that is not the same in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.compare.changes import find_catalogue_position, find_meta_value
from npuprof.compare.spans import COMMENT_LIMIT, format_code_span
from npuprof.document import keys
from npuprof.document.profile import INHERITED_KEYS
from npuprof.report.json_text import format_json_answer
from npuprof.report.tables import Table, format_markdown_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

#: A row: key, value of each config (absent: no entry), whether all are the same.
Row = tuple[str, dict[int, Any], bool]


def collect_matrix_rows(configs: Sequence[Config], everything: bool = False) -> list[Row]:
    """Return the settings that differ between any two configs, in the catalogue's order; all if asked."""
    rows: list[Row] = []
    for name in INHERITED_KEYS:
        cells = {place: value for place, config in enumerate(configs) if (value := find_meta_value(config, name)) is not None}
        equal = len(cells) in (0, len(configs)) and all(item == cells[0] for item in cells.values())
        if cells and (everything or not equal):
            rows.append((f"profile.{name}", cells, equal))

    for key in sorted({key for config in configs for key in config.settings}, key=find_catalogue_position):
        cells = {place: config.settings[key] for place, config in enumerate(configs) if key in config.settings}
        equal = len(cells) == len(configs) and all(values.is_equivalent_setting(key, cells[0], item) for item in cells.values())
        if everything or not equal:
            rows.append((key, cells, equal))
    return rows


def build_matrix_table(configs: Sequence[Config], table: list[Row]) -> Table:
    """Return rows as a table; ``-`` is what is not set."""
    names = [config.name for config in configs]
    return Table([["", *names], *_format_matrix_cells(configs, table)], wrapping=len(configs), named=True)


def _format_matrix_cells(configs: Sequence[Config], table: list[Row]) -> list[list[str]]:
    return [[key, *(keys.format_toml_value(row[place]) if place in row else "-" for place in range(len(configs)))] for key, row, _ in table]


def format_matrix_markdown(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as a markdown table."""
    header = ("key", *(format_code_span(config.name) for config in configs))
    cells = ([format_code_span(cell) if cell != "-" else "" for cell in row] for row in _format_matrix_cells(configs, table))
    shown, fitting = format_markdown_table(header, cells, COMMENT_LIMIT)
    return shown + (f"\n{len(table) - fitting} more rows\n" if fitting < len(table) else "")


def format_matrix_html(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as an HTML page."""
    from npuprof.report.html import escape_html, format_html_table, format_page

    rows = [[f"<code>{escape_html(cell)}</code>" for cell in cells] for cells in _format_matrix_cells(configs, table)]
    names = [config.name for config in configs]
    return format_page(", ".join(names), format_html_table("What differs", ["key", *names], rows, matrix=True))


def format_matrix_json(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as JSON: per key the value of each preset that sets it."""
    answer = {
        "schema": "npuprof.matrix/1",
        "presets": [{"name": config.name, "digest": config.digest} for config in configs],
        "rows": [
            {"key": key, "same": same, "values": [{"set": place in cells, "value": cells.get(place)} for place in range(len(configs))]}
            for key, cells, same in table
        ],
    }
    return format_json_answer(answer)
