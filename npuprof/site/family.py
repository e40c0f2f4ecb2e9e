"""Who extends whom, as a picture: layers from those that extend nobody down, drawn by igraph's layered layout.

A store has few presets that others extend, and many that nobody does: those that extend the same stand in one box together, as a
row each would make the picture as wide as the store is large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuprof.model import Finding, NpuprofError, Record

_WIDTH, _LINE, _PAD = 210, 20, 8  # of a box, of a name in it, around them: pixels
_ACROSS, _DOWN = 28, 56  # between boxes of a layer, and between layers
_TALLEST = 14  # names in one column of a box


class Box(Record):
    """One preset that others extend, or several that nobody does; its place is that of its upper left corner, in pixels."""

    names: tuple[str, ...]
    parents: tuple[str, ...]
    x: float = 0
    y: float = 0
    columns: int = 1

    @property
    def width(self) -> int:
        """In pixels."""
        return _WIDTH * self.columns

    @property
    def height(self) -> int:
        """In pixels."""
        return _PAD * 2 + _LINE * -(-len(self.names) // self.columns)

    def place_name(self, index: int) -> tuple[float, float]:
        """Return where the text of a name stands."""
        rows = -(-len(self.names) // self.columns)
        return self.x + _PAD + _WIDTH * (index // rows), self.y + _PAD + _LINE * (index % rows) + 14


class Line(Record):
    """One preset extends another: the way from box to box, as SVG writes a path, and the names at both ends."""

    parent: str
    children: tuple[str, ...]
    path: str


class Family(Record):
    """The picture: its boxes, the lines between them, and its size in pixels."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def draw_family(parents: Mapping[str, Sequence[str]]) -> Family:
    """Return the picture of presets, by what each extends; a parent that is no preset of the store is one without parents.

    Raises NpuprofError where igraph is not installed.
    """
    boxes = _collect_boxes(parents)
    if not boxes:
        return Family((), (), 0, 0)
    home = {name: place for place, box in enumerate(boxes) for name in box.names}
    edges = sorted({(home[parent], place) for place, box in enumerate(boxes) for parent in box.parents if home[parent] != place})
    placed = _place_boxes(boxes, edges)
    left, right = min(box.x for box in placed), max(box.x + box.width for box in placed)
    moved = tuple(box._replace(x=box.x - left + _PAD, y=box.y + _PAD) for box in placed)
    lines = tuple(Line(moved[above].names[0], moved[below].names, _draw_line(moved[above], moved[below])) for above, below in edges)
    return Family(moved, lines, round(right - left) + 2 * _PAD, round(max(box.y + box.height for box in moved)) + _PAD)


def _collect_boxes(parents: Mapping[str, Sequence[str]]) -> list[Box]:
    """Return a box for each preset that others extend, and one for all others that extend the same."""
    extended = {name for names in parents.values() for name in names}
    boxes = [Box((name,), tuple(dict.fromkeys(parents.get(name, ())))) for name in sorted(extended)]
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(parents):
        if name not in extended:
            alike.setdefault(tuple(dict.fromkeys(parents[name])), []).append(name)
    for above, names in sorted(alike.items()):
        boxes.append(Box(tuple(names), above, columns=-(-len(names) // _TALLEST)))
    return boxes


def _place_boxes(boxes: list[Box], edges: list[tuple[int, int]]) -> list[Box]:
    try:
        import igraph
    except ImportError:
        why = "The picture of who extends whom is laid out by it."
        raise NpuprofError([Finding("NP981", "igraph is not installed", why, "pip install 'npuprof[site]'")]) from None
    graph = igraph.Graph(len(boxes), edges, directed=True)
    layers = _find_layers(len(boxes), edges)
    spots = graph.layout_sugiyama(layers=layers, hgap=1, vgap=1, maxiter=100).coords[: len(boxes)]
    tops: list[float] = [0]
    for layer in range(max(layers)):
        tops.append(tops[-1] + max((box.height for box, own in zip(boxes, layers, strict=True) if own == layer), default=0) + _DOWN)
    rows: dict[int, list[int]] = {}
    for place in sorted(range(len(boxes)), key=lambda place: (spots[place][0], place)):
        rows.setdefault(layers[place], []).append(place)
    placed: dict[int, Box] = {}
    for layer, row in rows.items():
        widths = [boxes[place].width for place in row]
        x = -(sum(widths) + _ACROSS * (len(row) - 1)) / 2  # each layer around the middle
        for place, width in zip(row, widths, strict=True):
            placed[place] = boxes[place]._replace(x=x, y=tops[layer])
            x += width + _ACROSS
    return [placed[place] for place in range(len(boxes))]


def _find_layers(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """Return how deep each box stands: one below the lowest of those it extends; circles end where they began."""
    above: dict[int, list[int]] = {}
    for one, other in edges:
        above.setdefault(other, []).append(one)
    depth: dict[int, int] = {}
    for start in range(count):
        stack, open_now = [start], set[int]()
        while stack:
            place = stack[-1]
            open_now.add(place)
            waiting = [one for one in above.get(place, ()) if one not in depth and one not in open_now]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            depth.setdefault(place, 1 + max((depth[one] for one in above.get(place, ()) if one in depth), default=-1))
    return [depth[place] for place in range(count)]


def _draw_line(above: Box, below: Box) -> str:
    x1, y1, x2, y2 = above.x + above.width / 2, above.y + above.height, below.x + below.width / 2, below.y
    middle = (y1 + y2) / 2
    return f"M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
