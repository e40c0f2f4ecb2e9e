"""JSON and YAML as a common tree in which every value has its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from npuprof.catalog import build_finding
from npuprof.document.json_tree import Node as Node
from npuprof.document.json_tree import find_json_error, read_json_tree
from npuprof.model import Finding, Place
from npuprof.scripts.script_records import Position, find_position
from npuprof.scripts.steps import count_steps

#: The maximum depth of settings.
_DEEPEST = 200
#: The separators in paths of tables and in scopes of settings.
_SEPARATORS = re.compile(r"[/:#@\0]")
_LONGEST_PATH = 200
#: What git leaves where two versions conflict.
_CONFLICT = re.compile(r"\n(?:<{7}|>{7}) ")
_TOO_DEEP = "the file is nested too deeply to be read"


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
        error = find_json_error(text)
    except RecursionError:
        problems.append(_build_unread(path, _TOO_DEEP, "flatten it"))
        return None
    if error:
        reason = error[2]
        done = "JSON" if any(error[:2]) else "read"
        what = f"the file is not {done}: {reason}"
        problems.append(
            _build_unread(path, what, "correct it there, or write the file anew", error[:2])
        )
        return None
    count_steps(10 * (text.count('"') + text.count(",")))
    return read_json_tree(text)


def parse_yaml(path: str, text: str, problems: list[Finding]) -> list[Node] | None:
    """Return the documents of a YAML text; None and a finding if it is invalid.

    Raises ImportError without PyYAML.
    """
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        # PyYAML recurses without a limit, in C too
        depth = 0
        for event in yaml.parse(text, loader):
            count_steps(10)
            depth += isinstance(event, yaml.events.CollectionStartEvent)
            depth -= isinstance(event, yaml.events.CollectionEndEvent)
            if depth > _DEEPEST:
                raise RecursionError
        scalars = yaml.constructor.SafeConstructor()
        nodes: dict[int, Node] = {}
        # all at once: a later document could have the ids of one that is gone
        sources = list(yaml.compose_all(text, loader))
        return [_build_node(node, scalars, nodes) for node in sources]
    except (RecursionError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        position = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        problem = getattr(error, "problem", "") or getattr(error, "reason", "")
        reason = str(problem or "it cannot be read")
        code, what, hint = "NP801", f"the file is not YAML: {reason}", "correct it there"
        named = {}
        # LibYAML 0.2.6 and later have their own limit, which may be reached first.
        if isinstance(error, RecursionError) or "nesting depth" in reason:
            what, hint = _TOO_DEEP, "flatten it"
        elif "{{" in text:
            what = "the file is a template, and no YAML before it is filled in"
            hint, named = "pass the output file", {"severity": "info"}
        elif conflict := _CONFLICT.search(f"\n{text}"):
            code, what, hint = "NP844", "git left a conflict here", "keep one of the two versions"
            position = find_position(text, conflict.start())
        problems.append(_build_unread(path, what, hint, position, code)._replace(**named))
    return None


def _build_unread(
    path: str, what: str, hint: str, position: Position = (0, 0), code: str = "NP801"
) -> Finding:
    why = "Nothing in it was read."
    return build_finding(code, what, why, hint, where=Place(path, *position))


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
        node.is_open = source.tag.startswith("!")  # a function of the reader makes the value
        if not node.is_text:
            with suppress(Exception):  # a tag may ask for an object
                node.value = scalars.construct_object(source)
    return node
