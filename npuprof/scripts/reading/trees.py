"""JSON and YAML as a common tree in which every value has its place."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from npuprof.catalog import build_finding
from npuprof.model import Finding, Place
from npuprof.scripts.script_records import Position, find_line_starts
from npuprof.scripts.steps import count_steps

#: A value or opening bracket, and a closing bracket; separators need no match.
_TOKEN = re.compile(r'(?P<begin>[{\[]|"(?:[^"\\]|\\.)*+"|[^\s,:{}\[\]"]++)|(?P<end>[}\]])')
#: The maximum depth of settings.
_DEEPEST = 200
#: The separators in paths of tables and in scopes of settings.
_SEPARATORS = re.compile(r"[/:#@\0]")
_LONGEST_PATH = 200
_TOO_DEEP = "the file is nested too deeply to be read"


class Node:
    """One value: ``pairs`` of a table, ``items`` of a list, else a plain ``value``.

    ``is_text`` for strings.

    In YAML, a node may occur in several places: visitors must handle each node once.
    """

    __slots__ = ("column", "is_text", "items", "line", "pairs", "value")

    def __init__(self, line: int, column: int, value: Any = None, is_text: bool = False) -> None:
        self.line = line
        self.column = column
        self.value = value
        self.is_text = is_text
        self.pairs: list[tuple[Node, Node]] | None = None
        self.items: list[Node] | None = None

    @property
    def position(self) -> Position:
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


def iterate_tables(nodes: list[Node]) -> Iterator[Node]:
    """Yield every table below some nodes, each once, in text order."""
    return (node for _, node in iterate_collections(nodes) if node.pairs is not None)


def iterate_collections(nodes: list[Node]) -> Iterator[tuple[str, Node]]:
    """Yield every table and list below some nodes with its path, each once, in text order.

    A path has the keys to a table, and the names or numbers of items: ``/0/cases/1 long/``.
    """
    seen = set()
    waiting: list[tuple[str, str | int, Node]] = []
    waiting += [("/", at, node) for at, node in enumerate(nodes)][::-1]
    while waiting:
        path, name, node = waiting.pop()
        if node.is_plain or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(name, int):
            name = f"{name} {node.text('name') or node.text('role')}".strip()
        if len(path) < _LONGEST_PATH:
            path = f"{path}{spell_segment(name)}/"
        yield path, node
        waiting += [(path, str(key.value), value) for key, value in reversed(node.pairs or ())]
        waiting += [(path, at, item) for at, item in enumerate(node.items or ())][::-1]


def spell_segment(name: str) -> str:
    """Return the part of a path for a name."""
    return _SEPARATORS.sub("-", name[:_LONGEST_PATH])


def parse_json(path: str, text: str, problems: list[Finding]) -> Node | None:
    """Return the tree of a JSON text; None and a finding if it is invalid."""
    try:
        # the tree is built by a pattern that does not check the text
        json.loads(text)
    except RecursionError:
        problems.append(_build_unread(path, _TOO_DEEP, "flatten it"))
    except ValueError as error:  # also for a number with too many digits, which has no place
        position = getattr(error, "lineno", 0), getattr(error, "colno", 0)
        reason = getattr(error, "msg", str(error))
        done = "JSON" if any(position) else "read"
        what = f"the file is not {done}: {reason[0].lower()}{reason[1:]}"
        problems.append(_build_unread(path, what, "fix it, or rewrite it", position))
    else:
        return _build_json_tree(text)
    return None


def _build_json_tree(text: str) -> Node:
    """Return the tree of a valid JSON text, without recursion."""
    starts = find_line_starts(text)
    levels: list[list[Node]] = [[]]  # the nodes of each open object or list, innermost last
    for token in _TOKEN.finditer(text):
        if token["end"]:
            inner = levels.pop()
            node = levels[-1][-1]
            if token["end"] == "}":  # keys and values take turns
                node.pairs = list(zip(inner[::2], inner[1::2], strict=True))
            else:
                node.items = inner
            continue
        count_steps(10)
        begin = token["begin"]
        line = bisect_right(starts, token.start())
        node = Node(line, token.start() - starts[line - 1] + 1, is_text=begin[0] == '"')
        levels[-1].append(node)
        if begin in ("{", "["):
            levels.append([])
        else:
            node.value = json.loads(begin, strict=False)
    return levels[0][0]


def parse_yaml(path: str, text: str, problems: list[Finding]) -> list[Node] | None:
    """Return the documents of a YAML text; None and a finding if it is invalid.

    Raises ImportError without PyYAML.
    """
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _check_depth(yaml, yaml.parse(text, loader))
        scalars = yaml.constructor.SafeConstructor()
        nodes: dict[int, Node] = {}
        # all at once: a later document could have the ids of one that is gone
        sources = list(yaml.compose_all(text, loader))
        return [_build_node(node, scalars, nodes) for node in sources]
    except RecursionError:
        problems.append(_build_unread(path, _TOO_DEEP, "flatten it"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        problem = getattr(error, "problem", "") or getattr(error, "reason", "")
        reason = str(problem or "it cannot be read")
        # LibYAML 0.2.6 and later have their own limit, which may be reached first.
        if "nesting depth" in reason:
            problems.append(_build_unread(path, _TOO_DEEP, "flatten it", position))
        elif "{{" in text:
            what = "the file is a template, and no YAML before it is filled in"
            template = _build_unread(path, what, "pass the output file", position)
            problems.append(template._replace(severity="info"))
        else:
            what = f"the file is not YAML: {reason}"
            problems.append(_build_unread(path, what, "fix it", position))
    return None


def _build_unread(path: str, what: str, hint: str, position: Position = (0, 0)) -> Finding:
    why = "Nothing in it was read."
    return build_finding("NP801", what, why, hint, where=Place(path, *position))


def _check_depth(yaml: Any, events: Iterable[Any]) -> None:
    """Raise RecursionError for a text that is nested too deeply.

    PyYAML recurses without a limit, in C too.
    """
    depth = 0
    for event in events:
        count_steps(10)
        if isinstance(event, yaml.events.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.events.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise RecursionError


def _build_node(source: Any, scalars: Any, nodes: dict[int, Node]) -> Node:
    """Return a PyYAML node converted; an alias is its anchor's node, which was converted before."""
    if id(source) in nodes:
        return nodes[id(source)]
    node = nodes[id(source)] = Node(source.start_mark.line + 1, source.start_mark.column + 1)
    if source.id == "mapping":
        own = []
        merged: dict[Any, tuple[Node, Node]] = {}
        for key, value in source.value:
            pair = _build_node(key, scalars, nodes), _build_node(value, scalars, nodes)
            if key.tag != "tag:yaml.org,2002:merge":
                own.append(pair)
                continue
            # of several tables, the first one counts
            for table in reversed(pair[1].items or [pair[1]]):
                count_steps(10 * len(table.pairs or ()))
                merged |= {str(name.value): (name, item) for name, item in table.pairs or ()}
        for name, _ in own:
            merged.pop(str(name.value), None)
        node.pairs = [*merged.values(), *own]
    elif source.id == "sequence":
        node.items = [_build_node(item, scalars, nodes) for item in source.value]
    else:
        node.value, node.is_text = source.value, source.tag == "tag:yaml.org,2002:str"
        if not node.is_text:
            with suppress(Exception):  # a tag may ask for an object
                node.value = scalars.construct_object(source)
    return node
