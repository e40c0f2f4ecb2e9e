"""Rows with columns: aligned text for pipes and files; on a terminal laid out by rich, which wraps what is too wide."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.model import Record
from npuprof.report.text import escape_controls, paint_text

#: The styles of columns, as terminals write them.
_CODES = {"yellow": "33"}


class Table(Record):
    """Rows of equally many cells; ``styles`` are the styles of the columns on a terminal, ``gaps`` the blanks after each.

    ``after`` is a text that follows the rows.
    """

    rows: Sequence[Sequence[str]]
    styles: tuple[str, ...] = ()
    after: str = ""
    gaps: tuple[int, ...] = ()

    def format_plain(self, coloured: bool = False) -> str:
        """Return the rows as lines with aligned columns."""
        rows = [[escape_controls(cell) for cell in row] for row in self.rows]
        gaps = (*self.gaps, *[2] * len(rows[0] if rows else ()))
        widths = [max(map(len, column)) + gap for column, gap in zip(zip(*rows, strict=True), gaps, strict=False)]
        codes = [_CODES[style] if coloured and style else "" for style in (*self.styles, *[""] * len(widths))]
        lines = [
            "".join(
                _paint_cell(cell, code) + " " * (width - len(cell)) for cell, width, code in zip(row, widths, codes, strict=False)
            ).rstrip()
            for row in rows
        ]
        return "".join(f"{line}\n" for line in lines) + self.after

    def format_terminal(self, coloured: bool) -> str:
        """Return the rows as a terminal of its width shows them best."""
        from io import StringIO

        from rich.console import Console
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid.grid(padding=(0, 2), pad_edge=False)
        for _ in self.rows[0] if self.rows else ():
            grid.add_column(overflow="fold")
        for row in self.rows:
            styles = (*self.styles, *[""] * len(row))
            grid.add_row(*(Text(escape_controls(cell), style if coloured else "") for cell, style in zip(row, styles, strict=False)))
        console = Console(file=StringIO(), force_terminal=coloured, no_color=not coloured, highlight=False, soft_wrap=False)
        with console.capture() as captured:
            console.print(grid)
        return captured.get() + self.after


def _paint_cell(cell: str, code: str) -> str:
    return paint_text(cell, code, bool(code))


def wrap_paragraph(text: str, indent: str = "  ") -> list[str]:
    """Return prose as lines of at most 96 characters, each indented."""
    import textwrap

    return textwrap.wrap(text, 96, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
