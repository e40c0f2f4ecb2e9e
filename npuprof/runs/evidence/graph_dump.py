"""Graph dumps: the attributes of the nodes that carry every option, before the partition or after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import IO

from npuprof.catalog.wire import load_attribute_names
from npuprof.runs.evidence import Map, Process, Text, Values
from npuprof.runs.evidence.lines import decode_text

_KEY = re.compile(rb'\s*key: "(_[\w.]+)"', re.ASCII)
_STRING = re.compile(rb'\s*s: "((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_PLAIN = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
#: A node with fewer attributes of options is not the one that carries them all.
LEAST_ATTRIBUTES = 20
#: The longest line that is looked at; weights may stand in lines of many megabytes.
_LONGEST = 1 << 20


def scan_dump(stream: IO[bytes], process: Process, tell: Callable[[int], None], most: int | None) -> int:
    """Keep what a dump says in a process; return its size. Nodes are read one after the other, whatever else stands between them."""
    known = load_attribute_names()
    total = depth = 0
    started = False
    key, kind = "", "node"
    values: Values = {}
    found: list[tuple[str, Values]] = []
    while most is None or total < most:
        line = stream.readline(_LONGEST)
        if not line:
            break
        total += len(line)
        tell(len(line))
        head = line.lstrip()[:5]
        if depth == 0 and head.startswith(b"node "):
            key, kind, values, started = "", "node", {}, True
        if head == b'op: "':
            kind = "operator" if line.strip() == b'op: "GeOp"' else kind if kind == "operator" and depth > 1 else "node"
        elif match := _KEY.match(line):
            key = match[1].decode()
        elif key and (match := _STRING.match(line)):
            if key in known:
                values[key] = Text(_unescape(match[1]))
            key = ""
        if b'"' not in line:  # a text may hold any number of braces
            depth += line.count(b"{") - line.count(b"}")
        if depth == 0 and len(values) >= LEAST_ATTRIBUTES:
            if (kind, values) not in found and len(found) < 64:
                found.append((kind, values))
            values = {}
    whole = started and depth == 0
    for kind, values in found:
        process.dumps.append((kind, Map(values, whole=whole)))
    return total


def _unescape(raw: bytes) -> str:
    def replace(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code[:1].isdigit():
            return bytes([int(code, 8) & 255])
        return bytes([int(code[1:], 16)]) if code[:1] == b"x" and len(code) > 1 else _PLAIN.get(code, code)

    return decode_text(_ESCAPE.sub(replace, raw))
