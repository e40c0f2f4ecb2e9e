"""The recording of a terminal that the README shows: its commands and what they print, as a picture whose text is text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple
from xml.etree import ElementTree

WIDTH = 104
#: Seconds between two commands; who asks for no motion has all of it at once.
PACE = 2.5
#: What rich fills in: no font is fetched, the viewer's own is stretched to the columns.
_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{unique_id}-name {unique_id}-told">
<title id="{unique_id}-name">TITLE</title>
<desc id="{unique_id}-told">TOLD</desc>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
 font-size: {char_height}px; line-height: {line_height}px; white-space: pre; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
STEPS
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Step(NamedTuple):
    """A command and what it prints, with its colours."""

    command: str
    printed: str


def draw_recording(steps: Sequence[Step], title: str) -> str:
    """Return an SVG in which the steps appear one after the other."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False)
    first_lines: list[int] = []
    line = 0
    for step in steps:
        first_lines.append(line)
        shown = Text.assemble(("$ ", "bold green"), (step.command, "bold"), "\n").append_text(Text.from_ansi(step.printed.rstrip("\n")))
        line += len(console.render_lines(shown, console.options.update(width=WIDTH)))
        console.print(shown)
    drawn = console.export_svg(title=title, code_format=_FRAME, unique_id="tour")
    steps_css = "\n".join(f".step{number} {{ animation: appear 0.2s {number * PACE:g}s both; }}" for number in range(1, len(steps)))
    css = f"@media (prefers-reduced-motion: no-preference) {{\n@keyframes appear {{ from {{ opacity: 0; }} }}\n{steps_css}\n}}"

    def place(match: re.Match[str]) -> str:
        number = sum(first <= int(match[1]) for first in first_lines) - 1
        return f'<g class="step{number}">{match[0]}</g>' if number else match[0]

    drawn = re.sub(r'<text [^>]*clip-path="url\(#tour-line-(\d+)\)"[^>]*>.*?</text>', place, drawn)
    told = "Commands, one after the other: " + "; ".join(step.command for step in steps)
    return drawn.replace("TITLE", _escape(title)).replace("TOLD", _escape(told)).replace("STEPS", css)


def read_lines(drawn: str) -> list[str]:
    """Return the lines of text that a recording shows, from top to bottom."""
    found: dict[float, list[tuple[float, str]]] = {}
    for element in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text"):
        if element.get("clip-path"):
            found.setdefault(float(str(element.get("y"))), []).append((float(str(element.get("x"))), "".join(element.itertext())))
    return ["".join(text for _, text in sorted(found[y])).replace("\u00a0", " ").rstrip() for y in sorted(found)]


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
