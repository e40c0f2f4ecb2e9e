"""Whether a name has a value yet where it is read: one that gets it further down only has none, whatever that is."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from npuprof.scripts.reading.values.scopes import Binding, Scope, iterate_statements, statement_blocks
from npuprof.scripts.reading.values.terms import format_expression

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: A line, and a column in bytes.
    Position = tuple[int, int]

_LAST = (1 << 60, 0)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ENDING = frozenset(("exit", "quit", "sys.exit", "os._exit", "os.abort"))


def is_read_too_early(node: ast.expr, scope: Scope, home: Scope, bindings: Iterable[Binding]) -> bool:
    """Return whether a name of ``home`` that ``scope`` reads may have no value there, and nobody would be told.

    That is so where all that gives it one stands further down, or where a ``try`` around the read hides that a branch gave it none.
    """
    if not hasattr(node, "lineno"):
        return False
    given = [(_find_start(one.node), _find_end(one.node)) for one in bindings if hasattr(one.node, "lineno")]
    if scope.node is home.node:
        place = node.lineno, node.col_offset
        return _is_before(place, given, home) or _may_be_unset_in_try(place, given, home)
    inner = _find_inner_scope(scope, home)
    if inner is None or any(end <= _find_start(inner.node) for _, end in given):
        return False
    if isinstance(inner.node, ast.ClassDef) and inner.node is scope.node:  # its body runs where it stands
        return _is_before((node.lineno, node.col_offset), given, home)
    first = _find_first_runs(home).get(inner.node.name) if isinstance(inner.node, DEFINITIONS) else None
    return first is not None and _is_before(first, given, home)


def is_given_before_run(scope: Scope, home: Scope, nodes: Iterable[ast.AST]) -> bool:
    """Return whether some values of ``home`` have been computed before a function inside it, in which ``scope`` lies, may run."""
    inner = _find_inner_scope(scope, home)
    if inner is None or not isinstance(inner.node, DEFINITIONS):
        return False
    first = _find_first_runs(home).get(inner.node.name)
    return first is not None and all(_find_end(node) <= first for node in nodes)


def runs_once(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call is all that a statement does, or what that is given, and stands in no loop."""
    around, statement = find_surroundings(call, scope)
    free = not any(isinstance(one, (*_LOOPS, ast.Try)) for one in around)
    value = getattr(statement, "value", None)
    return free and value is not None and (value is call or (isinstance(value, ast.Call) and call in (*value.args, value.func)))


def find_surroundings(node: ast.expr, scope: Scope) -> tuple[list[ast.stmt], ast.stmt | None]:
    """Return the statements of a scope around an expression, the outermost first, and the one that it is a part of itself."""
    body: list[ast.stmt] = scope.node.body
    found: list[ast.stmt] = []
    while True:
        around = _find_statement(body, _find_start(node))
        block = next((one for one in statement_blocks(around) if _find_statement(one, _find_start(node))), None) if around else None
        if around is None or block is None or isinstance(around, DEFINITIONS):
            return found, around
        found.append(around)
        body = block


def _find_statement(body: list[ast.stmt], place: Position) -> ast.stmt | None:
    at = bisect_right(body, place, key=_find_start) - 1
    return body[at] if at >= 0 and place < _find_end(body[at]) else None


def is_main_test(test: ast.expr | None) -> bool:
    """Return whether a test asks if the module is the program."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def leaves_block(body: list[ast.stmt]) -> bool:
    """Return whether nothing runs behind the statements of a body."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return leaves_block(last.body) and leaves_block(last.orelse)
    ends = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and format_expression(last.value.func) in _ENDING
    return ends or isinstance(last, LEAVING)


def find_way_on(statement: ast.If) -> str:
    """Return the test under which a turn of a loop goes on behind an ``if``; empty where it always does, or never."""
    turns = [isinstance(body[-1], (ast.Continue, ast.Break)) if body else False for body in (statement.body, statement.orelse)]
    text = format_expression(statement.test)
    return "" if turns[0] is turns[1] else f"not ({text})" if turns[0] else text


def _find_start(node: ast.AST) -> Position:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _find_end(node: ast.AST) -> Position:
    """Return where a value has been computed; a definition has its name once it is done."""
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def _find_inner_scope(scope: Scope, home: Scope) -> Scope | None:
    """Return the outermost scope around ``scope`` that lies in ``home``; None where ``home`` is not around it."""
    inner: Scope = scope
    while inner.outer is not None:
        if inner.outer.node is home.node:
            return inner
        inner = inner.outer
    return None


def _is_before(place: Position, given: list[tuple[Position, Position]], home: Scope) -> bool:
    """Return whether something runs before all that gives a name its value, and no loop leads back."""
    if not given or any(end <= place for _, end in given):
        return False
    loop = _find_around(_look_over(home).loops, place)
    return loop is None or not any(start <= loop[1] for start, _ in given)


def _may_be_unset_in_try(place: Position, given: list[tuple[Position, Position]], home: Scope) -> bool:
    """Return whether a place lies in a ``try``, and no statement that always runs before it gives the name its value."""
    layout = _look_over(home)
    if _find_around(layout.tries, place) is None:
        return False
    for start, end in given:
        statement = layout.simple[bisect_right(layout.simple, (start, _LAST, _LAST)) - 1]
        if end <= place < statement[2]:
            return False
    return True


def _find_around(parts: list[tuple[Position, Position]], place: Position) -> tuple[Position, Position] | None:
    """Return which of some parts, none inside another, a place lies in."""
    at = bisect_right(parts, (place, _LAST)) - 1
    return parts[at] if at >= 0 and place < parts[at][1] else None


class _Layout:
    """Where in a scope its outermost loops and bodies of ``try`` are, and its simple statements, each with the end of its block."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.loops: list[tuple[Position, Position]] = []
        self.tries: list[tuple[Position, Position]] = []
        self.simple: list[tuple[Position, Position, Position]] = []
        waiting = [body] if body else []
        while waiting:
            block = waiting.pop()
            end = _find_end(block[-1])
            for statement in block:
                if isinstance(statement, DEFINITIONS):
                    continue
                blocks = statement_blocks(statement)
                if not blocks:
                    self.simple.append((_find_start(statement), _find_end(statement), end))
                elif isinstance(statement, _LOOPS):
                    self.loops.append((_find_start(statement), _find_end(statement)))
                elif isinstance(statement, ast.Try) and statement.handlers:
                    self.tries.append((_find_start(statement.body[0]), _find_end(statement.body[-1])))
                waiting += blocks
        self.simple.sort()
        self.loops, self.tries = _keep_outermost(self.loops), _keep_outermost(self.tries)


def _keep_outermost(parts: list[tuple[Position, Position]]) -> list[tuple[Position, Position]]:
    kept: list[tuple[Position, Position]] = []
    for part in sorted(parts):
        if not kept or part[0] >= kept[-1][1]:
            kept.append(part)
    return kept


def _look_over(home: Scope) -> _Layout:
    layout: _Layout | None = home.memo.get("layout")
    if layout is None:
        layout = home.memo["layout"] = _Layout(home.node.body)
    return layout


def _find_first_runs(home: Scope) -> dict[str, Position]:
    """Return where each function or class that a scope defines may run first: where its name stands, or that of one that needs it."""
    known: dict[str, Position] | None = home.memo.get("first runs")
    if known is not None:
        return known
    first: dict[str, Position] = {}
    inside: dict[str, set[str]] = {}
    names: set[str] = set()
    for statement in iterate_statements(home.node.body):
        if isinstance(statement, DEFINITIONS):
            names.add(statement.name)
            now, later = _split_definition(statement)
            inside.setdefault(statement.name, set()).update(one.id for node in later for one in _iterate_reads(node))
        else:
            now = [one for one in ast.iter_child_nodes(statement) if not isinstance(one, (ast.stmt, ast.excepthandler, ast.match_case))]
        for node in now:
            for one in _iterate_reads(node):
                first[one.id] = min(first.get(one.id, _LAST), _find_start(one))
    for name in sorted(names & first.keys(), key=lambda name: first[name]):
        waiting = [name]
        while waiting:
            for other in inside[waiting.pop()] & names:
                if first.get(other, _LAST) > first[name]:
                    first[other] = first[name]
                    waiting.append(other)
    home.memo["first runs"] = first
    return first


def _split_definition(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return what of a definition runs where it stands, and what runs later."""
    if not isinstance(node, ast.ClassDef):
        return [*node.decorator_list, node.args], [*node.body]
    now: list[ast.AST] = [*node.decorator_list, *node.bases, *node.keywords]
    later: list[ast.AST] = []
    for inner in node.body:
        if isinstance(inner, DEFINITIONS):
            more, rest = _split_definition(inner)
            now += more
            later += rest
        else:
            now.append(inner)
    return now, later


def _iterate_reads(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
