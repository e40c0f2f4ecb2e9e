"""JSON texts as trees in which every value has its place, and edits that keep the rest of a text.

Comments and ellipses, as manuals have them, are passed over.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from npuprof.model import Finding, Path, Place, Record

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)"
    r"|(?P<gap>\.{2,}+|\u2026++)|(?P<mark>[{}\[\]:,])"
    r'|(?P<value>"(?:[^"\\\n]|\\.)*+"?|(?:(?!//|/\*|\#|\.\.)[^\s,:{}\[\]"\u2026\ufeff])++|[^\s\ufeff])'
)
_ELLIPSIS = re.compile(r"\.{3}|\u2026")


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
            node = (
                next(
                    (value for key, value in reversed(node.pairs or ()) if key.value == name), None
                )
                if node
                else None
            )
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
        place = getattr(error, "lineno", 0), getattr(error, "colno", 0)
        return (*place, getattr(error, "msg", str(error)))
    return None


def find_json_fault(path: str, text: str | bytes) -> Finding | None:
    """Return the finding for a config file that is not a JSON object; None if it is one."""
    try:
        line, column, reason = find_json_error(text) or (0, 0, "")
    except RecursionError:
        line, column, reason = 0, 0, "it is nested too deeply"
    if not reason and not isinstance(json.loads(text), dict):
        reason = "it is not an object"
    what, where = f"the file is not JSON: {reason}", Place(path, line, column)
    fault = Finding("NP835", what, "Its program stops at it.", "correct it", where=where)
    return fault if reason else None


def read_json_tree(text: str) -> tuple[Node, list[Node]]:
    """Return the tree of a JSON text, or of a part of one, and its comments.

    Braces may be missing around the whole, or at its end.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    comments = []
    root = Node(1, 1)
    nodes = [root]  # the open tables and lists, innermost last
    levels: list[list[list[Node]]] = [[]]  # their keys and values
    for token in _TOKEN.finditer(text):
        written = token[0]
        mark = written if token["mark"] else ""
        if mark in ("}", "]"):
            if len(nodes) > 1:
                _close(nodes.pop(), levels.pop(), token.end())
            continue
        if mark == ":":
            is_key = bool(levels[-1]) and len(levels[-1][-1]) == 1
            nodes[-1].is_open |= not is_key
            levels[-1] += [] if is_key else [[]]
            levels[-1][-1].append(root)  # until its value is read
            continue
        if mark == ",":
            continue
        if token["gap"] or (token["comment"] and _ELLIPSIS.search(written)):
            nodes[-1].is_open = True
        if token["gap"]:
            continue
        line = bisect_right(starts, token.start())
        node = Node(line, token.start() - starts[line - 1] + 1, is_text=written[0] == '"')
        node.start, node.end = token.span()
        if token["comment"]:
            comments.append(node)
            continue
        if levels[-1] and levels[-1][-1][-1] is root:
            levels[-1][-1][-1] = node
        else:
            levels[-1].append([node])
        if mark:
            nodes.append(node)
            levels.append([])
            node.value = mark
            continue
        try:
            node.value = json.loads(written, strict=False)
        except ValueError:
            node.value, node.is_open = written.strip('"'), True
    while nodes:
        _close(nodes.pop(), levels.pop(), len(text))
    only = root.items[0] if root.items and root.pairs is None else root
    only.is_open |= root.is_open
    return only, comments


def _close(node: Node, level: list[list[Node]], end: int) -> None:
    """Put what is in a table or list into its node."""
    pairs = [(pair[0], pair[1]) for pair in level if len(pair) > 1 and pair[1].end]
    items = [pair[0] for pair in level if len(pair) == 1]
    if node.value == "[" or (not node.value and not pairs):
        node.items = items
    else:
        node.pairs = [pair for pair in pairs if not _ELLIPSIS.match(str(pair[0].value))]
    node.is_open |= len(level) > len(node.items or node.pairs or ())
    node.value, node.end = None, end


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
    edits = _edit_value(text, read_json_tree(text)[0], (), settings)
    return sorted(edits, key=lambda edit: edit.start)


def apply_edits(text: str, edits: list[Edit]) -> str:
    """Return a text with edits."""
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _edit_value(text: str, node: Node, path: Path, value: Any) -> Iterator[Edit]:
    if isinstance(value, Mapping) and node.pairs:
        missing = {}
        for name, item in value.items():
            if found := node.find(name):
                yield from _edit_value(text, found, (*path, name), item)
            else:
                missing[name] = item
        key, last = node.pairs[-1]
        colon = text[key.end : last.start]
        separator = ": " if "\n" in colon else colon
        for name, item in missing.items():
            yield _add(text, key.start, last.end, (*path, name), f"{_dump(name)}{separator}", item)
    elif _has_tables(value) and node.items:
        for number, item in enumerate(value):
            if number < len(node.items):
                yield from _edit_value(text, node.items[number], (*path, number), item)
            else:
                last = node.items[-1]
                yield _add(text, last.start, last.end, (*path, number), "", item)
    elif _sort(json.loads(text[node.start : node.end], strict=False)) != _sort(value):
        yield Edit(path, node.start, node.end, _format(value, _find_indent(text, node.start)[0]))


def _find_indent(text: str, at: int) -> tuple[str, bool]:
    """Return the line end and indentation of a line, and whether nothing else precedes ``at``."""
    line = text.rfind("\n", 0, at) + 1
    blank = text[line : at - len(text[line:at].lstrip())]
    end = "\r\n" if text[line - 2 : line] == "\r\n" else "\n"
    return f"{end}{blank}", bool(line) and line + len(blank) == at


def _add(text: str, start: int, end: int, path: Path, name: str, value: Any) -> Edit:
    """Return the edit that adds a value after another one, which begins at ``start``."""
    indent, is_first = _find_indent(text, start)
    indent = indent if is_first else " "
    return Edit(path, end, end, f",{indent}{name}{_format(value, indent)}")


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
