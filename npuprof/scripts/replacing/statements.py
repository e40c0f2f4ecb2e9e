"""The statements of a script by where they stand, and which of them do nothing but set options."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.model import Record
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.scopes import Function, statement_blocks
from npuprof.scripts.reading.terms import name_callee

_FIELDS = ("s", "b", "i", "f")
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class Standing(Record):
    """A statement in its place.

    ``home`` is the function or class around it, None for the module; ``control`` what decides whether, and how often, it runs there;
    ``suite`` is the body it stands in; ``loops`` are the loops around it, the nearest last.
    """

    node: ast.stmt
    home: ast.stmt | None
    control: tuple[tuple[int, str], ...]
    suite: tuple[int, str]
    loops: tuple[ast.For, ...] = ()


class Statements:
    """All statements of a module."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.all: list[Standing] = []
        self.sizes: dict[tuple[int, str], int] = {}
        self._by_line: dict[int, list[Standing]] = {}
        self._aliases: dict[frozenset[str], set[str]] = {}
        self._enter(tree, "body", tree.body, None, (), ())

    def _enter(
        self,
        owner: ast.AST,
        field: str,
        body: list[ast.stmt],
        home: ast.stmt | None,
        control: tuple[tuple[int, str], ...],
        loops: tuple[ast.For, ...],
    ) -> None:
        suite = id(owner), field
        self.sizes[suite] = len(body)
        for node in body:
            one = Standing(node, home, control, suite, loops)
            self.all.append(one)
            if not statement_blocks(node):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    self._by_line.setdefault(line, []).append(one)
            self._enter_blocks(one)

    def _enter_blocks(self, one: Standing) -> None:
        node = one.node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._enter(node, "body", node.body, node, (), ())
            return
        loops = (*one.loops, node) if isinstance(node, ast.For) else one.loops
        for number, body in enumerate(statement_blocks(node)):
            always = isinstance(node, (ast.With, ast.AsyncWith)) or (isinstance(node, ast.If) and not number and is_main_test(node.test))
            control = one.control if always else (*one.control, (id(node), str(number)))
            self._enter(node, str(number), body, one.home, control, loops)

    def find_simple(self, line: int) -> list[Standing]:
        """Return the simple statements that stand in a line."""
        return self._by_line.get(line, [])

    def list_between(self, first: Standing, last: ast.stmt) -> Iterator[Standing]:
        """Yield the statements of a function that begin behind one statement and before the end of another."""
        end = last.end_lineno or last.lineno
        for one in self.all:
            if one.home is first.home and first.node.lineno < one.node.lineno <= end and one.node is not last:
                yield one

    def find_aliases(self, roots: set[str]) -> set[str]:
        """Return some names with all others that may stand for the same objects: what is made of one of them in whatever way."""
        if frozenset(roots) not in self._aliases:
            self._aliases[frozenset(roots)] = self._collect_aliases(roots)
        return self._aliases[frozenset(roots)]

    def _collect_aliases(self, roots: set[str]) -> set[str]:
        given: list[tuple[set[str], set[str]]] = []
        for one in self.all:
            node = one.node
            if isinstance(node, ast.Assign):
                targets: list[ast.expr] = flatten_targets(node)
                source: list[ast.AST] = [node.value]
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
                source = [item.context_expr for item in node.items]
            elif isinstance(node, (ast.For, ast.AsyncFor)):
                targets, source = [node.target], [node.iter]
            else:
                continue
            read = {part.id for tree in source for part in ast.walk(tree) if isinstance(part, ast.Name)}
            named = {
                find_root(ast.unparse(part))
                for target in targets
                for part in ast.walk(target)
                if isinstance(part, (ast.Name, ast.Attribute))
            }
            if read:
                given.append((read, named))
        found, before = set(roots), set[str]()
        while found != before:
            before = set(found)
            for read, named in given:
                if read & found:
                    found |= named
        return found

    def list_entry_owners(self) -> set[str]:
        """Return the names of what the optimizer entries of the module belong to, whichever of them."""
        chains = (node.value for node in ast.walk(self.tree) if isinstance(node, ast.Attribute) and node.attr == "custom_optimizers")
        return {root for chain in chains if (root := find_root(ast.unparse(chain))).isidentifier()}

    def find_function(self, name: str) -> Function | None:
        """Return the one function of the module that has a name."""
        found = [one.node for one in self.all if isinstance(one.node, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.node.name == name]
        return found[0] if len(found) == 1 else None


def is_main_test(test: ast.expr) -> bool:
    """Return whether a test asks if the module is the program."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def flatten_targets(node: ast.Assign) -> list[ast.expr]:
    """Return what an assignment gives values to, one by one."""
    waiting, found = list(node.targets), []
    while waiting:
        target = waiting.pop(0)
        if isinstance(target, (ast.Tuple, ast.List)):
            waiting = [*target.elts, *waiting]
        else:
            found.append(target)
    return found


def sets_only_options(node: ast.stmt, settings: list[FoundSetting]) -> bool:
    """Return whether a simple statement does nothing but what the settings found in it say."""
    if any(isinstance(inner, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for inner in ast.walk(node)):
        return False
    if isinstance(node, ast.Assign):
        targets = flatten_targets(node)
        places = {(one.line, one.column) for one in settings}
        return all(isinstance(target, ast.Attribute) for target in targets) and len(places) >= len(targets)
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and name_callee(call) in ("setattr", "CopyFrom", "MergeFrom")


def fills_map_only(function: Function) -> bool:
    """Return whether a function does nothing but assign fields of a parameter map."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return bool(body) and all(isinstance(node, ast.Assign) and all(map(_is_map_field, flatten_targets(node))) for node in body)


def _is_map_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _FIELDS and isinstance(node.value, ast.Subscript)


def find_obstacle(one: Standing, own: set[str], statements: Statements) -> str:
    """Return why lines cannot move over a statement that stays, empty where they can; ``own`` are the names they work on."""
    node, roots = one.node, statements.find_aliases(own)
    if isinstance(node, _LEAVING):
        return "the code may end before the lines further down"
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return ""
    for inner in _iterate_own_expressions(node):
        if isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await)):
            return "the code may rest there, and others see what is set"
        if isinstance(inner, ast.Call):
            function = statements.find_function(inner.func.id) if isinstance(inner.func, ast.Name) else None
            given = [*inner.args, *(keyword.value for keyword in inner.keywords), inner.func]
            if any(_begins_with(part, roots) for part in given):
                return "it uses what the lines work on"
            if function is not None and any(isinstance(part, ast.Name) and part.id in roots for part in ast.walk(function)):
                return f"{function.name}() uses what the lines work on"
    bare = [node.value] if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None else []
    if any(isinstance(part, ast.Name) and part.id in roots for part in bare):
        return "it gives what the lines work on a second name"
    stored = [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del))]
    return "it gives the name to something else" if any(part.id in own for part in stored) else ""


def _iterate_own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, not those of the statements in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.expr, ast.withitem)):
            yield from ast.walk(child)


def _begins_with(node: ast.expr, roots: set[str]) -> bool:
    """Return whether an expression is one of the names, or holds one as an argument of its own would."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Set)):
        return any(isinstance(part, ast.Name) and part.id in roots for part in ast.walk(node))
    return isinstance(node, ast.Name) and node.id in roots


def find_root(expression: str) -> str:
    """Return the name that an expression begins with."""
    return expression.partition(".")[0].partition("[")[0].partition("(")[0]
