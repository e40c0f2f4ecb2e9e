"""Where lines end that were cut at one width: by a terminal, by ``cut -c``, by what ships logs. Nothing in such a line says so.

The longest lines of a file end at that width then, and where it was cut from some place on, those of each block behind that. Of a text
that ends there nobody knows whether it would go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from npuprof.runs.evidence import Process, Text, Values
from npuprof.runs.evidence.lines import Line

#: So many lines of different kinds end at the same place where lines were cut there: of their own accord they do not.
_ENOUGH = 3
#: How many of the longest lines are remembered.
_MOST_LINES = 512
_DIGITS = re.compile(r"\d+")
#: A line of a block, of the engine, or a warning of TensorFlow 2.
_PAIR = re.compile(
    r"(?:GE(?:Session)? ?option: ([\w.]+), value: (.*?)\.?|(?:Unrecognized graph engine option | {2})?([\w.]+): ?(.*))", re.DOTALL
)
#: The stages that have blocks; what is kept of others are single lines.
_BLOCKS = frozenset(("init", "session", "graph"))


class _Widest:
    """The longest lines by one measure, as what they say."""

    __slots__ = ("size", "texts")

    def __init__(self) -> None:
        self.size = 0
        self.texts: set[str] = set()

    def see(self, size: int, text: str) -> None:
        if size > self.size:
            self.size = size
            self.texts.clear()
        if len(self.texts) < _MOST_LINES:
            self.texts.add(text)

    def are_cut(self) -> bool:
        """Return whether so many kinds of lines end there that they were cut."""
        kinds = {_DIGITS.sub("", text.partition(":")[0]) for text in self.texts}
        return len(kinds) >= _ENOUGH


class Widths:
    """The longest lines of a stream of logs, measured in bytes, in characters, and without what a launcher put before them."""

    def __init__(self) -> None:
        self._bytes, self._characters, self._own = _Widest(), _Widest(), _Widest()

    def see(self, line: Line, raw: bytes) -> None:
        """Take a line as it was read."""
        size = len(raw)
        if size >= self._bytes.size:
            self._bytes.see(size, line.text)
        if line.size and line.size >= self._own.size:
            self._own.see(line.size, line.text)
        if not raw.isascii():
            size = len(raw.decode("utf-8", "replace"))
        if size >= self._characters.size:
            self._characters.see(size, line.text)

    def mark(self, processes: Iterable[Process]) -> None:
        """Mark the texts that end where the longest lines do: as cut where many do."""
        edges: dict[str, bool] = {}
        for widest in (self._bytes, self._characters, self._own):
            are_cut = widest.are_cut()
            for line in widest.texts:
                edges[line] = edges.get(line, False) or are_cut
        pairs = {
            (match[1] or match[3], match[2] or match[4] or ""): is_cut
            for line, is_cut in edges.items()
            if (match := _PAIR.fullmatch(line)) is not None
        }
        for process in processes:
            for stage, values in _list_values(process):
                for key, found in values.items():
                    cut = pairs.get((key, found.text)) if stage in _BLOCKS else _find_end(edges, key, found.text)
                    if cut is not None:
                        values[key] = _mark(found, cut)
            for leaf, texts in process.warned.items():
                texts[:] = [_mark(one, pairs[leaf, one.text]) if (leaf, one.text) in pairs else one for one in texts]


def count_ending_there(values: Values, key: str) -> int:
    """Return how many lines of a block end where that of a key does, none where longer ones stand both before and behind it.

    All of them have the same head, so that key and text are what differs.
    """
    keys = list(values)
    place = keys.index(key)
    most = 0
    for measure in (_count_bytes, len):
        sizes = [measure(one) + measure(values[one].text) for one in keys]
        for side in (sizes[: place + 1], sizes[place:]):
            if max(side) == sizes[place]:
                most = max(most, side.count(sizes[place]))
    return most


def is_block_cut(values: Values, key: str) -> bool:
    """Return whether the line of a key is among the longest of its block, and more of them end there than do so by chance.

    Lines with empty texts do not count: how long they are is how long the names of keys are.
    """
    for measure in (_count_bytes, len):
        sizes = {one: measure(one) + measure(text.text) for one, text in values.items()}
        longest = max(sizes.values())
        if sizes[key] == longest and sum(size == longest and bool(values[one].text) for one, size in sizes.items()) > _ENOUGH:
            return True
    return False


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _mark(found: Text, cut: bool) -> Text:
    """Return a text as one at the edge; that an empty one ends there by chance is likelier than that a cut one does."""
    return found._replace(cut=found.cut or cut, edge=cut or bool(found.text))


def _find_end(edges: dict[str, bool], key: str, text: str) -> bool | None:
    """Return whether the line is cut that ends with a text, None where there is none. One that says a single thing has names of its own."""
    ends = (f" {key}: {text}", f" {key} is {text}")
    for line, cut in edges.items():
        if line.endswith(ends) or (line.endswith(text) and line.removesuffix(text).rstrip() == line.partition(":")[0] + ":"):
            return cut
    return None


def _list_values(process: Process) -> Iterable[tuple[str, Values]]:
    for epoch in process.epochs:
        yield from ((stage, one.values) for stage, maps in epoch.maps.items() for one in maps)
        yield from (("init", one.values) for one in epoch.asked)
    yield from ((stage, one.values) for stage, one in process.pending)
