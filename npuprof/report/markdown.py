"""A page of Markdown: as it is in a pipe, laid out on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from npuprof.model import Record
from npuprof.report.text import measure_width, paint_text
from npuprof.system.patterns import lazy_pattern

#: What is never wider, since long lines of prose are hard to read.
_WIDEST = 100
#: A line of code with a remark at its end, which blanks set apart.
_REMARKED = lazy_pattern(r"(\s*[^\s#].*?) {2,}# (.+)")
#: What stands before the lines of a block of code.
_INDENT = "    "
_LINK = lazy_pattern(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


class Markdown(Record):
    """A text in Markdown, and its pieces: of each whether it is prose.

    ``show_link`` says what a terminal shows of a link: it is given what is linked and where to.
    """

    text: str
    parts: tuple[tuple[str, bool], ...]
    show_link: Callable[[str, str], str]

    def format_plain(self, coloured: bool = False) -> str:
        """Return the text as it is written."""
        return self.text

    def format_terminal(self, coloured: bool) -> str:
        """Return the text as lines that a terminal holds: paragraphs, tables and what commands print of its width, code as it is."""
        from npuprof.report.terminal import find_width

        columns = find_width()
        width = min(columns, _WIDEST)
        return "".join(
            self._format_prose(part, width, coloured) if prose else _format_code(part, columns, coloured) for part, prose in self.parts
        )

    def _format_prose(self, text: str, width: int, coloured: bool) -> str:
        from io import StringIO

        from rich.console import Console
        from rich.markdown import Heading, TableElement
        from rich.markdown import Markdown as Laid
        from rich.theme import Theme

        class LeftHeading(Heading):
            LEVEL_ALIGN = dict.fromkeys(Heading.LEVEL_ALIGN, "left")

        class Page(Laid):
            elements = {**Laid.elements, "heading_open": LeftHeading, "table_open": TableElement}

        styles = dict.fromkeys(("markdown.h1", "markdown.h2", "markdown.h3", "markdown.table.header"), "bold")
        plain = {"markdown.code": "cyan", "markdown.table.border": "none", "markdown.item.bullet": "none", "markdown.item.number": "none"}
        console = Console(
            file=StringIO(), width=width, theme=Theme({**styles, **plain}), highlight=False, emoji=False, markup=False,
            force_terminal=coloured, no_color=not coloured, color_system="standard" if coloured else None, legacy_windows=False,
        )  # fmt: skip
        with console.capture() as captured:
            console.print(Page(_LINK.sub(self._write_link, text), hyperlinks=False))
        lines = [line.rstrip() for line in captured.get().split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n\n"

    def _write_link(self, match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        return f"(a picture: {label})" if picture else self.show_link(label, target)


def _format_code(text: str, width: int, coloured: bool) -> str:
    """Return a block of code without its fences, indented.

    What commands printed is wrapped. What may be copied is never broken: a remark at the end of a line that is too wide stands above it.
    """
    from npuprof.report.terminal import wrap_lines

    fence, *lines = text.splitlines()[:-1]
    room = width - len(_INDENT)
    if fence.strip("`~ ") == "console":
        runs = groupby(_mark_typed(lines), key=lambda pair: pair[1])
        blocks = (("\n".join(line for line, _ in run), typed) for typed, run in runs)
        shown = "\n".join(block if typed else wrap_lines(block, room) for block, typed in blocks)
    else:
        shown = "\n".join(_set_remark_apart(line, room) if measure_width(line) > room else line for line in lines)
    return "".join(f"{_INDENT}{paint_text(line, '32', coloured)}".rstrip() + "\n" for line in shown.split("\n")) + "\n"


def _set_remark_apart(line: str, room: int) -> str:
    """Return a line of code below the remark at its end; as it is where it has none."""
    from npuprof.report.terminal import wrap_lines

    remarked = _REMARKED.fullmatch(line)
    if remarked is None:
        return line
    code, remark = remarked.groups()
    above = wrap_lines(f"{' ' * (len(code) - len(code.lstrip()))}# {remark}", room)
    return above.replace("\n    ", "\n# ") + f"\n{code}"


def _mark_typed(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a terminal, and of each whether it was typed: behind a prompt, or going on what was."""
    goes_on = False
    for line in lines:
        typed = goes_on or line.startswith(("$ ", "> "))
        goes_on = typed and line.endswith("\\")
        yield line, typed
