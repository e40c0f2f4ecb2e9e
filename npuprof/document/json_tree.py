"""JSON texts as trees in which every value has its place, and edits that keep the rest of a text.

Comments and ellipses, as manuals have them, are passed over.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from npuprof.model import Finding, Path, Place, Record

_TEXT = r'"(?:[^"\\\n]|\\.)*+'
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)|(?P<gap>\.{2,}+|\u2026++)"
    rf'|(?P<key>{_TEXT}"(?=\s*:))|(?P<end>[}}\]])'
    rf'|(?P<value>[{{\[]|{_TEXT}"?|(?:(?!//|/\*|\#|\.\.)[^\s,:{{}}\[\]"\u2026\ufeff])++|[^\s,:\ufeff])'
)
_ELLIPSIS = re.compile(r"\.{2}|\u2026")
_decode = json.JSONDecoder(strict=False).decode


class Node:
    """One value: ``pairs`` of a table, ``items`` of a list, else a plain ``value``.

    ``is_text`` for strings. ``start`` and ``end`` are its offsets in a JSON text. Something is
    left out of an ``is_open`` one.

    In YAML, a node may occur in several places: visitors must handle each node once.
    """

    __slots__ = ("column", "end", "is_open", "is_text", "items", "line", "pairs", "start", "value")

    def __init__(self, line: int, column: int, value: Any = None, is_text: bool = False) -> None:
        self.line = line
        self.column = column
        self.value = value
        self.is_text = is_text
        self.is_open = False
        self.start = self.end = 0
        self.pairs: list[tuple[Node, Node]] | None = None
        self.items: list[Node] | None = None

    @property
    def position(self) -> tuple[int, int]:
        """Its line and column."""
        return self.line, self.column

    @property
    def is_plain(self) -> bool:
        """Whether it is neither a table nor a list."""
        return self.pairs is None and self.items is None

    @property
    def is_null(self) -> bool:
        """Whether it is null, which leaves a setting as it is."""
        return self.is_plain and self.value is None

    def find(self, *names: str) -> Node | None:
        """Return the node at a path of names; of duplicate keys, the last."""
        node: Node | None = self
        for name in names:
            pairs = reversed(node.pairs or ()) if node else ()
            node = next((value for key, value in pairs if key.value == name), None)
        return node

    def text(self, *names: str) -> str:
        """Return the text at a path of names, empty if there is none."""
        node = self.find(*names)
        return node.value if node and isinstance(node.value, str) else ""


def find_json_error(text: str | bytes) -> tuple[int, int, str] | None:
    """Return line, column and message of the first error in a JSON text; None if it is valid.

    Line and column are 0 for an error without a place. Raises RecursionError.
    """
    try:
        json.loads(text)
    except ValueError as error:  # also for a number with too many digits, which has no place
        line, column, reason = 0, 0, str(error)
        if isinstance(error, json.JSONDecodeError):
            line, column, reason = error.lineno, error.colno, error.msg
            if error.doc.startswith(("//", "/*", "#"), error.pos):
                reason = "comments are not allowed"
        return line, column, reason[0].lower() + reason[1:]
    return None


def find_json_fault(path: str, text: str | bytes) -> Finding | None:
    """Return the finding for a config file that is not a JSON object; None if it is one."""
    try:
        line, column, reason = find_json_error(text) or (0, 0, "")
    except RecursionError:
        line, column, reason = 0, 0, "it is nested too deeply"
    if not reason and not isinstance(json.loads(text), dict):
        reason = "it is no object"
    what, where = f"the file is not JSON: {reason}", Place(path, line, column)
    fault = Finding("NP835", what, "Its program stops at it.", "correct it", where=where)
    return fault if reason else None


def read_json_tree(text: str) -> Node:
    """Return the tree of a JSON text, or of a part of one.

    Braces may be missing around the whole, or at its end. Values that are none are left out.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    root = Node(1, 1)
    root.pairs, root.items = [], []
    inside: list[tuple[Node, list[Node]]] = [(root, [])]  # what is open, each with the last key
    for token in _TOKEN.finditer(text):
        written, kind = token[0], token.lastgroup
        outer, keys = inside[-1]
        if kind == "end":
            outer.end = token.end()
            del inside[max(len(inside) - 1, 1) :]
            continue
        line = bisect_right(starts, token.start())
        node = Node(line, token.start() - starts[line - 1] + 1, is_text=written[0] == '"')
        node.start, node.end = token.span()
        if kind in ("comment", "gap"):
            outer.is_open |= _ELLIPSIS.search(written) is not None
            continue
        if written in ("{", "["):
            node.pairs, node.items = ([], None) if written == "{" else (None, [])
        else:
            try:
                node.value = _decode(written)
            except ValueError:
                outer.is_open = True
                keys.clear()
                continue
        if kind == "key":
            keys[:] = [node]
            continue
        if keys and outer.pairs is not None and not _ELLIPSIS.match(str(keys[0].value)):
            outer.pairs.append((keys[0], node))
        elif outer.items is not None:
            outer.items.append(node)
        else:
            outer.is_open = True
        keys.clear()
        if not node.is_plain:
            inside.append((node, []))
    if root.items and not root.pairs:
        root.items[0].is_open |= root.is_open
        return root.items[0]
    root.items = None
    return root


class Edit(Record):
    """A changed or new value of a JSON text: its path, and the ``text`` that replaces a part."""

    path: Path
    start: int
    end: int
    text: str


def find_edits(text: str, settings: Mapping[str, Any]) -> list[Edit]:
    """Return the edits that give a valid JSON text the settings of a table.

    Tables are merged key by key, and lists of tables item by item.
    """
    edits = _edit_value(text, read_json_tree(text), (), settings)
    return sorted(edits, key=lambda edit: edit.start)


def apply_edits(text: str, edits: list[Edit]) -> str:
    """Return a text with edits."""
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _edit_value(text: str, node: Node, path: Path, value: Any) -> Iterator[Edit]:
    members: dict[Any, tuple[Node, Node]] = {}
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping) and node.pairs:
        members, items = {key.value: (key, each) for key, each in node.pairs}, value.items()
    elif _has_tables(value) and node.items:
        members = {at: (each, each) for at, each in enumerate(node.items)}
        items = enumerate(value)
    elif _sort(_decode(text[node.start : node.end])) != _sort(value):
        yield Edit(path, node.start, node.end, _format(value, _find_indent(text, node.start)[0]))
    for name, item in items:
        if name in members:
            yield from _edit_value(text, members[name][1], (*path, name), item)
            continue
        key, last = list(members.values())[-1]
        indent, is_first = _find_indent(text, key.start)
        indent = indent if is_first else " "
        colon = text[key.end : last.start] if node.pairs else ""
        label = f"{_dump(name)}{colon if colon.isprintable() else ': '}" if colon else ""
        new = f",{indent}{label}{_format(item, indent)}"
        yield Edit((*path, name), last.end, last.end, new)


def _find_indent(text: str, at: int) -> tuple[str, bool]:
    """Return the line end and indentation of a line, and whether nothing else precedes ``at``."""
    line = text.rfind("\n", 0, at) + 1
    blank = text[line : at - len(text[line:at].lstrip())]
    end = "\r\n" if text[line - 2 : line] == "\r\n" else "\n"
    return f"{end}{blank}", bool(line) and line + len(blank) == at


def _sort(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _has_tables(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value)


def _format(value: Any, indent: str) -> str:
    """Return a value as JSON; if ``indent`` has a line end, tables have a line for each key."""
    if "\n" not in indent or not value or not (isinstance(value, Mapping) or _has_tables(value)):
        return _dump(value)
    inner = f"{indent}    "
    if isinstance(value, Mapping):
        items, ends = [f"{_dump(k)}: {_format(v, inner)}" for k, v in value.items()], "{}"
    else:
        items, ends = [_format(item, inner) for item in value], "[]"
    return f"{ends[0]}{inner}{f',{inner}'.join(items)}{indent}{ends[1]}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
