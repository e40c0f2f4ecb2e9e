"""Three or more configs side by side: a row for each path whose values differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.compare.changes import find_catalogue_position, find_meta_value
from npuprof.compare.spans import COMMENT_LIMIT
from npuprof.document import keys
from npuprof.report.html import format_page
from npuprof.report.json_text import format_json_answer
from npuprof.report.tables import Table
from npuprof.report.text import Code
from npuprof.resolve.claims import order_claims
from npuprof.resolve.config import Config

#: A row: key, value per config (no entry if unset), whether all are equal.
Row = tuple[str, dict[int, Any], bool]


def collect_matrix_rows(configs: Sequence[Config], everything: bool = False) -> list[Row]:
    """Return the settings that differ between any two configs, in catalogue order.

    With ``everything``, all.
    """
    found = {}
    for name in order_claims(*(config.claims for config in configs)):
        found[f"profile.{name}"] = {
            place: value
            for place, config in enumerate(configs)
            if (value := find_meta_value(config, name)) is not None
        }
    for key in sorted(
        {key for config in configs for key in config.settings}, key=find_catalogue_position
    ):
        found[key] = {
            place: config.settings[key]
            for place, config in enumerate(configs)
            if key in config.settings
        }
    rows = [
        (key, cells, len(cells) == len(configs) and _are_equal(key, cells))
        for key, cells in found.items()
        if cells
    ]
    return [row for row in rows if everything or not row[2]]


def _are_equal(key: str, cells: dict[int, Any]) -> bool:
    return all(values.is_equivalent_setting(key, cells[0], item) for item in cells.values())


def build_matrix_table(
    configs: Sequence[Config], rows: list[Row], corner: str = "", absent: str = "-"
) -> Table:
    """Return rows as a table.

    ``absent`` is the cell of an unset value, ``corner`` the header of the key column.
    """
    cells = [
        [
            Code(key),
            *(
                Code(keys.format_toml_value(row[place]) if place in row else absent)
                for place in range(len(configs))
            ),
        ]
        for key, row, _ in rows
    ]
    return Table(
        cells,
        header=(corner, *(Code(config.name) for config in configs)),
        wrapping=len(configs),
        named=True,
    )


def format_matrix_markdown(configs: Sequence[Config], rows: list[Row]) -> str:
    """Return rows as a markdown table."""
    shown, fitting = build_matrix_table(configs, rows, "key", "").format_markdown(COMMENT_LIMIT)
    return shown + (f"\n{len(rows) - fitting} more rows\n" if fitting < len(rows) else "")


def format_matrix_html(configs: Sequence[Config], rows: list[Row]) -> str:
    """Return rows as an HTML page."""
    table = build_matrix_table(configs, rows, "key")
    return format_page(
        ", ".join(config.name for config in configs), table.format_html("What differs", matrix=True)
    )


def format_matrix_json(configs: Sequence[Config], table: list[Row]) -> str:
    """Return rows as JSON: for each key, the value of each preset that sets it."""
    answer = {
        "schema": "npuprof.matrix/1",
        "presets": [{"name": config.name, "digest": config.digest} for config in configs],
        "rows": [
            {
                "key": key,
                "same": same,
                "values": [
                    {"set": place in cells, "value": cells.get(place)}
                    for place in range(len(configs))
                ],
            }
            for key, cells, same in table
        ],
    }
    return format_json_answer(answer)
