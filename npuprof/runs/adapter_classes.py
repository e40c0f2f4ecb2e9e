"""What the Python files of an adapter say by their syntax: the arguments of its classes, and the keys that they write. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof import catalog
from npuprof.catalog import surfaces

#: How many classes of settings hold one another.
_DEEPEST = 4
#: So many attributes of ``global_options()`` a class has at least to be that of them.
_LEAST = 3


class Classes:
    """What the Python files that were read say together."""

    def __init__(self) -> None:
        self._arguments: dict[str, list[str]] = {}  #: of each class that NPURunConfig is made with
        self._attributes: dict[str, dict[str, str]] = {}  #: by class: each attribute, and the class of what it holds
        self._written: set[str] = set()

    def read(self, raw: bytes) -> None:
        """Read one file. Raises ValueError where it is no Python."""
        if b"class " not in raw and b"parameter_map" not in raw:
            return
        try:
            tree = ast.parse(raw)
        except SyntaxError as error:
            raise ValueError(f"line {error.lineno}: {error.msg}" if error.lineno else error.msg) from None
        known = catalog.load_config_classes()
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                start = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
                if start is not None and node.name in known:
                    named = [*start.args.posonlyargs, *start.args.args, *start.args.kwonlyargs]
                    self._arguments[node.name] = [argument.arg for argument in named[1:]]
                elif start is not None:
                    self._attributes[node.name] = dict(_list_attributes(start))
            elif isinstance(node, ast.Subscript) and (key := _read_key(node)):
                self._written.add(key)

    def list_arguments(self) -> frozenset[str] | None:
        """Return the paths of what NPURunConfig is given, ``dump_config.dump_path``; None where that class was not read."""
        if "NPURunConfig" not in self._arguments:
            return None
        found = set()
        for name, record in catalog.load_config_classes().items():
            place = ".".join(filter(None, (record.argument, record.given_as)))
            found |= {f"{place}.{argument}".lstrip(".") for argument in self._arguments.get(name, ())}
        return frozenset(found)

    def list_written(self) -> frozenset[str]:
        """Return the keys that are written into a parameter map."""
        return frozenset(self._written)

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


def _read_key(node: ast.Subscript) -> str:
    """Return the key of ``parameter_map["key"]``, an empty text for anything else."""
    is_map = isinstance(node.value, ast.Attribute) and node.value.attr == "parameter_map"
    return str(node.slice.value) if is_map and isinstance(node.slice, ast.Constant) else ""


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
