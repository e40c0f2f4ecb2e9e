"""A terminal recording as an animated SVG: what commands print, shown step by step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

_LETTER, _LINE, _PAD = 7.8, 19, 16  # pixels
_LOOP = 10  # seconds
_SCHEMES = {
    "light": {
        "ink": "#1b1f24",
        "paper": "#f5f7f9",
        "line": "#d0d7de",
        "quiet": "#57606a",
        "text": "#0a3069",
        "name": "#0550ae",
        "prompt": "#116329",
    },
    "dark": {
        "ink": "#e6edf3",
        "paper": "#161b22",
        "line": "#30363d",
        "quiet": "#9ea7b3",
        "text": "#a5d6ff",
        "name": "#79b8ff",
        "prompt": "#56d364",
    },
}
_TOKENS = re.compile(
    r"""(?P<quiet>^\#.*)|(?P<prompt>^\$ )|(?P<text>"[^"]*"|'[^']*')
    |(?P<name>^\[[^\]]+\]|^export|^[A-Za-z0-9_.]+(?=\ =))""",
    re.VERBOSE,
)


def draw_recording(steps: Sequence[tuple[float, str, str]], scheme: str, title: str) -> str:
    """Return the SVG of steps, each a second at which it appears, a command and what it prints.

    It starts again after ten seconds.
    """
    groups = [
        (second, [f"$ {command}", *output.rstrip("\n").split("\n"), ""])
        for second, command, output in steps
    ]
    lines = [line for _, group in groups for line in group][:-1]
    width, height = round(max(map(len, lines)) * _LETTER) + _PAD * 2, len(lines) * _LINE + _PAD * 2
    colours = _SCHEMES[scheme]
    style = [
        (
            "text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: "
            f"{colours['ink']}; white-space: pre; }}"
        )
    ]
    style += [
        f".{name} {{ fill: {colours[name]}; }}" for name in ("quiet", "text", "name", "prompt")
    ]
    for number, (second, _) in enumerate(groups):
        start = 100 * second / _LOOP
        if start:
            style.append(
                f"@keyframes s{number} {{ 0%, {start:g}% {{ opacity: "
                f"0; }} {start + 1:g}%, 100% {{ opacity: 1; }} }}"
            )
            style.append(f".s{number} {{ animation: s{number} {_LOOP}s infinite; }}")
    style.append("@media (prefers-reduced-motion: reduce) { g { animation: none !important; } }")
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">'
        ),
        f"<title>{escape(title)}</title>",
        f"<style>{' '.join(style)}</style>",
        (
            f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" '
            f'fill="{colours["paper"]}" stroke="{colours["line"]}"/>'
        ),
        *_draw_groups(groups),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _draw_groups(groups: Sequence[tuple[float, Sequence[str]]]) -> Iterator[str]:
    y = _PAD + 13
    for number, (_, lines) in enumerate(groups):
        yield f'<g class="s{number}">'
        for line in lines:
            if line:
                yield (
                    f'<text x="{_PAD}" y="{y}" textLength="{len(line) * _LETTER:g}" '
                    f'xml:space="preserve">{_colour_line(line)}</text>'
                )
            y += _LINE
        yield "</g>"


def _colour_line(line: str) -> str:
    shown, end = [], 0
    for token in _TOKENS.finditer(line):
        shown += [
            escape(line[end : token.start()], quote=False),
            f'<tspan class="{token.lastgroup}">{escape(token[0], quote=False)}</tspan>',
        ]
        end = token.end()
    return "".join([*shown, escape(line[end:], quote=False)])
