"""What folding needs everywhere: the refusal with its reason, expressions as text, and bounds on what is built."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

#: No text, list or table may grow longer than this.
LONGEST_VALUE = 1_000_000
#: How the reasons end that do not depend on the run: what is written there is longer than what is followed.
TOO_MUCH = ("is too large", "too deep to follow", "too long to follow", "more than are followed")
#: Fields of nodes in which there are no other nodes, or only operators and what is done with a name.
_LEAVES = frozenset((
    "ctx", "op", "ops", "id", "attr", "arg", "kind", "level", "lineno", "type_comment", "asname", "module", "is_async", "simple",
    "conversion",
))  # fmt: skip
_FIELDS: dict[type, list[str]] = {
    kind: [name for name in kind._fields if name not in _LEAVES and kind is not ast.Constant]
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
#: What has no nodes below it.
PLAIN = (ast.Name, ast.Constant)
_WIDTH = re.compile(r"[0-9]{5}|%[^a-zA-Z%]*\*|\{[^}]*\{")


class Unknown(Exception):  # noqa: N818
    """The value depends on the run; the text says on what. ``flag`` is the name of a command-line flag."""

    def __init__(self, reason: str, flag: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.flag = flag


def write_source(node: ast.AST) -> str:
    """Return the text of a node, an empty one where Python cannot write it: it is too deep, or holds a number of thousands of digits."""
    if isinstance(node, (ast.Name, ast.Attribute)) and (dotted := format_dotted_name(node)):
        return dotted
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return ""


def format_dotted_name(node: ast.AST) -> str:
    """Return a name with its attributes, ``npu.config.mode``; empty for other expressions."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def find_root(node: ast.expr) -> ast.expr:
    """Return what a chain of attributes begins with, ``npu`` of ``npu.config.mode``; any other expression itself."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def format_expression(node: ast.AST) -> str:
    """Return an expression as text, cut where it is long."""
    return cut_text(write_source(node)) or "a long expression"


def cut_text(text: str, most: int = 80) -> str:
    """Return a text in one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_handed_on(name: str, text: str) -> bool:
    """Return whether a text returns what a name stands for, or a part of it, or gives it to another name or a function."""
    if name.replace(".", "_").isidentifier():
        return name in _list_names_handed_on(text)
    use = rf"(?:[(,=\[]|\breturn\b)[ \t]*{re.escape(name)}(?:\.\w+)*[ \t]*(?:[,)\]#]|$)"
    return re.search(use, text, re.MULTILINE) is not None


@lru_cache(maxsize=4)
def _list_names_handed_on(text: str) -> frozenset[str]:
    uses = re.findall(r"(?:[(,=\[]|\breturn\b)[ \t]*(\w+(?:\.\w+)*)[ \t]*(?=[,)\]#]|$)", text, re.MULTILINE)
    return frozenset(".".join(use.split(".")[:end]) for use in set(uses) for end in range(1, use.count(".") + 2))


def name_callee(call: ast.Call) -> str:
    """Return the last name of what is called, empty where it has none."""
    return get_last_name(call.func)


def get_last_name(node: ast.expr) -> str:
    """Return a name, or the last one of a name with dots; empty for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def list_parts(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below a node, without operators and contexts of names."""
    parts: list[ast.AST] = []
    for name in _FIELDS.get(type(node), ()):
        value = getattr(node, name, None)
        if type(value) is list:
            parts += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            parts.append(value)
    return parts


def list_nodes(root: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, the outer ones first, without operators and contexts of names."""
    nodes = [root]
    for node in nodes:
        if type(node) not in PLAIN:
            nodes += list_parts(node)
    return nodes


def refuse_large_value(value: Any) -> Any:
    """Return a folded value. Raises Unknown where it is longer than any setting."""
    is_long = isinstance(value, (str, bytes, list, tuple, dict)) and len(value) > LONGEST_VALUE
    if is_long or (isinstance(value, int) and value.bit_length() > 4096):
        raise Unknown("the value is too large")
    return value


def compute_value(node: ast.AST, operation: Callable[..., Any], *operands: Any, **named: Any) -> Any:
    """Return what an operation gives that Python would run for a node. Raises Unknown where it raises something."""
    try:
        return refuse_large_value(operation(*operands, **named))
    except Unknown:
        raise
    except Exception as error:
        raise Unknown(f"{format_expression(node)} raises {type(error).__name__}") from None


def refuse_wide_format(form: str | bytes) -> None:
    """Refuse a format that could fill the memory."""
    if _WIDTH.search(form if isinstance(form, str) else form.decode("latin-1")):
        raise Unknown("the value is too large")
