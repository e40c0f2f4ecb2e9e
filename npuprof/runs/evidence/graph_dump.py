"""Graph dumps: the attributes of the nodes that carry every option.

A dump is of the graph before or after partitioning.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from npuprof.catalog.wire import load_attribute_names
from npuprof.model import Record
from npuprof.runs.evidence import Map, Process, Text, Values
from npuprof.runs.evidence.line_splitting import read_pieces
from npuprof.runs.evidence.lines import decode_text
from npuprof.runs.evidence.log_locations import Readable

#: Start and end of a dump's blocks; longer blocks are not option nodes.
_BEGIN, _END, _LONGEST_BLOCK = (b"node {\n", b"library {\n", b"versions {\n"), b"\n}\n", 1 << 20
#: The start of an attribute, and a complete attribute with its text, if any.
_OPENING = b"\n  attr {\n"
_ATTRIBUTE = re.compile(
    rb'\n  attr \{\n    key: "(?P<name>[\w.:/+-]+)"\n    value \{\n'
    rb'(?:      s: "(?P<text>(?:[^"\\\n]|\\[abfnrtv\\\'"?]|\\[0-3][0-7]{2})*)"\n'
    rb"    \}\n  \}(?=\n|$))?"
)
#: Nodes with fewer option attributes do not carry all options.
LEAST_ATTRIBUTES = 20
_MOST_NODES = 64


class _Node(Record):
    """The option texts of a node; it is intact if all its attribute lines are."""

    kind: str
    values: Values
    is_intact: bool


def scan_dump(
    stream: Readable, process: Process, tell: Callable[[int], None], most: int | None
) -> None:
    """Add the attributes of a dump to a process.

    A file that does not begin like a graph has none.
    """
    nodes: list[_Node] = []
    rest = b""
    for number, piece in enumerate(read_pieces(stream, most)):
        tell(len(piece))
        if number == 0 and not piece.startswith(_BEGIN):
            return
        *blocks, rest = (rest + piece).split(_END)
        rest = rest if len(rest) <= _LONGEST_BLOCK else rest[-len(_END) :]
        for block in blocks:
            _add_node(block, nodes)
    if rest.endswith(_END[:-1]):  # the last newline may be missing
        _add_node(rest[: 1 - len(_END)], nodes)
        rest = b""
    is_whole = not rest.strip()
    process.dumps += [
        (node.kind, Map(node.values, whole=node.is_intact and is_whole)) for node in nodes
    ]


def _add_node(block: bytes, nodes: list[_Node]) -> None:
    """Add a node that carries all options.

    Its missing options are meaningful only if it is intact.
    """
    count = block.count(_OPENING)
    if count < LEAST_ATTRIBUTES:
        return
    known = load_attribute_names()
    values = {}
    without_text = set()
    complete_count = 0
    for match in _ATTRIBUTE.finditer(block):
        complete_count += 1
        name, raw = match["name"].decode(), match["text"]
        if name not in known:
            continue
        if raw is not None:
            # protobuf's text format has the escapes of Python's bytes
            values[name] = Text(decode_text(codecs.escape_decode(raw)[0]))
        else:
            without_text.add(name)
    is_intact = (
        block.startswith(b"node {\n")
        and b"\nnode {" not in block
        and count == complete_count == block.count(b'\n    key: "')
        and without_text <= values.keys()
    )
    node = _Node("operator" if b'\n  op: "GeOp"\n' in block else "node", values, is_intact)
    if len(values) >= LEAST_ATTRIBUTES and node not in nodes and len(nodes) < _MOST_NODES:
        nodes.append(node)
