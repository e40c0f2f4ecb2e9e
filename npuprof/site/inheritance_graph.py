"""The inheritance graph as a picture: each preset is to the right of its first parent, in layers.

A store has few presets with dependents, and many without: the latter share a box next to their
first parent, since a box for each would make the picture as tall as the store is large. Lines from
further parents, mostly mix-ins, are dashed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from npuprof.model import Record
from npuprof.system import group_pairs

#: The parents of each preset.
Parents = Mapping[str, Sequence[str]]
_LETTER = 7.25  # the width of a letter, in pixels like the next four
_LINE = 22  # the height of a name
_PAD = 8  # around the names of a box
_BETWEEN = 10  # between boxes of a layer
_ACROSS = 48  # between layers
_TALLEST = 40  # names in one column of a box
#: The maximum number of characters of a name in a box.
LONGEST_NAME = 64


class Box(Record):
    """One preset with dependents, or several without.

    Its position is the upper left corner, in pixels.
    """

    names: tuple[str, ...]
    x: int = 0
    y: int = 0

    @property
    def columns(self) -> int:
        """The number of columns of names."""
        return -(-len(self.names) // _TALLEST)

    @property
    def rows(self) -> int:
        """The number of rows of names."""
        return -(-len(self.names) // self.columns)

    @property
    def width(self) -> int:
        """In pixels."""
        return self.column * self.columns

    @property
    def column(self) -> int:
        """The width of its longest name, in pixels."""
        return round(min(LONGEST_NAME, max(map(len, self.names))) * _LETTER) + _PAD * 2

    @property
    def height(self) -> int:
        """In pixels."""
        return _PAD * 2 + _LINE * self.rows

    def place_name(self, index: int) -> tuple[int, int]:
        """Return the position of a name's text."""
        return self.x + _PAD + self.column * (index // self.rows), self.y + _PAD + _LINE * (
            index % self.rows
        ) + 15

    def place_ends(self, names: Sequence[str], is_left: bool) -> Iterator[tuple[int, int]]:
        """Yield the ends of lines at names: one at the middle of the side if these are all."""
        if len(names) == len(self.names):
            yield self.x + self.width * (not is_left), self.y + self.height // 2
            return
        for name in names:
            x, y = self.place_name(self.names.index(name))
            yield x - _PAD + self.column * (not is_left), y - 4  # the middle of the letters


class Line(Record):
    """Inheritance lines: their SVG path between two boxes, and the names at both ends.

    ``second`` if not to the first parent.
    """

    parent: str
    children: tuple[str, ...]
    path: str
    second: bool = False


class Family(Record):
    """The picture: its boxes, the lines between them, and its size in pixels."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


class _Branch:
    """A box and the branches to its right; ``height`` is the total height."""

    def __init__(self, names: Sequence[str]) -> None:
        self.box = Box(tuple(names))
        self.below: list[_Branch] = []
        self.height = 0


def draw_family(parents: Parents) -> Family:
    """Return the picture of presets, by their parents.

    A parent outside the store has no parents itself.
    """
    parents, depth = _find_depths(parents)
    extended = {name for names in parents.values() for name in names}
    branches = {name: _Branch([name]) for name in sorted(extended)}
    first = {name: above[0] for name, above in sorted(parents.items()) if above}
    tops: list[_Branch] = []
    for name, branch in branches.items():
        (branches[first[name]].below if name in first else tops).append(branch)
    for above, names in group_pairs(
        (first.get(name, ""), name) for name in sorted(parents.keys() - extended)
    ).items():
        (branches[above].below if above else tops).append(_Branch(names))
    families = [branch for branch in tops if branch.below]
    if others := [name for branch in tops if not branch.below for name in branch.box.names]:
        # mix-ins and unrelated presets share a box, below the family that extends most of them
        uses = Counter(
            _find_root(name, first)
            for name, above in parents.items()
            if not set(above).isdisjoint(others)
        )
        families.sort(key=lambda branch: uses[branch.box.names[0]])
        families.append(_Branch(others))
    boxes, width, height = _place_branches(families, depth)
    return Family(tuple(boxes), tuple(_draw_lines(parents, boxes, first)), width, height)


def _find_root(name: str, first: Mapping[str, str]) -> str:
    while name in first:
        name = first[name]
    return name


def _find_depths(parents: Parents) -> tuple[Parents, dict[str, int]]:
    """Return the parents without cycles, and the layer of each preset: below all its parents."""
    try:
        order = list(TopologicalSorter(parents).static_order())
    # a store with a fault still gets a picture: the presets of the cycle lose their parents
    except CycleError as error:
        return _find_depths({**parents, **dict.fromkeys(error.args[1], ())})
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[parent] for parent in parents.get(name, ())), default=-1)
    return parents, depth


def _place_branches(tops: list[_Branch], depth: Mapping[str, int]) -> tuple[list[Box], int, int]:
    """Return the positioned boxes, and the size of the picture.

    Each box is centred on the branches to its right.
    """
    layers = [tops]
    while below := [branch for above in layers[-1] for branch in above.below]:
        layers.append(below)
    widths = Counter[int]()
    for layer in reversed(layers):
        for branch in layer:
            branch.height = max(branch.box.height, _measure_column(branch.below))
            layer_now = max(depth[name] for name in branch.box.names)
            if branch.below or layer is tops:
                widths[layer_now] = max(widths[layer_now], branch.box.width)
    wide = [widths[number] for number in range(max(depth.values(), default=0) + 1)]
    starts = [_PAD + sum(wide[:number]) + _ACROSS * number for number in range(len(wide))]
    placed = []
    columns = [(tops, _PAD)]
    for column, y in columns:  # those to the right are added
        for branch in column:
            x = starts[max(depth[name] for name in branch.box.names)]
            placed.append(branch.box._replace(x=x, y=y + (branch.height - branch.box.height) // 2))
            below_y = y + (branch.height - _measure_column(branch.below)) // 2
            columns.append((branch.below, below_y))
            y += branch.height + _BETWEEN
    return (
        placed,
        max((box.x + box.width for box in placed), default=0) + _PAD,
        _PAD * 2 + _measure_column(tops),
    )


def _measure_column(column: Sequence[_Branch]) -> int:
    return sum(branch.height for branch in column) + _BETWEEN * max(0, len(column) - 1)


def _draw_lines(parents: Parents, boxes: Sequence[Box], first: Mapping[str, str]) -> list[Line]:
    home = {name: place for place, box in enumerate(boxes) for name in box.names}
    pairs = [
        (above, name)
        for name in sorted(parents)
        # a parent that is listed twice is one line
        for above in dict.fromkeys(parents[name])
        if home[above] != home[name]
    ]
    ends = group_pairs(
        ((above, home[name], first.get(name) != above), name) for above, name in pairs
    )
    return [
        Line(
            above, tuple(names), _draw_line(above, boxes[home[above]], names, boxes[below]), second
        )
        for (above, below, second), names in sorted(ends.items())
    ]


def _draw_line(parent: str, above: Box, names: Sequence[str], below: Box) -> str:
    ((x1, y1),) = above.place_ends([parent], is_left=False)
    path = ""
    for x2, y2 in below.place_ends(names, is_left=True):
        middle = (x1 + x2) // 2
        path += f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
    return path
