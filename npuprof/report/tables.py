"""Tables with a writer for each format: aligned text, terminal, Markdown, HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from npuprof.model import Record
from npuprof.report.text import Code, Markup, escape_controls, measure_width, paint_text
from npuprof.system import find_folder, join_lines, lazy_pattern

_BOLD = "1"
_DIM = "2"
_YELLOW = "33"
#: Cells of a table without a value.
_EMPTY = frozenset(("", "-"))
_PIPE = lazy_pattern(r"(?<!\\)(\\*)\|")
#: Characters that Markdown may take for markup.
_MARKS = lazy_pattern(r"([\\`*_\[\]~|<>&])")


class Table(Record):
    """Rows of equally many cells: plain text, ``Code``, or ``Markup`` of their back end.

    ``header`` names the columns; a program that reads a pipe gets it only if the table is
    ``named``. ``after`` is a text that follows the rows. ``gaps`` are the blanks after each column
    of plain text, two by default. On a terminal the first column is ``highlighted``; the last
    columns, as many as ``wrapping`` says, are wrapped if it is too narrow. With ``below`` the last
    cell is printed below its row, columns without a value are left out, and each folder of the
    first cells has a heading.
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
        rows = self._escape_rows([self.header, *self.rows] if self.named else self.rows)
        widths = [max(map(measure_width, column)) for column in zip(*rows, strict=True)]
        lines = [self._join_cells(row, widths, coloured, self.gaps) for row in rows]
        return "".join([f"{line}\n" for line in lines]) + self.after

    def format_terminal(self, coloured: bool) -> str:
        """Return the rows fitted to the terminal, and the text after them."""
        from npuprof.report.wrapping import find_width, wrap_lines  # for terminals only

        header = self.header if self.named else tuple(name.upper() for name in self.header)
        rows = self._escape_rows([header, *self.rows] if header else self.rows)
        width = find_width()
        lines = (
            self._format_apart(rows, coloured, width)
            if self.below
            else self._format_grid(rows, coloured, width)
        )
        return join_lines(lines) + wrap_lines(self.after, width)

    def format_markdown(self, room: int | None = None) -> tuple[str, int]:
        """Return the table in Markdown and the number of its rows that fit in ``room``.

        ``room`` is a number of characters; None is no limit.
        """
        head = " | ".join(map(_format_markdown_cell, self.header))
        out = f"| {head} |\n".replace("|  |", "| |") + "|" + "---|" * len(self.header) + "\n"
        for shown, row in enumerate(self.rows):
            line = f"| {' | '.join(map(_format_markdown_cell, row))} |\n"
            if room is not None and len(out) + len(line) > room:
                return out, shown
            out += line
        return out, len(self.rows)

    def format_html(self, caption: str, kinds: Sequence[str] = (), matrix: bool = False) -> str:
        """Return the table of a page, see ``report.html.format_html_table``."""
        from npuprof.report.html import format_html_table

        return format_html_table(caption, self.header, self.rows, kinds, matrix)

    def _escape_rows(self, rows: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
        return [tuple(map(escape_controls, row)) for row in rows]

    def _join_cells(
        self,
        cells: Sequence[str],
        widths: Sequence[int],
        coloured: bool,
        gaps: tuple[int, ...] = (),
        code: str = "",
    ) -> str:
        """Return cells padded to the widths of their columns.

        ``code`` is the terminal style of all of them.
        """
        line = ""
        first_style = _YELLOW if self.highlighted else _BOLD if self.below else ""
        for index, cell in enumerate(cells):
            style = code or (first_style if index == 0 else "")
            gap = gaps[index] if index < len(gaps) else 2
            padding = max(widths[index] - measure_width(cell), 0) + gap
            line += paint_text(cell, style, bool(coloured and style and cell)) + " " * padding
        return line.rstrip()

    def _format_apart(self, rows: Sequence[Sequence[str]], coloured: bool, width: int) -> list[str]:
        """Return each row with its last cell below it; the last name of a header is left out."""
        from npuprof.report.wrapping import wrap_lines

        columns = list(zip(*rows, strict=True))[:-1]
        columns = [column for column in columns if not _EMPTY.issuperset(column[1:])] or columns
        widths = [max(map(measure_width, column)) for column in columns]
        lines = []
        is_header = bool(self.header)
        above = ""
        for row, cells in zip(rows, zip(*columns, strict=True), strict=True):
            folder = find_folder(row[0])
            if folder != above:
                lines += ["", paint_text(f"{folder}/", _DIM, coloured)]
                above = folder
            line = self._join_cells(cells, widths, coloured, code=_DIM if is_header else "")
            lines += wrap_lines(line, width).split("\n")
            if row[-1] not in _EMPTY and not is_header:
                below = wrap_lines(f"    {row[-1]}", width)
                lines += [paint_text(part, _DIM, coloured) for part in below.split("\n")]
            is_header = False
        return lines

    def _format_grid(self, rows: Sequence[Sequence[str]], coloured: bool, width: int) -> list[str]:
        """Return rows whose cells are wrapped to the widths that their columns have together."""
        from rich.table import Table as Grid
        from rich.text import Text

        from npuprof.report.terminal_markdown import format_renderable

        if not rows:
            return []
        grid = Grid.grid(padding=(0, 2, 0, 0))
        widths = [max(map(measure_width, column)) for column in zip(*rows, strict=True)]
        fixed = widths[: len(widths) - self.wrapping]
        for index, _ in enumerate(widths):
            grid.add_column(width=fixed[index] if index < len(fixed) else None, overflow="fold")
        for number, row in enumerate(rows):
            is_header = self.header and not self.named and number == 0
            first = "yellow" if self.highlighted else ""
            styles = ["bold" if is_header else first, *["bold" if is_header else ""] * len(row)]
            grid.add_row(*map(Text, row, styles))
        # rich drops columns that have no room at all
        least = sum(fixed) + 2 * len(widths) + self.wrapping
        return format_renderable(grid, max(width, least), coloured)


def format_code_span(text: str, in_table: bool = True) -> str:
    """Return text as a code span of Markdown, in which nothing is a link, a mention or markup.

    By default for a table cell.
    """
    shown = escape_controls(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    span = f"{ticks}{pad}{shown}{pad}{ticks}"
    return _PIPE.sub(_escape_pipe, span) if in_table else span


def _escape_pipe(match: re.Match[str]) -> str:
    """Return a pipe after an odd number of backslashes, as backslashes escape each other."""
    before: str = match[1]
    return before + ("\\" if len(before) % 2 == 0 else "\\\\") + "|"


def _format_markdown_cell(cell: str) -> str:
    if isinstance(cell, Markup):
        return cell
    if isinstance(cell, Code):
        return format_code_span(cell) if cell else ""
    return _MARKS.sub(r"\\\1", escape_controls(cell))


class Markdown(Record):
    """A Markdown page and its parts, each with a flag for prose.

    ``show_link`` returns the terminal text of a link, given its text and target.
    """

    text: str
    parts: tuple[tuple[str, bool], ...]
    show_link: Callable[[str, str], str]

    def format_plain(self, coloured: bool = False) -> str:
        """Return the Markdown source."""
        return self.text

    def format_terminal(self, coloured: bool) -> str:
        """Return the text as lines that a terminal can show."""
        from npuprof.report.terminal_markdown import format_markdown_page

        return format_markdown_page(self.parts, self.show_link, coloured)
