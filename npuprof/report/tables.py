"""Rows with columns: aligned text for pipes and files; on a terminal laid out by rich, which wraps what is too wide."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npuprof.model import Record
from npuprof.report.text import escape_controls, measure_width, paint_text
from npuprof.report.wrapping import wrap_words

#: How wide a paragraph is where no terminal is narrower.
PAGE_COLUMNS = 96
#: The styles of columns, as terminals write them.
_CODES = {"yellow": "33"}


class Table(Record):
    """Rows of equally many cells; ``styles`` are the styles of the columns on a terminal, ``gaps`` the blanks after each.

    ``after`` is a text that follows the rows. ``header`` names the columns on a terminal; a program that reads a pipe gets rows
    only. The last columns, as many as ``wrapping`` says, give way where the terminal is too narrow; where their words would not fit, they
    stand below each other. In a table that is ``named`` the first row names the columns, in a pipe too. With ``below`` the last cell
    stands there on lines of its own.
    """

    rows: Sequence[Sequence[str]]
    styles: tuple[str, ...] = ()
    after: str = ""
    gaps: tuple[int, ...] = ()
    header: tuple[str, ...] = ()
    wrapping: int = 1
    below: bool = False
    named: bool = False

    def format_plain(self, coloured: bool = False) -> str:
        """Return the rows as lines with aligned columns."""
        rows = [[escape_controls(cell) for cell in row] for row in self.rows]
        gaps = (*self.gaps, *[2] * len(rows[0] if rows else ()))
        widths = [max(map(measure_width, column)) + gap for column, gap in zip(zip(*rows, strict=True), gaps, strict=False)]
        codes = [_CODES[style] if coloured and style else "" for style in (*self.styles, *[""] * len(widths))]
        lines = [
            "".join(
                _paint_cell(cell, code) + " " * (width - measure_width(cell)) for cell, width, code in zip(row, widths, codes, strict=False)
            ).rstrip()
            for row in rows
        ]
        return "".join(f"{line}\n" for line in lines) + self.after

    def format_terminal(self, coloured: bool) -> str:
        """Return the rows as a terminal of its width shows them best, and what follows them."""
        from npuprof.report.terminal import find_width, wrap_lines

        rows = self._format_apart(coloured) if self.below else self._format_grid(coloured)
        return rows + wrap_lines(self.after, find_width())

    def _format_apart(self, coloured: bool) -> str:
        """Return each row with its last cell below it."""
        from npuprof.report.terminal import find_width, wrap_lines

        heads = [self.header[:-1], *(row[:-1] for row in self.rows)] if self.header else [row[:-1] for row in self.rows]
        lines = Table([[cell.upper() for cell in heads[0]], *heads[1:]] if self.header else heads, self.styles).format_plain(coloured)
        found, width = [], find_width()
        for place, line in enumerate(lines.splitlines(), -1 if self.header else 0):
            text = self.rows[place][-1] if place >= 0 else ""
            found += [line, *([f"    {escape_controls(text)}"] if text not in ("", "-") else [])]
        return wrap_lines("".join(f"{line}\n" for line in found), width)

    def _format_grid(self, coloured: bool) -> str:
        from io import StringIO

        from rich.console import Console
        from rich.table import Table as Grid
        from rich.text import Text

        from npuprof.report.terminal import find_width, fit_columns, squeeze_columns, wrap_cell

        grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=bool(self.header), header_style="bold" if coloured else "")
        columns = len(self.rows[0]) if self.rows else 0
        header = tuple(name.upper() for name in self.header or [""] * columns)
        rows = [[escape_controls(cell) for cell in row] for row in self.rows]
        room, fixed = find_width() - 2 * max(columns - 1, 0), columns - self.wrapping
        named = [header, *rows] if self.header or not self.named else rows
        stackable = self.wrapping > 1 and bool(self.header or self.named)
        widths = fit_columns(named, room, fixed, stackable)
        if widths is None:
            if stackable:
                return self._format_stacked(named, coloured)
            widths = squeeze_columns(named, room, fixed)
        for name, width in zip(header, widths, strict=False):
            grid.add_column("\n".join(wrap_cell(name, width)), overflow="fold", width=width)
        for row in rows:
            styles = (*self.styles, *[""] * len(row))
            cells = ("\n".join(wrap_cell(cell, width)) for cell, width in zip(row, widths, strict=True))
            grid.add_row(*(Text(cell, style if coloured else "") for cell, style in zip(cells, styles, strict=False)))
        console = Console(file=StringIO(), force_terminal=coloured, no_color=not coloured, highlight=False, soft_wrap=False)
        with console.capture() as captured:
            console.print(grid)
        lines = (line.rstrip() for line in captured.get().split("\n"))
        return "\n".join(lines)

    def _format_stacked(self, rows: Sequence[Sequence[str]], coloured: bool) -> str:
        """Return each row but the first as its fixed cells, and below them a line for each other one, behind the name of its column."""
        from npuprof.report.terminal import find_width, wrap_cell

        fixed = len(rows[0]) - self.wrapping
        names = [wrap_cell(name, find_width() // 2) for name in rows[0][fixed:]]
        wide = max(measure_width(line) for name in names for line in name)
        room = max(find_width() - wide - 6, 1)
        codes = [_CODES[style] if coloured and style else "" for style in (*self.styles, *[""] * fixed)]
        lines: list[str] = []
        for row in rows[1:]:
            lines.append("  ".join(_paint_cell(cell, code) for cell, code in zip(row[:fixed], codes, strict=False)).rstrip())
            for name, cell in zip(names, row[fixed:], strict=True):
                cells = wrap_cell(cell, room)
                for number in range(max(len(name), len(cells))):
                    left = name[number] if number < len(name) else ""
                    right = cells[number] if number < len(cells) else ""
                    lines.append(f"    {left}{' ' * (wide - measure_width(left))}  {right}".rstrip())
        return "".join(f"{line}\n" for line in lines)


def _paint_cell(cell: str, code: str) -> str:
    return paint_text(cell, code, bool(code))


class Page(Record):
    """A page with paragraphs: ``write`` returns it for so many columns, so that a terminal wraps nothing that was wrapped."""

    write: Callable[[int], str]

    def format_plain(self, coloured: bool) -> str:
        """Return the page as a pipe or a file gets it."""
        return self.write(PAGE_COLUMNS)

    def format_terminal(self, coloured: bool) -> str:
        """Return the page for the columns of the terminal."""
        from npuprof.report.terminal import find_width

        return self.write(min(PAGE_COLUMNS, find_width()))


def wrap_paragraph(text: str, columns: int = PAGE_COLUMNS) -> list[str]:
    """Return prose as lines of at most so many columns, each indented."""
    return wrap_words(text, columns, "  ")
