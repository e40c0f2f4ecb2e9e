"""A condition of a team under the new name of an option, or with its new values: the words that change, all else to the byte."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

#: New values by the text of the old ones, as a step of the catalogue writes them.
Words = Mapping[str, Any]

_NAMES = {"true": True, "false": False}
_SAME = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def rewrite_condition(text: str, option: str, to: str, words: Words) -> tuple[str, str]:
    """Return a condition that says of ``to`` what it said of ``option``, and an empty text; or where it cannot, why.

    ``words`` gives what values are called now; one that is not in them has no word.
    """
    rewriter = _Rewriter(text, option, to, words)
    rewriter.visit(ast.parse(text, mode="eval").body)
    if rewriter.hindrance:
        return text, rewriter.hindrance
    return rewriter.build_text(), ""


class _Rewriter(ast.NodeVisitor):
    def __init__(self, text: str, option: str, to: str, words: Words) -> None:
        self.hindrance = ""
        self._option, self._to, self._words = option, to, words
        self._raw = text.encode()
        self._starts = [0]
        for line in self._raw.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._changes: list[tuple[int, int, bytes]] = []

    def build_text(self) -> str:
        """Return the text with all changes made."""
        raw = self._raw
        for start, end, new in sorted(self._changes, reverse=True):
            raw = raw[:start] + new + raw[end:]
        return raw.decode()

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = node.left, node.comparators[0]
        if not any(map(self._means_option, sides)):
            self.generic_visit(node)
            return
        for side in sides:
            if self._means_option(side):
                self._rename(side)
            elif not isinstance(node.ops[0], ast.Is):
                self._change_values(side, isinstance(node.ops[0], _SAME))

    def visit_Name(self, node: ast.Name) -> None:
        if self._means_option(node):
            self.hindrance = f"it reckons with {self._option}"

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names = _list_names(node)
        if self._option in (names[0], names[1] if names[0] == "options" else ""):
            self.hindrance = f"it reads a part of {self._option}"

    def _means_option(self, node: ast.AST) -> bool:
        return _list_names(node) in ([self._option], ["options", self._option])

    def _rename(self, node: ast.expr) -> None:
        if self._to != self._option:
            start, end = self._find_place(node)
            self._changes.append((end - len(self._option.encode()), end, self._to.encode()))
            assert self._raw[start:end].endswith(self._option.encode()), "a name ends with itself"

    def _change_values(self, node: ast.expr, is_same: bool) -> None:
        for one in node.elts if isinstance(node, ast.Tuple) else [node]:
            known, value = _read_constant(one)
            mark = str(value).lower() if isinstance(value, bool) else str(value)
            if not known:
                self.hindrance = f"it compares {self._option} with another setting"
            elif mark not in self._words:
                if self._to != self._option:  # (of values only some have new words then)
                    self.hindrance = f"{mark} has no word in {self._to}"
            elif type(self._words[mark]) is not type(value) or self._words[mark] != value:
                if not is_same:
                    self.hindrance = f"the values of {self._to} have another order"
                start, end = self._find_place(one)
                self._changes.append((start, end, _write_constant(self._words[mark], self._raw[start:end]).encode()))

    def _find_place(self, node: ast.expr) -> tuple[int, int]:
        last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[last - 1] + end


def _list_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return [*_list_names(node.value), node.attr] if isinstance(node, ast.Attribute) else []


def _read_constant(node: ast.expr) -> tuple[bool, Any]:
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return True, _NAMES[node.id]
    return isinstance(node, ast.Constant), getattr(node, "value", None)


def _write_constant(value: Any, old: bytes) -> str:
    if isinstance(value, str):
        quote = old[:1].decode() if old[:1] in (b"'", b'"') else "'"
        return f"{quote}{value}{quote}"
    return str(value).lower() if isinstance(value, bool) else str(value)
