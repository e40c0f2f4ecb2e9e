"""The diagram of the README as an SVG: presets, what they resolve to, and what is rendered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

_LETTER, _LINE, _PAD, _HEAD = 7.25, 17, 12, 30  # pixels
_GAP, _BETWEEN, _TOP = 64, 40, 34
_SCHEMES = {
    "light": {
        "ink": "#1b1f24",
        "paper": "#f5f7f9",
        "line": "#8c959f",
        "quiet": "#57606a",
        "first": "#0969da",
        "second": "#1a7f37",
    },
    "dark": {
        "ink": "#e6edf3",
        "paper": "#161b22",
        "line": "#6e7681",
        "quiet": "#9ea7b3",
        "first": "#79b8ff",
        "second": "#56d364",
    },
}
#: The colours of presets, in the order of their cards.
TINTS = ("first", "second")


class Card(NamedTuple):
    """A box: its title, its lines, and a colour for its edge.

    A line is its text, its style (``quiet`` or nothing), and the colour of the bar before it.
    """

    title: str
    lines: Sequence[tuple[str, str, str]]
    colour: str = "line"

    @property
    def width(self) -> int:
        """Its width in pixels."""
        longest = max(map(len, (self.title, *(text for text, _, _ in self.lines))))
        return round(longest * _LETTER) + _PAD * 2 + 8

    @property
    def height(self) -> int:
        """Its height in pixels."""
        return _HEAD + len(self.lines) * _LINE + _PAD


def draw_inheritance(columns: Sequence[tuple[str, Sequence[Card]]], scheme: str, title: str) -> str:
    """Return the SVG of three columns of cards, each column with its heading.

    The cards of the first column are presets, and the last of them extends those above it.
    """
    widths = [max(card.width for card in cards) for _, cards in columns]
    heights = [
        sum(card.height for card in cards) + _BETWEEN * (len(cards) - 1) for _, cards in columns
    ]
    width, height = sum(widths) + _GAP * (len(columns) - 1) + 2, max(heights) + _TOP + 2
    colours = _SCHEMES[scheme]
    mono = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
    sans = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
    style = [
        f"text {{ font: 12px {mono}; fill: {colours['ink']}; white-space: pre; }}",
        f".quiet {{ fill: {colours['quiet']}; }}",
        ".title { font-weight: 600; }",
        f".heading {{ font: 600 14px {sans}; }}",
        f".label {{ font: 12px {sans}; fill: {colours['quiet']}; }}",
    ]
    marker = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{colours["line"]}"/></marker>'
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{' '.join(style)}</style>",
        f"<defs>{marker}</defs>",
    ]
    edges: list[tuple[list[float], float, float]] = []  # middles of cards, left and right edge
    left = 1.0
    for (heading, cards), wide, high in zip(columns, widths, heights, strict=True):
        parts.append(f'<text class="heading" x="{left:g}" y="16">{escape(heading)}</text>')
        top = _TOP + (max(heights) - high) / 2 + 1
        middles = []
        for place, card in enumerate(cards):
            parts += _draw_card(card, left, top, wide, colours)
            middles.append(top + card.height / 2)
            if place and not edges:
                parts += _draw_parent(left + wide / 2, top, colours)
            top += card.height + _BETWEEN
        edges.append((middles, left, left + wide))
        left += wide + _GAP
    for (sources, _, start), (targets, end, _) in pairwise(edges):
        parts += [
            _draw_arrow(start, source, end, target, colours)
            for source in sources
            for target in targets
        ]
    return "\n".join([*parts, "</svg>", ""])


def _draw_card(
    card: Card, left: float, top: float, width: int, colours: dict[str, str]
) -> Iterator[str]:
    yield (
        f'<rect x="{left:g}" y="{top:g}" width="{width}" height="{card.height}" rx="8" '
        f'fill="{colours["paper"]}" stroke="{colours[card.colour]}"/>'
    )
    y = top + 21
    yield f'<text class="title" x="{left + _PAD:g}" y="{y:g}">{escape(card.title)}</text>'
    y = top + _HEAD + 13
    for text, look, bar in card.lines:
        if bar:
            yield (
                f'<rect x="{left + _PAD:g}" y="{y - 13:g}" width="3" height="{_LINE}" '
                f'fill="{colours[bar]}"/>'
            )
        kind = f' class="{look}"' if look else ""
        shown = escape(text, quote=False)
        yield f'<text{kind} x="{left + _PAD + (8 if bar else 0):g}" y="{y:g}">{shown}</text>'
        y += _LINE


def _draw_parent(middle: float, top: float, colours: dict[str, str]) -> Iterator[str]:
    """Yield the arrow from a preset up to the one that it extends."""
    yield (
        f'<path d="M{middle:g} {top:g}V{top - _BETWEEN + 2:g}" stroke="{colours["line"]}" '
        'fill="none" marker-end="url(#tip)"/>'
    )
    yield f'<text class="label" x="{middle + 8:g}" y="{top - _BETWEEN / 2 + 4:g}">extends</text>'


def _draw_arrow(
    left: float, start: float, right: float, end: float, colours: dict[str, str]
) -> str:
    half = (left + right) / 2
    return (
        f'<path d="M{left + 2:g} {start:g}C{half:g} {start:g} {half:g} {end:g} '
        f'{right - 3:g} {end:g}" stroke="{colours["line"]}" fill="none" marker-end="url(#tip)"/>'
    )
