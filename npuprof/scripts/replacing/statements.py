"""The statements of a script by where they stand, and which of them do nothing but set options."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.model import Record
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.values.order import is_main_test
from npuprof.scripts.reading.values.scopes import Function, statement_blocks
from npuprof.scripts.reading.values.terms import name_callee, write_source

_FIELDS = ("s", "b", "i", "f")
#: Calls that neither fail nor look at anything but what they are given.
_QUIET = frozenset({"as_bytes", "as_str", "as_text", "print", "str", "repr", "bool", "info", "debug", "warning", "set_verbosity"})
_ALL_SEEING = frozenset({"exec", "eval", "globals", "locals", "vars", "execfile"})
_MESSAGE_FIELDS = frozenset({"graph_options", "rewrite_options", "gpu_options", "parameter_map", "custom_optimizers", "optimizer_options"})
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


#: What statements stand in that run when it is called, or made.
HOMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Standing(Record):
    """A statement in its place.

    ``home`` is the function or class around it, None for the module; ``control`` what decides whether, and how often, it runs there;
    ``suite`` is the body it stands in; ``loops`` are the loops around it, the nearest last. ``caught`` tells whether an error in it
    may not end the program.
    """

    node: ast.stmt
    home: ast.stmt | None
    control: tuple[tuple[int, str], ...]
    suite: tuple[int, str]
    loops: tuple[ast.For, ...] = ()
    caught: bool = False


class Statements:
    """All statements of a module."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.all: list[Standing] = []
        self.sizes: dict[tuple[int, str], int] = {}
        self._by_line: dict[int, list[Standing]] = {}
        self._aliases: dict[frozenset[str], set[str]] = {}
        self._enter(tree, "body", tree.body, None, (), (), False)
        self._guarded = self._find_guarded_functions()

    def _enter(
        self,
        owner: ast.AST,
        field: str,
        body: list[ast.stmt],
        home: ast.stmt | None,
        control: tuple[tuple[int, str], ...],
        loops: tuple[ast.For, ...],
        caught: bool,
    ) -> None:
        suite = id(owner), field
        self.sizes[suite] = len(body)
        for node in body:
            one = Standing(node, home, control, suite, loops, caught)
            self.all.append(one)
            if not statement_blocks(node):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    self._by_line.setdefault(line, []).append(one)
            self._enter_blocks(one)

    def _enter_blocks(self, one: Standing) -> None:
        node = one.node
        if isinstance(node, HOMES):
            self._enter(node, "body", node.body, node, (), (), False)
            return
        loops = (*one.loops, node) if isinstance(node, ast.For) else one.loops
        for number, body in enumerate(statement_blocks(node)):
            always = isinstance(node, (ast.With, ast.AsyncWith)) or (isinstance(node, ast.If) and not number and is_main_test(node.test))
            control = one.control if always else (*one.control, (id(node), str(number)))
            caught = (
                one.caught
                or (isinstance(node, ast.Try) and not number)
                or (isinstance(node, (ast.With, ast.AsyncWith)) and _swallows(node))
            )
            self._enter(node, str(number), body, one.home, control, loops, caught)

    def _find_guarded_functions(self) -> set[str]:
        """Return the functions that somebody calls where an error does not end the program, and those that these call."""
        calls: dict[str, set[str]] = {}
        found: set[str] = set()
        for one in self.all:
            home = getattr(one.home, "name", "")
            named = {name_callee(inner) for inner in _iterate_own_expressions(one.node) if isinstance(inner, ast.Call)}
            calls.setdefault(home, set()).update(named)
            if one.caught:
                found |= named
        waiting = list(found)
        while waiting:
            more = calls.get(waiting.pop(), set()) - found
            found |= more
            waiting += more
        return found

    def is_caught(self, one: Standing) -> bool:
        """Return whether an error in a statement may not end the program."""
        return one.caught or getattr(one.home, "name", "") in self._guarded

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
                find_root(write_source(part))
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
        return {root for chain in chains if (root := find_root(write_source(chain))).isidentifier()}

    def find_function(self, name: str) -> Function | None:
        """Return the one function of the module that has a name."""
        found = [one.node for one in self.all if isinstance(one.node, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.node.name == name]
        return found[0] if len(found) == 1 else None


def _swallows(node: ast.With | ast.AsyncWith) -> bool:
    """Return whether the context of a block may take errors in it, by its name."""
    names = [name_callee(item.context_expr).lower() for item in node.items if isinstance(item.context_expr, ast.Call)]
    return len(names) < len(node.items) or any(
        word in name for name in names for word in ("suppress", "ignor", "catch", "raises", "guard", "try")
    )


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


def find_obstacle(one: Standing, own: set[str], statements: Statements, caught: bool) -> str:
    """Return why lines cannot move over a statement that stays, empty where they can; ``own`` are the names they work on.

    ``caught`` tells whether an error would not end the program there, so that what was set before it counts.
    """
    node, roots = one.node, statements.find_aliases(own)
    if isinstance(node, _LEAVING):
        return "the code may end before the lines further down"
    if isinstance(node, HOMES):
        return ""
    if caught and _may_fail(node):
        return "it may fail, and what was set before it would count"
    for inner in _iterate_own_expressions(node):
        if isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await)):
            return "the code may rest there, and others see what is set"
        if isinstance(inner, ast.Call):
            name = inner.func.id if isinstance(inner.func, ast.Name) else ""
            function = statements.find_function(name) if name else None
            if name in _ALL_SEEING:
                return f"{name}() sees everything"
            if function is not None and any(isinstance(part, ast.Name) and part.id in roots for part in ast.walk(function)):
                return f"{function.name}() uses what the lines work on"
    if any(isinstance(part, ast.Name) and part.id in own for target in _list_stored(node) for part in [target]):
        return "it gives the name to something else"
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Name) and node.value.id in roots:
        return "it gives what the lines work on a second name"
    harmless = {id(part) for tree in _list_harmless(node) for part in ast.walk(tree)}
    used = [part for part in _iterate_own_expressions(node) if isinstance(part, ast.Name) and part.id in roots and id(part) not in harmless]
    return "it uses what the lines work on" if used else ""


def opens_device(node: ast.stmt) -> bool:
    """Return whether a statement may open the device: then the options of TF 2 count as they are."""
    calls = [inner for inner in _iterate_own_expressions(node) if isinstance(inner, ast.Call)]
    return any(name_callee(call) not in _QUIET for call in calls)


def _may_fail(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.Delete, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor)):
        return True
    return any(
        (isinstance(inner, ast.Call) and name_callee(inner) not in _QUIET)
        or (isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Load))
        for inner in _iterate_own_expressions(node)
    )


def _list_harmless(node: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement in which an object may be named: where it is given a value, and where a part of it gets a name."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets: list[ast.AST] = [*node.targets] if isinstance(node, ast.Assign) else [node.target]
        return [
            *(target for target in targets if not _calls_others(target)),
            *([node.value] if node.value is not None and _is_message_part(node.value) else []),
        ]
    return []


def _calls_others(target: ast.AST) -> bool:
    """Return whether a target of an assignment calls something that may look at what it is given; adding an entry does not."""
    return any(isinstance(part, ast.Call) and name_callee(part) != "add" for part in ast.walk(target))


def _is_message_part(node: ast.expr) -> bool:
    """Return whether an expression is a part of a session configuration, which it costs nothing to look at."""
    found = False
    while isinstance(node, ast.Attribute) and node.attr in _MESSAGE_FIELDS:
        node, found = node.value, True
    return found and isinstance(node, ast.Name)


def _list_stored(node: ast.stmt) -> list[ast.AST]:
    stored = [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del))]
    return [*stored]


def _iterate_own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, not those of the statements in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.expr, ast.withitem)):
            yield from ast.walk(child)


def find_root(expression: str) -> str:
    """Return the name that an expression begins with."""
    return expression.partition(".")[0].partition("[")[0].partition("(")[0]
