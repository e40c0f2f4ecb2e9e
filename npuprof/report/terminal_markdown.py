"""Markdown pages formatted for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from itertools import groupby

from rich.console import Console
from rich.markdown import Heading, TableElement
from rich.markdown import Markdown as RichMarkdown
from rich.theme import Theme

from npuprof.report.text import measure_width, paint_text
from npuprof.report.wrapping import find_width, wrap_lines

#: The maximum width of prose, in columns: longer lines are hard to read.
_WIDEST = 100
#: A line of code with a comment at its end, separated by blanks.
_REMARKED = re.compile(r"(\s*[^\s#].*?) {2,}# (.+)")
#: The indentation of a code block.
_INDENT = "    "
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


class _LeftHeading(Heading):
    LEVEL_ALIGN = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Page(RichMarkdown):
    elements = {**RichMarkdown.elements, "heading_open": _LeftHeading, "table_open": TableElement}


def format_markdown_page(
    parts: Iterable[tuple[str, bool]], show_link: Callable[[str, str], str], coloured: bool
) -> str:
    """Return a page as lines: paragraphs, tables and command output wrapped to the terminal, code
    unchanged.
    """
    columns = find_width()
    width = min(columns, _WIDEST)
    return "".join(
        _format_prose(part, width, show_link, coloured)
        if is_prose
        else _format_code(part, columns, coloured)
        for part, is_prose in parts
    )


def _format_prose(
    text: str, width: int, show_link: Callable[[str, str], str], coloured: bool
) -> str:
    def write_link(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        return f"(a picture: {label})" if picture else show_link(label, target)

    styles = dict.fromkeys(
        ("markdown.h1", "markdown.h2", "markdown.h3", "markdown.table.header"), "bold"
    )
    plain = {
        "markdown.code": "cyan",
        "markdown.table.border": "none",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
    }
    console = Console(
        file=StringIO(),
        width=width,
        theme=Theme({**styles, **plain}),
        highlight=False,
        emoji=False,
        markup=False,
        force_terminal=coloured,
        no_color=not coloured,
        color_system="standard" if coloured else None,
        legacy_windows=False,
    )
    with console.capture() as captured:
        console.print(_Page(_LINK.sub(write_link, text), hyperlinks=False))
    lines = [line.rstrip() for line in captured.get().split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n\n"


def _format_code(text: str, width: int, coloured: bool) -> str:
    """Return a block of code without its fences, indented.

    Command output is wrapped. Lines to copy are never broken: the comment at the end of a line that
    is too wide moves above it.
    """
    fence, *lines = text.splitlines()[:-1]
    room = width - len(_INDENT)
    if fence.strip("`~ ") == "console":
        runs = groupby(_mark_typed(lines), key=lambda pair: pair[1])
        blocks = (("\n".join(line for line, _ in run), typed) for typed, run in runs)
        shown = "\n".join(block if typed else wrap_lines(block, room) for block, typed in blocks)
    else:
        shown = "\n".join(
            _set_comment_apart(line, room) if measure_width(line) > room else line for line in lines
        )
    return (
        "".join(
            f"{_INDENT}{paint_text(line, '32', coloured)}".rstrip() + "\n"
            for line in shown.split("\n")
        )
        + "\n"
    )


def _set_comment_apart(line: str, room: int) -> str:
    """Return a line of code with its trailing comment moved above it; unchanged if it has none."""
    noted = _REMARKED.fullmatch(line)
    if noted is None:
        return line
    code, note = noted.groups()
    above = wrap_lines(f"{' ' * (len(code) - len(code.lstrip()))}# {note}", room)
    return above.replace("\n    ", "\n# ") + f"\n{code}"


def _mark_typed(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a terminal session with a flag: True for typed lines, at a prompt or
    continuing one.
    """
    goes_on = False
    for line in lines:
        typed = goes_on or line.startswith(("$ ", "> "))
        goes_on = typed and line.endswith("\\")
        yield line, typed
