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
#: So many do where it begins behind longer lines: the last lines of a log are few.
_ENOUGH_LATER = 5
#: How many of the longest lines are remembered, and how many of the longest behind them.
_MOST_LINES, _MOST_LATER = 512, 64
_DIGITS = re.compile(r"\d+")
#: A line of a block, of the engine, or a warning of TensorFlow 2.
_PAIR = re.compile(
    r"(?:GE(?:Session)? ?option: ([\w.]+), value: (.*?)\.?|(?:Unrecognized graph engine option | {2})?([\w.]+): ?(.*))", re.DOTALL
)
#: The stages that have blocks; what is kept of others are single lines.
_BLOCKS = frozenset(("init", "session", "graph"))


class _Width:
    """Lines of one length, longer than all that come after them, as what they say."""

    __slots__ = ("size", "texts")

    def __init__(self, size: int) -> None:
        self.size = size
        self.texts: set[str] = set()

    def count_kinds(self, filled: bool) -> int:
        """Return how many kinds of lines end there; ``filled`` ones only are those with a text behind their name."""
        return len({_DIGITS.sub("", name) for name, _, text in (one.partition(":") for one in self.texts) if text.strip() or not filled})


class _Lengths:
    """The longest lines by one measure, and the longest of all that follow, and so on to the last."""

    __slots__ = ("widths",)

    def __init__(self) -> None:
        self.widths: list[_Width] = []

    def see(self, size: int, text: str) -> None:
        """Take a line."""
        widths = self.widths
        while widths and widths[-1].size < size:
            del widths[-1]
        if not widths or widths[-1].size > size:
            widths.append(_Width(size))
        if len(widths[-1].texts) < (_MOST_LINES if len(widths) == 1 else _MOST_LATER):
            widths[-1].texts.add(text)

    def copy(self) -> _Lengths:
        """Return what is known so far, for another measure."""
        made = _Lengths()
        for width in self.widths:
            made.widths.append(_Width(width.size))
            made.widths[-1].texts |= width.texts
        return made

    def list_edges(self) -> Iterable[tuple[str, bool]]:
        """Yield what lines say that are the longest, and whether they were cut; of later ones only those that were."""
        for number, width in enumerate(self.widths):
            are_cut = width.count_kinds(number > 0) >= (_ENOUGH_LATER if number else _ENOUGH)
            if are_cut or not number:
                yield from ((text, are_cut) for text in width.texts)


class Widths:
    """The longest lines of a stream of logs, measured in bytes, in characters, and without what a launcher put before them."""

    def __init__(self) -> None:
        self._bytes = _Lengths()
        self._characters: _Lengths | None = None  # while it measures what the bytes do
        self._own: _Lengths | None = None

    def see(self, line: Line, raw: bytes) -> None:
        """Take a line as it was read."""
        size = len(raw)
        is_ascii = raw.isascii()
        if self._characters is not None or not is_ascii:
            self._characters = self._characters or self._bytes.copy()
            self._characters.see(size if is_ascii else len(raw.decode("utf-8", "replace")), line.text)
        if line.size and (self._own is not None or line.size != size):
            self._own = self._own or self._bytes.copy()
            self._own.see(line.size, line.text)
        self._bytes.see(size, line.text)

    def mark(self, processes: Iterable[Process]) -> None:
        """Mark the texts that end where the longest lines do: as cut where many do."""
        edges: dict[str, bool] = {}
        for lengths in filter(None, (self._bytes, self._characters, self._own)):
            for line, is_cut in lengths.list_edges():
                edges[line] = edges.get(line, False) or is_cut
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
