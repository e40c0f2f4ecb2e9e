"""Read the classes of options from the Python files of an adapter for TensorFlow 2, by their syntax. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.catalog import surfaces

#: How many classes of settings hold one another.
_DEEPEST = 4
#: So many attributes of ``global_options()`` a class has at least to be that of them.
_LEAST = 3


class Classes:
    """What the Python files that were read say together."""

    def __init__(self) -> None:
        self._attributes: dict[str, dict[str, str]] = {}  #: by class: each attribute, and the class of what it holds

    def read(self, raw: bytes) -> None:
        """Read one file. Raises ValueError where it is no Python."""
        if b"class " not in raw:
            return
        try:
            tree = ast.parse(raw)
        except SyntaxError as error:
            raise ValueError(f"line {error.lineno}: {error.msg}" if error.lineno else error.msg) from None
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                start = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
                if start is not None:
                    self._attributes[node.name] = dict(_list_attributes(start))

    def list_attributes(self) -> frozenset[str] | None:
        """Return the paths of the options of TF 2; None where there is no class that has them."""
        known = surfaces.list_attribute_paths()
        plain = {path for path in known if "." not in path}
        best = max(self._attributes, key=lambda name: len(plain & self._attributes[name].keys()), default=None)
        if best is None or len(plain & self._attributes[best].keys()) < _LEAST:
            return None
        found: set[str] = set()
        waiting = [("", best, 0)]
        for before, holder, depth in waiting:
            for name, inner in self._attributes.get(holder, {}).items():
                found.add(f"{before}{name}")
                if inner in self._attributes and depth < _DEEPEST:
                    waiting.append((f"{before}{name}.", inner, depth + 1))
        return frozenset(found)


def _list_attributes(start: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Yield what a constructor gives to itself: the name, and the class that is called for it."""
    for node in ast.walk(start):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                value = getattr(node, "value", None)
                called = value.func if isinstance(value, ast.Call) else None
                name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
                yield target.attr, name
