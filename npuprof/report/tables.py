"""Rows and columns as aligned text, as a layout that fits a terminal, and as markdown; ``html`` has the tables of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest

from npuprof.model import Record
from npuprof.report.text import escape_controls, measure_width, paint_text
from npuprof.report.wrapping import wrap_words

#: How wide a paragraph is where no terminal is narrower.
PAGE_COLUMNS = 96
_BOLD, _YELLOW = "1", "33"


class Table(Record):
    """Rows of equally many cells; ``gaps`` are the blanks after each column of plain text, two where there are none.

    ``after`` is a text that follows the rows. ``header`` names the columns on a terminal; a program that reads a pipe gets rows
    only. In a ``named`` table the first row names the columns, in a pipe too. On a terminal the first column is ``highlighted``; the
    last columns, as many as ``wrapping`` says, are wrapped if it is too narrow, and printed below each other if their words do not
    fit. With ``below`` the last cell is printed below its row.
    """

    rows: Sequence[Sequence[str]]
    after: str = ""
    gaps: tuple[int, ...] = ()
    header: tuple[str, ...] = ()
    wrapping: int = 1
    highlighted: bool = False
    below: bool = False
    named: bool = False

    def format_plain(self, coloured: bool = False) -> str:
        """Return the rows as lines with aligned columns."""
        return "".join(f"{line}\n" for line in self._align(self._escape_rows(), coloured, self.gaps)) + self.after

    def format_terminal(self, coloured: bool) -> str:
        """Return the rows as they fit a terminal of its width, and what follows them."""
        from npuprof.report.terminal import find_width, wrap_lines

        rows = [tuple(name.upper() for name in self.header), *self._escape_rows()] if self.header else self._escape_rows()
        lines = self._format_apart(rows, coloured) if self.below else self._format_grid(rows, coloured, find_width())
        return "".join(f"{line}\n" for line in lines) + wrap_lines(self.after, find_width())

    def _escape_rows(self) -> list[tuple[str, ...]]:
        return [tuple(map(escape_controls, row)) for row in self.rows]

    def _align(self, rows: Sequence[Sequence[str]], coloured: bool, gaps: tuple[int, ...] = ()) -> list[str]:
        """Return a line for each row, its columns as wide as their widest cell and the gap after it."""
        widths = [max(map(measure_width, column)) for column in zip(*rows, strict=True)]
        return [self._join_cells(row, widths, coloured, gaps) for row in rows]

    def _join_cells(self, cells: Sequence[str], widths: Sequence[int], coloured: bool, gaps: tuple[int, ...] = (), code: str = "") -> str:
        """Return cells padded to the widths of their columns; ``code`` is the terminal style of all of them."""
        line = ""
        for number, cell in enumerate(cells):
            style = code or (_YELLOW if self.highlighted and not number else "")
            padding = max(widths[number] - measure_width(cell), 0) + (gaps[number] if number < len(gaps) else 2)
            line += paint_text(cell, style, bool(coloured and style and cell)) + " " * padding
        return line.rstrip()

    def _format_apart(self, rows: Sequence[Sequence[str]], coloured: bool) -> list[str]:
        """Return each row with its last cell below it; the last name of a header is left out."""
        from npuprof.report.terminal import find_width, wrap_lines

        lines = []
        for number, (line, row) in enumerate(zip(self._align([row[:-1] for row in rows], coloured), rows, strict=True)):
            is_shown = row[-1] not in ("", "-") and not (self.header and number == 0)
            lines += [line, f"    {row[-1]}"] if is_shown else [line]
        return [part for line in lines for part in wrap_lines(line, find_width()).split("\n")]

    def _format_grid(self, rows: Sequence[Sequence[str]], coloured: bool, width: int) -> list[str]:
        """Return rows whose cells are wrapped to the widths that their columns have together."""
        from npuprof.report.terminal import fit_columns, wrap_cell

        columns = len(rows[0]) if rows else 0
        room, fixed = width - 2 * max(columns - 1, 0), columns - self.wrapping
        is_stackable = self.wrapping > 1 and bool(self.header or self.named)
        widths = fit_columns(rows, room, fixed, is_stackable)
        if widths is None:
            return self._format_stacked(rows, coloured, width)
        lines = []
        for number, row in enumerate(rows):
            code = _BOLD if self.header and number == 0 else ""
            wrapped = zip_longest(*map(wrap_cell, row, widths), fillvalue="")
            lines += [self._join_cells(parts, widths, coloured, code=code) for parts in wrapped]
        return lines

    def _format_stacked(self, rows: Sequence[Sequence[str]], coloured: bool, width: int) -> list[str]:
        """Return the fixed cells of each row but the first, and below them a line for each other cell, after the name of its column."""
        from npuprof.report.terminal import wrap_cell

        fixed = len(rows[0]) - self.wrapping
        names = [wrap_cell(name, width // 2) for name in rows[0][fixed:]]
        widest = max(measure_width(line) for name in names for line in name)
        lines: list[str] = []
        for row in rows[1:]:
            lines.append(self._join_cells(row[:fixed], [0] * fixed, coloured))
            for name, cell in zip(names, row[fixed:], strict=True):
                for left, right in zip_longest(name, wrap_cell(cell, max(width - widest - 6, 1)), fillvalue=""):
                    lines.append(f"    {left}{' ' * (widest - measure_width(left))}  {right}".rstrip())
        return lines


def format_markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], room: int | None = None) -> tuple[str, int]:
    """Return a table of cells that are markdown, with as many rows as fit in ``room`` characters, and their number."""
    out = f"| {' | '.join(header)} |\n".replace("|  |", "| |") + "|" + "---|" * len(header) + "\n"
    shown = 0
    for row in rows:
        line = f"| {' | '.join(row)} |\n"
        if room is not None and len(out) + len(line) > room:
            break
        out += line
        shown += 1
    return out, shown


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
