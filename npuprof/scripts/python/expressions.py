"""Shared parts of constant folding: the Unknown exception, expressions as text, and size limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from npuprof.scripts.steps import count_steps

#: The maximum size of a folded string, list or table.
LONGEST_VALUE = 1_000_000
#: Endings of reasons that concern npuprof's limits rather than the run.
TOO_MUCH = ("is too large", "too deep to follow", "too long to follow", "more than are followed")
#: Node fields without child nodes, or with operators and contexts only.
_LEAVES = frozenset(
    (
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "kind",
        "level",
        "lineno",
        "type_comment",
        "asname",
        "module",
        "is_async",
        "simple",
        "conversion",
        "kwd_attrs",
    )
)
_WITHOUT_NODES = (ast.Constant, ast.Global, ast.Nonlocal)


_FIELDS: dict[type, list[str]] = {
    kind: [name for name in kind._fields if name not in _LEAVES]
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind not in _WITHOUT_NODES
}
#: Lists of nodes with gaps: the keys of unpacked tables, and missing defaults.
_WITH_GAPS = ("keys", "kw_defaults")
#: Nodes without children.
PLAIN = (ast.Name, ast.Constant)
#: Widths that a text or a parameter gives to a format.
_WIDTH = re.compile(r"[0-9]{5}|%[^a-zA-Z%]*\*|\{[^}]*\{")


class Unknown(Exception):  # noqa: N818
    """Raised for a value that depends on the run.

    The text says on what; a ``node`` follows it. ``flag`` is a command line flag.
    """

    def __init__(self, text: str, flag: str = "", node: ast.AST | None = None) -> None:
        super().__init__(text)
        self.flag = flag
        self._node = node

    @property
    def reason(self) -> str:
        """Why the value is unknown; formatted on demand, as most are only caught."""
        text = str(self.args[0])
        return text if self._node is None else f"{text} {format_expression(self._node)}"


def write_source(node: ast.AST) -> str:
    """Return the text of a node.

    Empty if it is too deep, or contains an integer with thousands of digits.
    """
    # ast.unparse is slower, and most expressions are dotted names
    if isinstance(node, (ast.Name, ast.Attribute)) and (dotted := format_dotted_name(node)):
        return dotted
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return ""


def format_dotted_name(node: ast.AST) -> str:
    """Return a dotted name, ``npu.config.mode``; empty for other expressions."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(names)])


def find_root(node: ast.expr) -> ast.expr:
    """Return the root of an attribute chain, ``npu`` of ``npu.config.mode``.

    Any other expression itself.
    """
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def format_expression(node: ast.AST) -> str:
    """Return an expression as text, cut if it is long."""
    text = write_source(node)
    count_steps(len(text) // 100)
    return cut_text(text) or "a long expression"


def cut_text(text: str, most: int = 80) -> str:
    """Return a text on one line, cut if it is long."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_passed_on(name: str, text: str) -> bool:
    """Return whether a text passes a name's value, or a part of it, to other code.

    That is: returns it, assigns it to another name, or calls a function with it.
    """
    count_steps(len(text) // 20)
    use = rf"(?:[(,=\[]|\breturn\b)[ \t]*{re.escape(name)}(?:\.\w+)*[ \t]*(?:[,)\]#]|$)"
    return re.search(use, text, re.MULTILINE) is not None


def name_callee(call: ast.Call) -> str:
    """Return the last name of a callee, empty if it has none."""
    return get_last_name(call.func)


def get_last_name(node: ast.expr) -> str:
    """Return the last name of a plain or dotted name; empty for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def list_parts(node: ast.AST) -> list[ast.AST]:
    """Return the direct children of a node, without operators and name contexts."""
    parts: list[ast.AST] = []
    for name in _FIELDS.get(type(node), ()):
        value = getattr(node, name, None)
        if type(value) is list:
            parts += value if name not in _WITH_GAPS else filter(None, value)
        elif isinstance(value, ast.AST):
            parts.append(value)
    return parts


def list_nodes(root: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, outermost first.

    Without operators and name contexts.
    """
    nodes = [root]
    for node in nodes:  # also over those that are added
        if type(node) not in PLAIN:
            nodes += list_parts(node)
    return nodes


def reject_large_value(value: Any) -> Any:
    """Return a folded value. Raises Unknown if it is larger than any setting."""
    is_long = isinstance(value, (str, bytes, list, tuple, dict)) and len(value) > LONGEST_VALUE
    if is_long or (isinstance(value, int) and value.bit_length() > 4096):
        raise Unknown("the value is too large")
    return value


def compute_value(
    node: ast.AST, operation: Callable[..., Any], *operands: Any, **named: Any
) -> Any:
    """Return the result of an operation on a node's values. Raises Unknown if it fails."""
    try:
        return reject_large_value(operation(*operands, **named))
    except Unknown:
        raise
    # folded operations are Python's own, so that any of its exceptions may come out
    except Exception as error:
        raise Unknown(f"{format_expression(node)} raises {type(error).__name__}") from None


def reject_wide_format(form: str | bytes) -> None:
    """Reject a format that could exhaust the memory."""
    if _WIDTH.search(form if isinstance(form, str) else form.decode("latin-1")):
        raise Unknown("the value is too large")
