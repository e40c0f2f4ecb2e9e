"""Three or more configs side by side: a row for each path whose values differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.compare.changes import find_catalogue_position, find_meta_value
from npuprof.compare.spans import COMMENT_LIMIT
from npuprof.document import keys
from npuprof.model import Record
from npuprof.report.html import format_page
from npuprof.report.json_text import format_json_answer
from npuprof.report.tables import Table
from npuprof.report.text import Code
from npuprof.resolve.claims import order_claims
from npuprof.resolve.config import Config


class MatrixRow(Record):
    """The values of one key.

    ``cells`` has the value of each config that sets the key, by the index of the config. ``same``
    is whether all configs set it to equivalent values.
    """

    key: str
    cells: dict[int, Any]
    same: bool


def collect_matrix_rows(configs: Sequence[Config], everything: bool) -> list[MatrixRow]:
    """Return the settings that differ between any two configs, in catalogue order.

    With ``everything``, all.
    """
    cells_of_keys = {}
    for name in order_claims(*(config.claims for config in configs)):
        inherited = [find_meta_value(config, name) for config in configs]
        cells_of_keys[f"profile.{name}"] = {
            column: value for column, value in enumerate(inherited) if value is not None
        }
    set_keys = {key for config in configs for key in config.settings}
    for key in sorted(set_keys, key=find_catalogue_position):
        cells_of_keys[key] = {
            column: config.settings[key]
            for column, config in enumerate(configs)
            if key in config.settings
        }
    rows = [
        MatrixRow(
            key,
            cells,
            same=len(cells) == len(configs)
            and all(values.is_equivalent_setting(key, cells[0], item) for item in cells.values()),
        )
        for key, cells in cells_of_keys.items()
        if cells
    ]
    return [row for row in rows if everything or not row.same]


def build_matrix_table(
    configs: Sequence[Config], rows: list[MatrixRow], corner: str = "", absent: str = "-"
) -> Table:
    """Return rows as a table.

    ``absent`` is the cell of an unset value, ``corner`` the header of the key column.
    """
    return Table(
        [
            [
                Code(row.key),
                *(
                    Code(
                        keys.format_toml_value(row.cells[column]) if column in row.cells else absent
                    )
                    for column in range(len(configs))
                ),
            ]
            for row in rows
        ],
        header=(corner, *(Code(config.name) for config in configs)),
        wrapping=len(configs),
        named=True,
    )


def format_matrix_markdown(configs: Sequence[Config], rows: list[MatrixRow]) -> str:
    """Return rows as a markdown table."""
    shown, fitting = build_matrix_table(configs, rows, "key", "").format_markdown(COMMENT_LIMIT)
    return shown + (f"\n{len(rows) - fitting} more rows\n" if fitting < len(rows) else "")


def format_matrix_html(configs: Sequence[Config], rows: list[MatrixRow]) -> str:
    """Return rows as an HTML page."""
    return format_page(
        ", ".join(config.name for config in configs),
        build_matrix_table(configs, rows, "key").format_html("What differs", matrix=True),
    )


def format_matrix_json(configs: Sequence[Config], rows: list[MatrixRow]) -> str:
    """Return rows as JSON: for each key, the value of each preset that sets it."""
    return format_json_answer(
        {
            "schema": "npuprof.matrix/1",
            "presets": [{"name": config.name, "digest": config.digest} for config in configs],
            "rows": [
                {
                    "key": row.key,
                    "same": row.same,
                    "values": [
                        {"set": column in row.cells, "value": row.cells.get(column)}
                        for column in range(len(configs))
                    ],
                }
                for row in rows
            ],
        }
    )
