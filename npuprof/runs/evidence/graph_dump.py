"""Graph dumps: the attributes of the nodes that carry every option.

A dump is of the graph before or after partitioning.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from npuprof.catalog.wire import load_attribute_names
from npuprof.runs.evidence import Map, Process, Text, Values
from npuprof.runs.evidence.line_splitting import read_pieces
from npuprof.runs.evidence.lines import decode_text
from npuprof.runs.evidence.log_locations import Readable

#: Start and end of a dump's blocks; longer blocks are not option nodes.
_BEGIN, _END, _LONGEST_BLOCK = (b"node {\n", b"library {\n", b"versions {\n"), b"\n}\n", 1 << 20
#: The start of an attribute, and a complete attribute with its text, if any.
_OPENING = b"\n  attr {\n"
_ATTRIBUTE = re.compile(
    rb'\n  attr \{\n    key: "([\w.:/+-]+)"\n    value \{\n'
    rb'(?:      s: "((?:[^"\\\n]|\\[abfnrtv\\\'"?]|\\[0-3][0-7]{2})*)"\n    \}\n  \}(?=\n|$))?'
)
#: Nodes with fewer option attributes do not carry all options.
LEAST_ATTRIBUTES = 20
_MOST_NODES = 64

#: The kind of a node, its option texts, and whether all its attribute lines are intact.
_Node = tuple[str, Values, bool]


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
    process.dumps += [
        (kind, Map(values, whole=intact and not rest.strip())) for kind, values, intact in nodes
    ]


def _add_node(block: bytes, nodes: list[_Node]) -> None:
    """Add a node that carries all options.

    Its missing options are meaningful only if it is intact.
    """
    count = block.count(_OPENING)
    if count < LEAST_ATTRIBUTES:
        return
    known = load_attribute_names()
    texts = [(match[1].decode(), match[2]) for match in _ATTRIBUTE.finditer(block)]
    values = {
        name: Text(decode_text(codecs.escape_decode(raw)[0]))
        for name, raw in texts
        if name in known and raw is not None
    }
    is_alone = block.startswith(b"node {\n") and b"\nnode {" not in block
    intact = (
        is_alone
        and count == len(texts) == block.count(b'\n    key: "')
        and all(name in values for name, _ in texts if name in known)
    )
    node = ("operator" if b'\n  op: "GeOp"\n' in block else "node", values, intact)
    if len(values) >= LEAST_ATTRIBUTES and node not in nodes and len(nodes) < _MOST_NODES:
        nodes.append(node)
