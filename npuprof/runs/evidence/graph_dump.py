"""Graph dumps: the attributes of the nodes that carry every option, before the partition or after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from npuprof.catalog.wire import load_attribute_names
from npuprof.runs.evidence import Map, Process, Text, Values
from npuprof.runs.evidence.lines import decode_text
from npuprof.runs.evidence.places import Readable
from npuprof.runs.evidence.scanning import Ahead, read_pieces
from npuprof.system.patterns import lazy_pattern

_KEY = lazy_pattern(rb'\s*key: "(_[\w.]+)"', re.ASCII)
_NAME = lazy_pattern(rb'key: "[\w.:/+-]+"$', re.ASCII)
_STRING = lazy_pattern(rb'\s*s: "((?:[^"\\]|\\.)*)"[\s}]*$')
_ESCAPE = lazy_pattern(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_PLAIN = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
#: A node with fewer attributes of options is not the one that carries them all.
LEAST_ATTRIBUTES = 20


#: How deep the lines of an attribute are.
_IN_ATTRIBUTE = 2
#: One of these is among the attributes of every node that carries all options; most nodes of a graph have none of them.
_SIGNS = (b'"_graph_run_mode"', b'"_hcom_parallel"', b'"_iterations_per_loop"', b'"_enable_dump"', b'"_job"')
#: How the blocks of a dump begin and end where it is written as usual; a longer one is no node of options.
_BEGIN, _END, _LONGEST_BLOCK = (b"node {\n", b"library {\n", b"versions {\n"), b"\n}\n", 1 << 20


def scan_dump(stream: Readable, process: Process, tell: Callable[[int], None], most: int | None) -> None:
    """Add the attributes of a dump to a process. A file that does not begin as a graph has none."""
    reader = _DumpReader()
    pieces = read_pieces(stream, most)
    first = next(pieces, b"")
    tell(len(first))
    if first.startswith(_BEGIN):
        _scan_blocks(first, pieces, reader, tell)
    for kind, values, intact in reader.found:
        process.dumps.append((kind, Map(values, whole=reader.whole and intact)))


def _scan_blocks(rest: bytes, pieces: Iterator[bytes], reader: _DumpReader, tell: Callable[[int], None]) -> None:
    """Read those blocks of a dump in which a sign of options is."""
    inside = False  # what is there is the rest of a block that is too long
    while True:
        if inside and (end := rest.find(_END)) >= 0:
            rest, inside = rest[end + len(_END) :], False
        end = -1 if inside else rest.rfind(_END)
        if end >= 0:
            _read_signed(rest[: end + len(_END)], reader)
            rest = rest[end + len(_END) :]
        if inside or len(rest) > _LONGEST_BLOCK:
            rest, inside = rest[-len(_END) :], True
        piece = next(pieces, b"")
        if not piece:
            break
        tell(len(piece))
        rest += piece
    if not inside and rest.endswith(_END[:-1]):  # the newline behind the last one is not always there
        _read_signed(rest + b"\n", reader)
        rest = b""
    reader.whole = not rest.strip() and not inside and reader.depth == 0


def _read_signed(data: bytes, reader: _DumpReader) -> None:
    ahead, place = Ahead(data, _SIGNS), 0
    while (hit := ahead.find(place)) is not None:
        last = data.rfind(_END, place, hit)
        start = last + len(_END) if last >= 0 else place
        place = data.index(_END, hit) + len(_END)
        for line in data[start:place].split(b"\n"):
            reader.take(line)


class _DumpReader:
    """Who takes the lines of a dump: ``found`` are the texts of nodes that carry all options, by kind, ``whole`` whether it has its end.

    A node is no longer ``intact`` where a line of its attributes is lost or spoilt: what it does not have says nothing then.
    """

    def __init__(self) -> None:
        self._known = load_attribute_names()
        self._key, self._kind = "", "node"
        self._values: Values = {}
        self.depth = 0
        self.found: list[tuple[str, Values, bool]] = []
        self.whole = False
        self._intact = True
        self._named = False  # whether the attribute has its name

    def take(self, line: bytes) -> None:
        """Take a line. Nodes follow one another, with other blocks between them."""
        plain = line.lstrip()
        head = plain[:5]
        if self.depth == 0 and head == b"node ":
            self._key, self._kind, self._values, self._intact = "", "node", {}, True
        if head == b'op: "':
            self._kind = (
                "operator" if line.strip() == b'op: "GeOp"' else self._kind if self._kind == "operator" and self.depth > 1 else "node"
            )
        elif head == b"attr ":
            if self.depth == 0 and self.found:  # the node before did not end where it seemed to
                self.found[-1] = (*self.found[-1][:2], False)
            self._intact = self._intact and self.depth == 1 and self._key not in self._known
            self._key, self._named = "", False  # a text that follows is none of the attribute before
        elif head == b"key: " and self.depth == _IN_ATTRIBUTE:
            self._intact = self._intact and self._key not in self._known and _NAME.match(plain.rstrip()) is not None
            self._named = True
            self._key = match[1].decode() if (match := _KEY.match(line)) is not None else ""
        elif self._key and (match := _STRING.match(line)):
            if self._key in self._known:
                self._values[self._key] = Text(_unescape(match[1]))
            self._key = ""
        if b'"' not in line:  # a text may hold any number of braces
            before = self.depth
            self.depth += line.count(b"{") - line.count(b"}")
            if before == _IN_ATTRIBUTE and self.depth < before:
                self._intact = self._intact and self._named and self._key not in self._known
        if self.depth == 0 and len(self._values) >= LEAST_ATTRIBUTES:
            node = (self._kind, self._values, self._intact)
            if node not in self.found and len(self.found) < 64:
                self.found.append(node)
            self._values = {}


def _unescape(raw: bytes) -> str:
    def replace(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code[:1].isdigit():
            return bytes([int(code, 8) & 255])
        return bytes([int(code[1:], 16)]) if code[:1] == b"x" and len(code) > 1 else _PLAIN.get(code, code)

    return decode_text(_ESCAPE.sub(replace, raw))
