"""Arguments that libraries make of the fields of classes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from npuprof import catalog
from npuprof.scripts.programs.parsers import NO_RELEASE, ParserArgument
from npuprof.scripts.python.builtin_calls import resolve_function_name
from npuprof.scripts.python.calls import find_class
from npuprof.scripts.python.expressions import find_root, get_last_name, list_nodes, write_source
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.steps import count_steps

#: Libraries by the function or class that gets a class.
LIBRARIES = {
    "tyro.cli": "tyro",
    "draccus.parse": "draccus",
    "transformers.HfArgumentParser": "transformers",
    "trl.TrlParser": "transformers",
    "ArgumentGroupFactory": "megatron",
}
#: What stands for an underscore of a field in its flags.
_SPELLINGS = {"tyro": "-_", "draccus": "_", "transformers": "_-", "megatron": "-"}
_BASES = ("object", "ABC", "Protocol", "Generic", "Enum")
_DEEPEST = 12


class ClassReader:
    """Adds the arguments that a library makes of classes, and why there may be others, to lists."""

    def __init__(self, library: str, arguments: list[ParserArgument], gaps: list[str]) -> None:
        self._library = library
        self._arguments = arguments
        self._gaps = gaps
        self._is_nested = library in ("tyro", "draccus")

    def read(self, node: ast.expr, scope: Scope, prefix: str = "", depth: int = 0) -> None:
        """Read a class and its bases; fields of nested ones have dotted names."""
        count_steps(10)
        cls = find_class(node, scope)
        if cls is None or not isinstance(cls.node, ast.ClassDef) or depth > _DEEPEST:
            self._read_other(node, scope, depth)
            return
        for base in cls.node.bases:
            if get_last_name(find_root(base)) not in _BASES:
                self.read(base, cls.outer or cls, prefix, depth + 1)
        for item in cls.node.body:
            match item:
                case ast.AnnAssign(ast.Name(name), annotation):
                    inner = find_class(annotation, cls) if self._is_nested else None
                    if inner and "Enum" not in write_source(inner.node).partition(":")[0]:
                        self.read(annotation, cls, f"{prefix}{name}.", depth + 1)
                    else:
                        self._read_field(item, f"{prefix}{name}", cls)

    def _read_other(self, node: ast.expr, scope: Scope, depth: int) -> None:
        """Read a class of another library, or each class that a name may stand for."""
        home, bindings = scope.resolve(node) or (scope, [])
        if bindings and depth < _DEEPEST and all(each.kind == "assign" for each in bindings):
            for each in bindings:
                self.read(each.node, home, depth=depth + 1)
            return
        dotted = resolve_function_name(node, scope)
        library, name = dotted.partition(".")[0], dotted.rpartition(".")[2]
        classes = catalog.load_built_part("argument_classes")
        known = classes["transformers"] | classes.get(library, {})
        if library not in classes or name not in known:
            self._gaps.append(f"{write_source(node)} is not in the tree")
            return
        self._gaps.append(NO_RELEASE)
        names = [name]
        for name in names:  # also over those that are added
            bases = known[name]["bases"]
            names += [base for base in bases if base in known and base not in names]
            for field, kind in known[name]["fields"].items():
                self._add(field, kind, f"{library}.{name}")

    def _read_field(self, item: ast.AnnAssign, name: str, cls: Scope) -> None:
        kind, choices = read_type(item.annotation)
        if self._is_nested and not kind:
            self._gaps.append(f"the type of {name} is not read")
        own = []  # of metadata, which may also change what the argument takes
        for node in list_nodes(item.value) if item.value else ():
            match node:
                case ast.Constant(str() as text) if text.startswith("-"):
                    own.append(text)
                case ast.Constant("nargs"):
                    kind = ""
                case ast.keyword("metadata", value) if not isinstance(value, ast.Dict):
                    self._gaps.append(f"the metadata of {name} are computed")
        self._add(name, kind, f"{cls.file}:{item.lineno}", choices, own)

    def _add(
        self,
        name: str,
        kind: str,
        where: str,
        choices: tuple[Any, ...] = (),
        own: Sequence[str] = (),
    ) -> None:
        """Add the argument of a field, with flags of its own beside those by its name."""
        names = [name]
        if kind == "bool":
            group, dot, last = name.rpartition(".")
            names += [f"{group}{dot}{negation}_{last}" for negation in ("no", "disable")]
        marks = _SPELLINGS[self._library]
        flags = [f"--{each.replace('_', mark)}" for each in names for mark in marks]
        argument = ParserArgument(tuple(dict.fromkeys((*flags, *own))), where)
        if kind in ("int", "float", "str") and not own and self._library != "draccus":
            argument = argument._replace(kind=kind, choices=choices, nargs=None)
        self._arguments.append(argument)


def read_type(node: ast.expr) -> tuple[str, tuple[Any, ...]]:
    """Return the type of a field, empty if it is not read, and its choices."""
    match node:
        case ast.Name("int" | "float" | "str" | "bool" as name):
            return name, ()
        case ast.BinOp(inner, ast.BitOr(), ast.Constant(None)):
            return read_type(inner)
        case ast.Subscript(outer, inner):
            origin = get_last_name(outer)
            if origin == "Optional":
                return read_type(inner)
            if origin in ("List", "list"):
                return "list", ()
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            choices = tuple(item.value for item in items if isinstance(item, ast.Constant))
            if origin == "Literal" and set(map(type, choices)) == {str}:
                return "str", choices
    return "", ()
