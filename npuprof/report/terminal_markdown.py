"""Markdown pages formatted for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from itertools import groupby

from rich.console import Console, RenderableType
from rich.markdown import Heading, TableElement
from rich.markdown import Markdown as RichMarkdown
from rich.theme import Theme

from npuprof.report.text import measure_width, paint_text
from npuprof.report.wrapping import find_width, wrap_lines

#: The maximum width of prose, in columns: longer lines are hard to read.
_WIDEST = 100
#: A line of code with a comment at its end, separated by blanks.
_COMMENTED = re.compile(r"(?P<code>\s*[^\s#].*?) {2,}# (?P<comment>.+)")
#: The indentation of a code block.
_INDENT = "    "
_LINK = re.compile(r"(?P<picture>!?)\[(?P<label>[^\]]*)\]\((?P<target>[^)\s]+)\)")


class _LeftHeading(Heading):
    LEVEL_ALIGN = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Page(RichMarkdown):
    elements = {**RichMarkdown.elements, "heading_open": _LeftHeading, "table_open": TableElement}


def format_renderable(renderable: RenderableType, width: int, coloured: bool) -> list[str]:
    """Return the lines of what rich can lay out, without blanks at their ends."""
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
        console.print(renderable)
    return [line.rstrip() for line in captured.get().splitlines()]


def format_markdown_page(
    parts: Iterable[tuple[str, bool]], show_link: Callable[[str, str], str], coloured: bool
) -> str:
    """Return a page as lines: prose, tables and output wrapped to the terminal, code unchanged."""
    columns = find_width()
    width = min(columns, _WIDEST)
    page = ""
    for part, is_prose in parts:
        if is_prose:
            page += _format_prose(part, width, show_link, coloured)
        else:
            page += _format_code(part, columns, coloured)
    return page


def _format_prose(
    text: str, width: int, show_link: Callable[[str, str], str], coloured: bool
) -> str:
    def write_link(match: re.Match[str]) -> str:
        label = match["label"]
        return f"(a picture: {label})" if match["picture"] else show_link(label, match["target"])

    page = _Page(_LINK.sub(write_link, text), hyperlinks=False)
    lines = "\n".join(format_renderable(page, width, coloured))
    return re.sub(r"\n{3,}", "\n\n", lines).strip("\n") + "\n\n"


def _format_code(text: str, width: int, coloured: bool) -> str:
    """Return a block of code without its fences, indented.

    Command output is wrapped. Lines to copy are never broken: the comment at the end of a line that
    is too wide moves above it.
    """
    fence, *lines = text.splitlines()[:-1]
    room = width - len(_INDENT)
    blocks = []
    if fence.strip("`~ ") == "console":
        for is_typed, pairs in groupby(_mark_typed(lines), key=lambda pair: pair[1]):
            block = "\n".join(line for line, _ in pairs)
            blocks.append(block if is_typed else wrap_lines(block, room))
    else:
        blocks = [
            line if measure_width(line) <= room else _set_comment_apart(line, room)
            for line in lines
        ]
    text = ""
    for line in "\n".join(blocks).split("\n"):
        text += f"{_INDENT}{paint_text(line, '32', coloured)}".rstrip() + "\n"
    return f"{text}\n"


def _set_comment_apart(line: str, room: int) -> str:
    """Return a line of code with its trailing comment moved above it; unchanged if it has none."""
    match = _COMMENTED.fullmatch(line)
    if match is None:
        return line
    code = match["code"]
    indent = " " * (len(code) - len(code.lstrip()))
    above = wrap_lines(f"{indent}# {match['comment']}", room)
    # wrap_lines indents the lines that it adds by four blanks
    return above.replace("\n    ", "\n# ") + f"\n{code}"


def _mark_typed(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a terminal session, each with whether the user typed it."""
    goes_on = False
    for line in lines:
        typed = goes_on or line.startswith(("$ ", "> "))
        goes_on = typed and line.endswith("\\")
        yield line, typed
