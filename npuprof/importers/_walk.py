"""One walk over the statements of a script that can matter; the surfaces read what they know on the way.

Only statements with a tell-tale word in their lines are looked into, which keeps the walk far cheaper than the
parsing before it.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from typing import Any

from npuprof.importers._found import Branch, Found, Site
from npuprof.importers._literals import METHODS, Unknown, fold, short
from npuprof.importers._scopes import Function, Scope, blocks
from npuprof.importers._source import Script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Handler = Callable[["Walk", ast.stmt, list[ast.expr], Scope, tuple[Branch, ...]], None]

_MOST_ITEMS = 300
_MOST_CALLS = 40
_GLOBAL = re.compile(r"^\s*(?:global|nonlocal)[ \t]+([\w \t,]+)", re.MULTILINE)


class Walk:
    """The state of one walk; ``found`` and ``sites`` grow as the surfaces report."""

    def __init__(self, script: Script, hot: list[int], handlers: tuple[Handler, ...]) -> None:
        assert script.tree is not None
        self.script = script
        self.tree = script.tree
        self.hot = hot
        self.handlers = handlers
        self.found: list[Found] = []
        self.sites: dict[str, Site] = {}
        self.current: dict[tuple[str, str], str] = {}
        self.aliases: dict[tuple[str, str], ast.expr] = {}
        self.facts: dict[str, Any] = {}
        self.place: ast.AST | None = None
        self.dead = 0
        self._ifs = 0
        self._again = 0
        self._order = 0
        self._depends = False
        self._waiting: list[tuple[Function, Scope, tuple[Branch, ...], list[Found]]] = []
        self._calls: dict[str, list[tuple[ast.Call, Scope]]] | None = None
        self._flags: dict[str, Any] | None = None

    def run(self) -> None:
        """Walk the module."""
        module = Scope(self.tree)
        if "global " in self.script.text or "nonlocal " in self.script.text:
            module.rebound = frozenset(name.strip() for match in _GLOBAL.findall(self.script.text) for name in match.split(","))
        name = self.script.path.replace("\\", "/").rpartition("/")[2]
        module.bound["__file__"] = ast.Constant(f"./{name}"), module  # paths are read as from the script's own folder
        self.block(self.tree.body, module, ())
        for waiting in self._waiting:
            self.found += self._called(*waiting)
        module.bound.clear()  # the only circle among these objects: without it a tree goes as soon as nobody needs it
        unique: dict[tuple[Any, ...], Found] = {}
        for found in self.found:
            mark = (found.line, found.column, found.surface, found.key, found.name, repr(found.value), found.reason, found.scope)
            unique.setdefault(mark, found)
        self.found = sorted(unique.values(), key=lambda found: (found.line, found.column, found.order))

    def block(self, body: list[ast.stmt], scope: Scope, branches: tuple[Branch, ...]) -> None:
        """Walk the statements of one body."""
        for statement in body:
            if self.is_hot(statement):
                self._statement(statement, scope, branches)

    def is_hot(self, node: ast.AST) -> bool:
        """Return whether a tell-tale word stands in the lines of a node."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        at = bisect_left(self.hot, first)
        return at < len(self.hot) and self.hot[at] <= last

    def _statement(self, statement: ast.stmt, scope: Scope, branches: tuple[Branch, ...]) -> None:
        if isinstance(statement, ast.If):
            self._if(statement, scope, branches)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            self._for(statement, scope, branches)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._function(statement, scope, branches)
        elif isinstance(statement, ast.ClassDef):
            self.block(statement.body, Scope(statement, scope), branches)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            self._handle(statement, [item.context_expr for item in statement.items], scope, branches)
            self.block(statement.body, scope, branches)
        elif isinstance(statement, (ast.While, ast.Try)) or blocks(statement):
            self._other(statement, scope, branches)
        else:
            expressions = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
            self._handle(statement, expressions, scope, branches)

    def _handle(self, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
        for handler in self.handlers:
            handler(self, statement, expressions, scope, branches)

    def _if(self, statement: ast.If, scope: Scope, branches: tuple[Branch, ...]) -> None:
        self._ifs += 1
        number, arm = self._ifs, 0
        rest: list[ast.stmt] = [statement]
        refused: list[str] = []
        done = False
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            link = rest[0]
            self._handle(link, [link.test], scope, branches) if self.is_hot(link.test) else None
            truth = True if _main(link.test) else self.truth(link.test, scope)
            dead = done or truth is False
            self.dead += dead
            inside = branches if truth is True and not arm else (*branches, (number, arm, short(link.test)))
            if not (dead and scope.bound):
                self.block(link.body, scope, inside)
            self.dead -= dead
            done = done or truth is True
            if truth is not False:
                arm += 1
                refused.append(f"not ({short(link.test)})")
            rest = link.orelse
        if rest and not (done and scope.bound):
            self.dead += done
            self.block(rest, scope, (*branches, (number, -arm, " and ".join(refused))) if arm else branches)
            self.dead -= done

    def truth(self, test: ast.expr, scope: Scope) -> bool | None:
        """Return whether a test always or never holds, None where the run decides."""
        try:
            return bool(fold(test, scope))
        except Unknown:
            return None

    def _for(self, statement: ast.For | ast.AsyncFor, scope: Scope, branches: tuple[Branch, ...]) -> None:
        self._handle(statement, [statement.iter], scope, branches) if self.is_hot(statement.iter) else None
        for bound in _items(statement.target, statement.iter, scope) or [{}]:
            self.block(statement.body, scope.with_bound(bound) if bound else scope, branches)
        self.block(statement.orelse, scope, branches)

    def _other(self, statement: ast.stmt, scope: Scope, branches: tuple[Branch, ...]) -> None:
        self._ifs += 1
        number = self._ifs
        for name in ("body", "orelse", "finalbody"):
            self.block(getattr(statement, name, None) or [], scope, branches)
        for arm, handler in enumerate(getattr(statement, "handlers", ())):
            kind = f"except {short(handler.type)}" if handler.type else "except"
            self.block(handler.body, scope, (*branches, (number, arm + 1, kind)))
        for arm, case in enumerate(getattr(statement, "cases", ())):
            text = f"{short(statement.subject)} is {short(case.pattern)}"  # type: ignore[attr-defined]
            self.block(case.body, scope, (*branches, (number, arm, text)))

    def _function(self, function: Function, scope: Scope, branches: tuple[Branch, ...]) -> None:
        inside = Scope(function, scope)
        before, depended = self.found, self._depends
        self.found, self._depends = [], False
        self.block(function.body, inside, branches)
        plain, depends = self.found, self._depends
        self.found, self._depends = before, depended
        if depends and self._again < 2:
            self._waiting.append((function, inside, branches, plain))  # its callers may stand further down
        else:
            self.found += plain

    def _called(self, function: Function, inside: Scope, branches: tuple[Branch, ...], plain: list[Found]) -> list[Found]:
        """Return what a function sets with the arguments of its calls in this file filled in."""
        calls = self.calls(function.name)
        if not calls or len(calls) > _MOST_CALLS:
            return plain
        runs: list[tuple[ast.Call, list[Found]]] = []
        self._again += 1
        for call, where in calls:
            bound = _arguments(function, inside, call, where)
            if bound is None:
                self._again -= 1
                return plain
            kept, self.found = self.found, []
            self.block(function.body, inside.with_bound(bound), branches)
            runs.append((call, self.found))
            self.found = kept
        self._again -= 1
        return _merged(self, plain, runs)

    def calls(self, name: str) -> list[tuple[ast.Call, Scope]]:
        """Return every call of a function of this module, with the scope it stands in."""
        if self._calls is None:
            self._calls = {}
            for call, scope in _all_calls(self.tree):
                called = call.func
                known = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
                self._calls.setdefault(known, []).append((call, scope))
        return self._calls.get(name, [])

    def flag_default(self, flag: str) -> Any:
        """Return the default of a command-line flag that this file declares, or None."""
        if self._flags is None:
            self._flags = _declared(self.tree) if re.search(r"add_argument|DEFINE_", self.script.text) else {}
        return self._flags.get(flag)

    def site(self, scope: Scope, root: str, surface: str, node: ast.AST) -> str:
        """Return the name of the configuration object that a variable stands for here."""
        if root in scope.bound:
            expression, caller = scope.bound[root]
            return self.site(caller, short(expression), surface, node)
        where: Scope | None = scope
        while where is not None:
            known = self.current.get((where.name, root))
            if known is not None:
                return known
            where = where.outer
        name = f"{scope.name or '<module>'}:{root}"
        self.current[scope.name, root] = name
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        self.sites.setdefault(name, Site(name, surface, line, self.script.column(line, column), root))
        return name

    def new_site(self, scope: Scope, root: str, surface: str, node: ast.AST, branches: tuple[Branch, ...], closed: bool = True) -> str:
        """Begin a configuration object; return its name."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        name = f"{scope.name or '<module>'}:{root}@{line}"
        self.current[scope.name, root] = name
        self.sites.setdefault(name, Site(name, surface, line, self.script.column(line, column), root, closed, None, branches))
        return name

    def note(self, fact: str, value: Any) -> None:
        """Keep a remark for the linter, once."""
        known = self.facts.setdefault(fact, [])
        if value not in known:
            known.append(value)

    def report(self, node: ast.AST, surface: str, key: str, name: str, **more: Any) -> None:
        """Add a setting at the place of a node."""
        at = self.place or node
        line = at.lineno  # type: ignore[attr-defined]
        column = self.script.column(line, at.col_offset)  # type: ignore[attr-defined]
        self._order += 1
        more.setdefault("dead", self.dead > 0)
        self.found.append(Found(self.script.path, line, column, surface, key, name, order=self._order, **more))

    def evaluate(self, node: ast.expr, scope: Scope) -> tuple[Any, str, Any]:
        """Return ``(value, reason, default)`` of an expression; the reason is empty where the value is known."""
        try:
            return fold(node, scope), "", None
        except Unknown as unknown:
            if parameter(node, scope):
                self._depends = True
            return None, unknown.reason, self.flag_default(unknown.flag) if unknown.flag else _default(node, scope)


def parameter(node: ast.AST, scope: Scope, depth: int = 0) -> bool:
    """Return whether an expression reads a parameter of the function it stands in."""
    if isinstance(node, ast.Name):
        found = scope.find(node.id)
        if not found or not found[1] or found[0].node is not scope.node or depth > 20:
            return False
        kinds = {binding.kind for binding in found[1]}
        return kinds == {"parameter"} or (kinds == {"assign"} and any(parameter(one.node, scope, depth + 10) for one in found[1]))
    if isinstance(node, ast.Attribute) and node.attr not in METHODS:
        return False  # an attribute of a parameter stays unknown whatever the call says
    return depth < 20 and any(parameter(child, scope, depth + 1) for child in ast.iter_child_nodes(node))


def _default(node: ast.expr, scope: Scope) -> Any:
    """Return the default of a parameter that an expression is, or None."""
    while isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    if not isinstance(node, ast.Name) or not isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    found = _defaults(scope.node).get(node.id)
    if found is None:
        return None
    try:
        return fold(found, scope.outer or scope)
    except Unknown:
        return None


def _defaults(function: Function) -> dict[str, ast.expr]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    found = {arg.arg: value for arg, value in zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)}
    return found | {arg.arg: value for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is not None}


def _arguments(function: Function, inside: Scope, call: ast.Call, where: Scope) -> dict[str, tuple[ast.expr, Scope]] | None:
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        names = names[1:]
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return None
    outer = inside.outer or inside
    bound: dict[str, tuple[ast.expr, Scope]] = {name: (value, outer) for name, value in _defaults(function).items()}
    bound |= {name: (value, where) for name, value in zip(names, call.args, strict=False)}
    return bound | {keyword.arg: (keyword.value, where) for keyword in call.keywords if keyword.arg}


def _merged(walk: Walk, plain: list[Found], runs: list[tuple[ast.Call, list[Found]]]) -> list[Found]:
    """Return the settings of a function whose calls were tried: one for a fixed key, one a call for a computed one."""
    result: list[Found] = []
    for found in plain:
        if not found.key and found.reason:
            continue
        same = [one for _, run in runs for one in run if (one.line, one.column, one.name) == (found.line, found.column, found.name)]
        if found.reason and same and not any(one.reason for one in same):
            values = {repr(one.value): one for one in same}
            if len(values) == 1:
                found = found._replace(value=same[0].value, kind=same[0].kind, reason="")
            elif len(values) <= 4:
                found = found._replace(reason=f"{found.reason}; the calls here give {', '.join(values)}")
        result.append(found)
    fixed = {(one.line, one.column, one.name) for one in result}
    computed = 0
    for call, run in runs:
        for one in run:
            if one.name and (one.line, one.column, one.name) not in fixed:
                computed += 1
                column = walk.script.column(call.lineno, call.col_offset)
                result.append(one._replace(line=call.lineno, column=column))
    return result if computed or all(found.key for found in plain) else [*result, *(found for found in plain if not found.key)]


def _main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _items(target: ast.expr, iterated: ast.expr, scope: Scope) -> list[dict[str, tuple[ast.expr, Scope]]]:
    """Return, for each turn of a loop over something written out, what its variables stand for."""
    elements, home = _elements(iterated, scope)
    if not elements or len(elements) > _MOST_ITEMS:
        return []
    turns: list[dict[str, tuple[ast.expr, Scope]]] = []
    for element in elements:
        if isinstance(target, ast.Name):
            turns.append({target.id: (element, home)})
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(element, (ast.Tuple, ast.List)):
            if len(target.elts) != len(element.elts):
                return []
            pairs = zip(target.elts, element.elts, strict=True)
            turns.append({name.id: (item, home) for name, item in pairs if isinstance(name, ast.Name)})
        else:
            return []
    return turns


def _elements(node: ast.expr, scope: Scope, depth: int = 0) -> tuple[list[ast.expr], Scope]:
    if isinstance(node, (ast.List, ast.Tuple)):
        return list(node.elts), scope
    if isinstance(node, ast.Name) and depth < 8:
        found = scope.find(node.id)
        if found and not found[1] and node.id in found[0].bound:
            expression, where = found[0].bound[node.id]
            return _elements(expression, where, depth + 1)
        if found and len(found[1]) == 1 and found[1][0].kind == "assign" and node.id not in found[0].rebound:
            expression = found[1][0].node  # type: ignore[assignment]
            assert isinstance(expression, ast.expr)
            return _elements(expression, found[0], depth + 1)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return [name for name in node.keys if name is not None], scope
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in ("items", "iteritems", "keys", "values") and not node.args:
            return view(function.value, function.attr, scope)
        if isinstance(function, ast.Attribute) and function.attr == "iteritems" and len(node.args) == 1:
            return view(node.args[0], "items", scope)
        if isinstance(function, ast.Name) and function.id in ("sorted", "list", "tuple") and len(node.args) == 1:
            return _elements(node.args[0], scope, depth + 1)
        if isinstance(function, ast.Name) and function.id == "dict" and not node.args and all(k.arg for k in node.keywords):
            return [ast.copy_location(ast.Constant(keyword.arg), keyword.value) for keyword in node.keywords], scope
    return [], scope


def view(node: ast.expr, what: str, scope: Scope) -> tuple[list[ast.expr], Scope]:
    """Return the keys, values or items of a table that is written out, as nodes, and the scope they stand in."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.Name):
        found = scope.find(node.id)
        if found and not found[1] and node.id in found[0].bound:
            node, scope = found[0].bound[node.id]
        elif found and len(found[1]) == 1 and found[1][0].kind == "assign" and node.id not in found[0].rebound:
            expression = found[1][0].node
            assert isinstance(expression, ast.expr)
            node, scope = expression, found[0]
    if isinstance(node, ast.Dict) and None not in node.keys:
        pairs = [(name, value) for name, value in zip(node.keys, node.values, strict=True) if name is not None]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        pairs = [(ast.copy_location(ast.Constant(k.arg), k.value), k.value) for k in node.keywords if k.arg]
    if what == "keys":
        return [name for name, _ in pairs], scope
    if what == "values":
        return [value for _, value in pairs], scope
    return [ast.copy_location(ast.Tuple([name, value], ast.Load()), name) for name, value in pairs], scope


def _all_calls(tree: ast.Module) -> Iterator[tuple[ast.Call, Scope]]:
    waiting: list[tuple[ast.AST, Scope]] = [(tree, Scope(tree))]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.For) and (turns := _items(node.target, node.iter, scope)):
            for turn in turns:
                inside = scope.with_bound(turn)
                waiting += [(ast.Module(node.body, []), inside)]
            waiting.append((ast.Module(node.orelse, []), scope))
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield child, scope
            inner = Scope(child, scope) if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else scope
            waiting.append((child, inner))


def _declared(tree: ast.Module) -> dict[str, Any]:
    """Return the defaults of the command-line flags that argparse and absl calls of this file declare."""
    found: dict[str, Any] = {}
    twice: set[str] = set()
    for call, scope in _all_calls(tree):
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
        if name == "add_argument":
            flag, default = _argparse(call)
        elif name.startswith("DEFINE_") and len(call.args) > 1 and isinstance(call.args[0], ast.Constant):
            flag, default = str(call.args[0].value), call.args[1]
        elif name.startswith("DEFINE_"):
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            first = call.args[0] if call.args else named.get("name") or named.get("flag_name")
            flag = str(first.value) if isinstance(first, ast.Constant) else ""
            default = named.get("default") or named.get("default_value")
        else:
            continue
        if not flag or default is None:
            continue
        try:
            value = fold(default, scope)
        except Unknown:
            continue
        if flag in found and found[flag] != value:
            twice.add(flag)
        found[flag] = value
    return {flag: value for flag, value in found.items() if flag not in twice}


def _argparse(call: ast.Call) -> tuple[str, ast.expr | None]:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    words = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    long = next((word for word in words if word.startswith("--")), words[0] if words else "")
    dest = named.get("dest")
    flag = str(dest.value) if isinstance(dest, ast.Constant) else long.lstrip("-").replace("-", "_")
    default = named.get("default")
    action = named.get("action")
    if default is None and isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
        default = ast.Constant(action.value == "store_false")
    return flag, default
