"""JSON and YAML to one kind of tree, in which every value knows its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from npuprof.catalog import build_finding
from npuprof.model import Finding, Place

_TOKEN = re.compile(r'\s*(?:([{\[])|([}\]])|([,:])|("(?:[^"\\]|\\.)*+")|([^\s,:{}\[\]"]++))')
#: No settings stand deeper.
_DEEPEST = 200
_TOO_DEEP = "the file is nested too deeply to be read"


class Node:
    """One value: ``pairs`` of a table, ``items`` of a list, else a plain ``value``; ``is_text`` for one that is written as text.

    In YAML one node may stand in many places: whoever walks has to look at each once.
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
    def is_plain(self) -> bool:
        """Whether it is neither a table nor a list."""
        return self.pairs is None and self.items is None

    def find(self, *names: str) -> Node | None:
        """Return what stands under a path of names, the last one where a name stands twice."""
        node: Node | None = self
        for name in names:
            node = next((value for key, value in reversed(node.pairs or ()) if key.value == name), None) if node is not None else None
        return node

    def text(self, *names: str) -> str:
        """Return the text under a path of names, empty where there is none."""
        node = self.find(*names)
        return node.value if node is not None and isinstance(node.value, str) else ""


def iterate_tables(nodes: list[Node]) -> Iterator[Node]:
    """Yield every table below some nodes, each once however often it is referred to, in the order of the text."""
    seen: set[int] = set()
    waiting = nodes[::-1]
    while waiting:
        node = waiting.pop()
        if node.is_plain or id(node) in seen:
            continue
        seen.add(id(node))
        if node.pairs is not None:
            yield node
        waiting += [value for _, value in reversed(node.pairs or ())] + (node.items or [])[::-1]


def parse_json(path: str, text: str, problems: list[Finding]) -> Node | None:
    """Return the tree of a JSON text; None, and why, where it is none."""
    import json

    try:
        json.loads(text)
    except RecursionError:
        problems.append(build_finding("NP801", _TOO_DEEP, "Nothing in it was read.", "flatten it", where=Place(path)))
    except json.JSONDecodeError as error:
        what = f"the file is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
        early = " It ends too early." if error.pos >= len(text.rstrip()) else ""
        place = Place(path, error.lineno, error.colno)
        problems.append(build_finding("NP801", what, f"Nothing in it was read.{early}", "mend it, or write it anew", where=place))
    except ValueError as error:  # a number of too many digits
        problems.append(build_finding("NP801", f"the file is not read: {error}", "Nothing in it was read.", "", where=Place(path)))
    else:
        return _build_json_tree(text)
    return None


def _build_json_tree(text: str) -> Node:
    import json

    root = Node(1, 1)
    root.items = []
    around = [root]
    keys: list[Node | None] = [None]
    line, counted, start = 1, 0, 0
    for token in _TOKEN.finditer(text):
        at = token.start(token.lastindex or 0)
        if passed := text.count("\n", counted, at):
            line += passed
            start = text.rfind("\n", 0, at) + 1
        counted = at
        if token[2]:
            around.pop()
            keys.pop()
            continue
        if token[3]:
            continue
        node = Node(line, at - start + 1)
        if token[4]:
            node.value, node.is_text = json.loads(token[4], strict=False), True
        elif token[5]:
            node.value = json.loads(token[5])
        home = around[-1]
        if home.pairs is not None and keys[-1] is None:
            keys[-1] = node
            continue
        if home.pairs is not None:
            home.pairs.append((keys[-1] or node, node))
            keys[-1] = None
        elif home.items is not None:
            home.items.append(node)
        if token[1]:
            node.pairs, node.items = ([], None) if token[1] == "{" else (None, [])
            around.append(node)
            keys.append(None)
    return root.items[0]


def parse_yaml(path: str, text: str, problems: list[Finding]) -> list[Node] | None:
    """Return the documents of a YAML text; None, and why, where it is none. Raises ImportError without PyYAML."""
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _check_depth(yaml, yaml.parse(text, loader))
        scalars = yaml.constructor.SafeConstructor()
        made: dict[int, Node] = {}
        return [_build_node(node, scalars, made) for node in yaml.compose_all(text, loader)]
    except RecursionError:
        problems.append(build_finding("NP801", _TOO_DEEP, "Nothing in it was read.", "flatten it", where=Place(path)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path)
        said = str(getattr(error, "problem", "") or getattr(error, "reason", "") or "it cannot be read")
        # LibYAML has a bound of its own from 0.2.6 on, which a text may come to before ours.
        if "nesting depth" in said:
            problems.append(build_finding("NP801", _TOO_DEEP, "Nothing in it was read.", "flatten it", where=place))
        elif "{{" in text:
            what, why = "the file is a template, and no YAML before it is filled in", "Nothing in it was read."
            problems.append(Finding("NP801", what, why, "name what it becomes", where=place, severity="info"))
        else:
            problems.append(build_finding("NP801", f"the file is not YAML: {said}", "Nothing in it was read.", "mend it", where=place))
    return None


def _check_depth(yaml: Any, events: Iterable[Any]) -> None:
    """Raise RecursionError for a text that is nested too deeply: PyYAML calls itself as deep as that, in C past all bounds."""
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.events.CollectionStartEvent) - isinstance(event, yaml.events.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RecursionError


def _build_node(source: Any, scalars: Any, made: dict[int, Node]) -> Node:
    """Return a node of PyYAML as one of ours; an alias is the node that it stands for, which has been made before."""
    if id(source) in made:
        return made[id(source)]
    node = made[id(source)] = Node(source.start_mark.line + 1, source.start_mark.column + 1)
    if source.id == "mapping":
        node.pairs = [(_build_node(key, scalars, made), _build_node(value, scalars, made)) for key, value in source.value]
    elif source.id == "sequence":
        node.items = [_build_node(item, scalars, made) for item in source.value]
    else:
        node.is_text = source.tag == "tag:yaml.org,2002:str"
        node.value = source.value if node.is_text else _read_scalar(source, scalars)
    return node


def _read_scalar(source: Any, scalars: Any) -> Any:
    try:
        return scalars.construct_object(source)
    except Exception:  # a tag may ask for what is not plain
        return source.value
