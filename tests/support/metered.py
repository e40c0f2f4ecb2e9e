"""Runs commands with npuprof's work counted: ``python metered.py '[["scan", "a.sh"], ...]'``.

Counts of calls miss what one call of C code does: copying a text, or searching it. Every module
of the package is therefore compiled with its calls, loops, slices and concatenations passed
through the functions below. They count a call and a turn of a loop as 1, and a character or an
item that is copied or searched as 1. The counts are the same on every machine.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, TypeVar

T = TypeVar("T")
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
SEQUENCES = (str, bytes, bytearray, list, tuple)
#: Functions of C whose work does not depend on the size of their arguments.
CONSTANT = {
    "add",
    "append",
    "bisect",
    "bisect_left",
    "bisect_right",
    "bool",
    "chain",
    "end",
    "endswith",
    "enumerate",
    "filter",
    "float",
    "get",
    "getattr",
    "group",
    "hasattr",
    "hash",
    "id",
    "int",
    "isinstance",
    "islice",
    "issubclass",
    "items",
    "iter",
    "keys",
    "len",
    "map",
    "next",
    "range",
    "reversed",
    "setattr",
    "setdefault",
    "span",
    "start",
    "startswith",
    "type",
    "values",
    "vars",
    "zip",
}
#: Functions that look at the frame of their caller; they are called as they are written.
UNTOUCHED = {"super", "vars"}
_work = [0]


def measure_size(value: object) -> int:
    return len(value) if isinstance(value, SIZED) else 0


def count_made(value: T) -> T:
    """Count what an expression has copied into its result."""
    _work[0] += measure_size(value)
    return value


def count_turns(items: Iterable[T]) -> Iterator[T]:
    for item in items:
        _work[0] += 1
        yield item


def is_searched(item: object, container: object) -> bool:
    """Return whether a container contains an item; a sequence is searched from its start."""
    if isinstance(container, SEQUENCES):
        _work[0] += len(container)
    return item in container  # type: ignore[operator]


def call(function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
    result = function(*args, **named)
    _work[0] += 1
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", "")
    if module.partition(".")[0] == "npuprof" or name in CONSTANT:
        return result
    owner = getattr(function, "__self__", None)
    if isinstance(owner, re.Pattern):
        return _count_matches(name, result, *args, **named)
    _work[0] += _count_c_call(owner, name, result, args)
    return result


def _count_c_call(owner: object, name: str, result: object, args: Sequence[Any]) -> int:
    if not isinstance(owner, SEQUENCES) or name in ("join", "extend"):
        return measure_size(result) + sum(map(measure_size, args))
    if name in ("find", "index", "rfind", "rindex", "count"):
        return _count_search(owner, name, result, *args[1:])
    if name == "pop":
        return len(owner) - args[0] if args and args[0] >= 0 else 0
    return len(owner)


def _count_search(
    owner: Sequence[Any], name: str, result: Any, start: int = 0, end: int | None = None
) -> int:
    last = len(owner) if end is None else min(end, len(owner))
    if name == "count" or result < 0:
        return max(0, last - start)
    return result - start if name in ("find", "index") else last - result


def _count_matches(
    name: str, result: Any, text: Any, start: int = 0, end: int | None = None, **_: Any
) -> Any:
    """Count the characters that a pattern has passed, as they are passed."""
    if name == "finditer":
        return _iterate_matches(result, text, start)
    if name in ("search", "match", "fullmatch"):
        is_anchored = name != "search"
        last = len(text) if end is None else end
        _work[0] += result.end() - start if result else (1 if is_anchored else last - start)
    else:
        _work[0] += len(text) if isinstance(text, str | bytes) else measure_size(start)
    return result


def _iterate_matches(matches: Iterator[re.Match[Any]], text: Any, start: int) -> Iterator[Any]:
    for match in matches:
        _work[0] += match.end() - start
        start = match.end()
        yield match
    _work[0] += len(text) - start


class _Metering(ast.NodeTransformer):
    """Passes the calls, loops and copies of a module through the functions above."""

    def _wrap(self, name: str, *nodes: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(f"_metered_{name}", ast.Load()), list(nodes), [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in UNTOUCHED:
            return node
        return ast.Call(
            ast.Name("_metered_call", ast.Load()), [node.func, *node.args], node.keywords
        )

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        node.iter = self._wrap("turns", node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = self._wrap("turns", node.iter)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) > 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        found = self._wrap("searched", node.left, node.comparators[0])
        return found if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), found)

    def _visit_copy(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return self._wrap("made", node)

    visit_BinOp = visit_JoinedStr = _visit_copy  # noqa: N815

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        is_copy = isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load)
        return self._wrap("made", node) if is_copy else node

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        """Count the whole text that ``+=`` copies, of a list what is added to it."""
        self.generic_visit(node)
        node.value = self._wrap("made", node.value)
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        made = ast.IfExp(
            self._call_isinstance(target), self._wrap("made", target), ast.Constant(None)
        )
        return [node, ast.Expr(made)]

    def _call_isinstance(self, target: ast.expr) -> ast.expr:
        names = ast.Tuple([ast.Name("str", ast.Load()), ast.Name("bytes", ast.Load())], ast.Load())
        return ast.Call(ast.Name("isinstance", ast.Load()), [target, names], [])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        node.value = self.visit(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        node.value = self.visit(node.value) if node.value else None
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        node.defaults = [self.visit(default) for default in node.defaults]
        node.kw_defaults = [default and self.visit(default) for default in node.kw_defaults]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = _Metering().visit(ast.parse(self.get_data(path)))
        return compile(ast.fix_missing_locations(tree), path, "exec")


class _Finder(PathFinder):
    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "npuprof":
            return None
        spec = super().find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def main() -> None:
    functions = {"call": call, "made": count_made, "turns": count_turns, "searched": is_searched}
    for name, function in functions.items():
        setattr(builtins, f"_metered_{name}", function)
    sys.meta_path.insert(0, _Finder())
    from npuprof.__main__ import main as run

    counts = []
    for arguments in json.loads(sys.argv[1]):
        _work[0] = 0
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            run(arguments)
        counts.append(_work[0])
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
