"""Which functions of a script nothing calls or names: what they set is never set.

Only a script is looked at so: a module that does nothing by itself but define is there for others. A function counts as used where
its name stands in what runs: called, given as a value, as the text of a ``getattr``, or in ``__all__``; with a decorator; and as
``main`` of an ``app.run()``. So does a method of a class that is the script's own; frameworks call methods by names that no script has,
so where a class is made of one of theirs, or its objects are given to code out of sight, its methods are used where the class is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from functools import cached_property

from npuprof.model import Record
from npuprof.scripts.reading.rehearsal.known_calls import LOOKING
from npuprof.scripts.reading.values.order import is_main_test
from npuprof.scripts.reading.values.scopes import Function
from npuprof.scripts.reading.values.terms import name_callee, write_source

#: What finds functions by names that the run makes.
OPEN = frozenset(("globals", "locals", "vars", "eval", "exec", "Fire", "__dict__", "__import__", "modules", "import_module"))
#: Those of them that are of another module, or of any object; a method such as ``tensor.eval()`` is not what it is called.
_OPEN_OF_OTHERS = frozenset(("Fire", "__dict__", "modules", "import_module"))
_PLAIN = frozenset(("staticmethod", "classmethod", "property"))
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*")
_ACTING = ("Session", "Estimator", "RunConfig", "app.run", "npu.open")


class Idle(Record):
    """A function, or class, that never runs: its first and last line, and why."""

    first: int
    last: int
    name: str
    why: str


class _Unit:
    """What runs together: a function, or all of a module that is in none; ``mentions`` are the names in it.

    It ``is_open`` where it uses what finds functions by names that the run makes.
    """

    def __init__(self, name: str, node: ast.AST, around: _Unit | None) -> None:
        self.name = name
        self.node = node
        self.around = around
        self.mentions: set[str] = set()
        self.is_open = False
        self.is_kept = False  #: whether it runs whenever what is around does

    def is_within(self, others: set[int]) -> bool:
        where = self.around
        while where is not None:
            if id(where) in others:
                return True
            where = where.around
        return False


def find_idle_functions(tree: ast.Module, text: str, named_elsewhere: Callable[[str], bool]) -> list[Idle]:
    """Return the outermost functions and classes of a script that never run; none where the file is no script, or may call any by name."""
    units = _collect_units(tree, "yield" in text or "async" in text)
    named = {unit.name for unit in units[1:]}
    if any(unit.is_open for unit in units) or not _is_script(tree, named):
        return []
    by_name: dict[str, list[_Unit]] = {}
    inside: dict[int, list[_Unit]] = {}
    for unit in units[1:]:
        by_name.setdefault(unit.name, []).append(unit)
        inside.setdefault(id(unit.around), []).append(unit)
    live: set[int] = set()
    asked: set[str] = set()
    owners = _Owners(tree, named)

    def follow(waiting: list[_Unit]) -> None:
        while waiting:
            unit = waiting.pop()
            if id(unit) in live:
                continue
            live.add(id(unit))
            waiting += [one for one in inside.get(id(unit), ()) if one.is_kept or owners.may_call(unit, one)]
            for name in unit.mentions - asked:
                asked.add(name)
                waiting += by_name.get(name, ())

    follow([units[0]])
    for unit in inside.get(id(units[0]), ()):  # other files are looked at for what is used by none of this one only
        if (id(unit) not in live or isinstance(unit.node, ast.ClassDef)) and named_elsewhere(unit.name):
            follow([unit, *inside.get(id(unit), ())])
    idle = {id(unit) for unit in units if id(unit) not in live}
    return [_describe_idle(unit) for unit in units if id(unit) in idle and not unit.is_within(idle)]


class _Owners:
    """Which classes of a script may have their methods called by code out of sight."""

    def __init__(self, tree: ast.Module, named: set[str]) -> None:
        self._tree = tree
        self._named = named

    def may_call(self, cls: _Unit, method: _Unit) -> bool:
        """Return whether something out of sight may call a method of a class."""
        if not isinstance(cls.node, ast.ClassDef) or isinstance(method.node, ast.ClassDef):
            return False
        return cls.name not in self._own

    @cached_property
    def _own(self) -> set[str]:
        """The classes that are made of nothing but others of the script, and whose objects stay in it."""
        nodes = list(ast.walk(self._tree))
        bases: dict[str, set[str]] = {}
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                plain = not node.keywords and not node.decorator_list and all(isinstance(base, ast.Name) for base in node.bases)
                known = {base.id for base in node.bases if isinstance(base, ast.Name)} if plain else {""}
                bases[node.name] = known | ({""} if node.name in bases else set())  # of two with one name nothing is known
        open_ones = self._find_handed(nodes, bases.keys())
        while True:
            more = {
                one
                for name, known in bases.items()
                for one in (name, *known)
                if one in bases and one not in open_ones and (name in open_ones or not known <= {"object"} | (bases.keys() - open_ones))
            }
            if not more:
                return set(bases) - open_ones
            open_ones |= more

    def _find_handed(self, nodes: list[ast.AST], classes: Collection[str]) -> set[str]:
        """Return the classes of which something is given to a function that is not of the script, or asked for by a computed name."""
        handed: set[str] = set()
        made: dict[str, set[str]] = {"self": set(classes)}
        given: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and (name := name_callee(node.value)) in classes:
                for target in node.targets:
                    made.setdefault(target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", ""), set()).add(name)
            elif isinstance(node, ast.Call) and (name := name_callee(node)) not in self._named and name not in LOOKING:
                if name in ("getattr", "methodcaller") and not any(isinstance(one, ast.Constant) for one in node.args):
                    return set(classes)
                if name == "super":
                    continue
                for value in (*node.args, *(one.value for one in node.keywords)):
                    for one in _iterate_given(value):
                        if isinstance(one, ast.Call):
                            handed.add(name_callee(one))
                        else:
                            given.add(one.id if isinstance(one, ast.Name) else one.attr)
        for name in given:
            handed |= made.get(name, set()) | ({name} & set(classes))
        return handed & set(classes)


def _iterate_given(node: ast.expr) -> Iterator[ast.Name | ast.Attribute | ast.Call]:
    """Yield what an argument gives as a whole: names, attributes, what calls return; those in lists and tables too."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        yield node
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.BoolOp)):
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.expr):
                yield from _iterate_given(one)


def _describe_idle(unit: _Unit) -> Idle:
    node = unit.node
    what = f"{unit.name}()" if not isinstance(node, ast.ClassDef) else f"the class {unit.name}"
    why = f"{what} is used nowhere, so this never runs"
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_lazy(node):
        why = f"{what} runs only when something goes through what it returns, and nothing does"
    return Idle(node.lineno, node.end_lineno or node.lineno, unit.name, why)  # type: ignore[attr-defined]


def _collect_units(tree: ast.Module, may_be_lazy: bool) -> list[_Unit]:
    """Return the units of a module, that of the module itself first."""
    top = _Unit("", tree, None)
    units = [top]
    lazy = {
        node.name
        for node in (ast.walk(tree) if may_be_lazy else ())
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_lazy(node)
    }
    waiting: list[tuple[ast.AST, _Unit]] = [(child, top) for child in tree.body]
    while waiting:
        node, unit = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = _Unit(node.name, node, unit)
            inner.is_kept = _is_kept(node, unit)
            units.append(inner)
            outside: list[ast.AST] = [*node.decorator_list]
            if isinstance(node, ast.ClassDef):
                outside += [*node.bases, *node.keywords]
            else:
                outside += [node.args, *([node.returns] if node.returns else [])]
            waiting += [(one, unit) for one in outside] + [(one, inner) for one in node.body]
            continue
        alone = node.value if isinstance(node, ast.Expr) else None
        if isinstance(alone, ast.Call) and isinstance(alone.func, ast.Name) and alone.func.id in lazy:  # which runs nothing of it
            waiting += [(one, unit) for one in (*alone.args, *alone.keywords)]
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        _note_mentions(node, unit)
        waiting += [(child, unit) for child in ast.iter_child_nodes(node)]
    return sorted(units, key=lambda unit: getattr(unit.node, "lineno", 0))


def _note_mentions(node: ast.AST, unit: _Unit) -> None:
    if isinstance(node, ast.Name):
        unit.mentions.add(node.id)
        unit.is_open = unit.is_open or node.id in OPEN
    elif isinstance(node, ast.Attribute):
        unit.mentions.add(node.attr)
        of_builtins = isinstance(node.value, ast.Name) and node.value.id in ("builtins", "__builtin__", "__builtins__")
        unit.is_open = unit.is_open or node.attr in (OPEN if of_builtins else _OPEN_OF_OTHERS)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
        unit.mentions.update(re.split(r"[.:]", node.value))
    elif isinstance(node, ast.Call) and name_callee(node) == "run" and isinstance(node.func, ast.Attribute):
        unit.mentions.add("main")
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        names = {alias.name.rpartition(".")[2] for alias in node.names}
        unit.mentions |= names
        unit.is_open = unit.is_open or not OPEN.isdisjoint(names)


def _is_kept(node: Function | ast.ClassDef, unit: _Unit) -> bool:
    """Return whether something may call it that no name in sight tells: by a decorator, or as a method, or as a test."""
    decorated = any(not (isinstance(one, ast.Name) and one.id in _PLAIN) for one in node.decorator_list)
    return (
        decorated
        or node.name.startswith(("test", "__"))
        or (isinstance(node, ast.ClassDef) and any(not (isinstance(base, ast.Name) and base.id == "object") for base in node.bases))
    )


def is_lazy(node: Function) -> bool:
    """Return whether a call alone runs nothing of a function."""
    if isinstance(node, ast.AsyncFunctionDef):
        return True
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(one)
    return False


def _is_script(tree: ast.Module, named: set[str]) -> bool:
    """Return whether a module does something by itself: asks if it is the program, calls its functions, makes a session."""
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(statement, ast.If) and is_main_test(statement.test):
            return True
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and (name_callee(node) in named or write_source(node.func).endswith(_ACTING)):
                return True
    return False
