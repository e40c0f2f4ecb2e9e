"""What a script says about itself, asked for while it is walked: calls of its functions, the tests around them, flags, attributes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from npuprof.scripts.reading.found import Branch
from npuprof.scripts.reading.modules import open_module_scope
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.values.calls import find_all_calls
from npuprof.scripts.reading.values.flag_defaults import collect_flag_defaults
from npuprof.scripts.reading.values.literals import Unknown, fold_expression, format_expression
from npuprof.scripts.reading.values.order import find_surroundings, is_main_test
from npuprof.scripts.reading.values.scopes import ModuleHome, Scope
from npuprof.scripts.reading.values.terms import name_callee, write_source

#: The calls of a function are followed where there are no more.
MOST_CALLS = 40
#: So many calls, one around the other, hand a value on.
_DEEPEST = 3
_WORD = re.compile(r"[^\W\d]\w*")
_DEF = re.compile(r"^[ \t]*def (\w+)\(", re.MULTILINE)


def _iterate_asked(test: ast.expr) -> Iterator[ast.Attribute]:
    if isinstance(test, ast.Attribute):
        yield test
    elif isinstance(test, (ast.BoolOp, ast.UnaryOp, ast.Compare)):
        for one in ast.iter_child_nodes(test):
            if isinstance(one, ast.expr):
                yield from _iterate_asked(one)


def unite_runs(runs: Sequence[tuple[Branch, ...]]) -> tuple[Branch, ...]:
    """Return the tests under which something runs at all that runs several times."""
    if len(runs) == 1 or not all(runs):
        return runs[0] if len(runs) == 1 else ()
    texts = list(dict.fromkeys(" and ".join(text for _, _, text in tests) for tests in runs))
    return ((runs[0][0][0], 0, texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)),)


class ScriptView:
    """A script and what has been asked of it; each answer is worked out once."""

    def __init__(self, script: Script, home: ModuleHome | None) -> None:
        assert script.tree is not None
        self.home = home
        self.script = script
        self.tree = script.tree
        self.asked_by: ScriptView | None = None  #: the view of the script that calls what this one reads
        self._module: Scope | None = None
        self._mentioned: dict[str, bool] = {}
        self._words: dict[ast.AST, dict[str, list[str]]] = {}
        self._calls: dict[str, list[tuple[ast.Call, Scope]]] | None = None
        self._flags: dict[str, Any] | None = None
        self._attributes: dict[str, list[ast.expr]] | None = None

    def open_module(self) -> Scope:
        """Return the scope of the whole script."""
        if self._module is None:
            self._module = open_module_scope(self.script, self.home)
        return self._module

    def fold_test(self, test: ast.expr, scope: Scope) -> bool | None:
        """Return whether a test always or never holds, None where the run decides."""
        if isinstance(test, ast.BoolOp):
            deciding = isinstance(test.op, ast.Or)
            truths = [self.fold_test(one, scope) for one in test.values]
            return deciding if deciding in truths else None if None in truths else not deciding
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            truth = self.fold_test(test.operand, scope)
            return None if truth is None else not truth
        try:
            return bool(fold_expression(test, scope))
        except Unknown:
            return None

    def list_tests(self, call: ast.Call, scope: Scope) -> tuple[tuple[Branch, ...], bool]:
        """Return the tests that a call stands under in its function, and whether it never runs for one of them."""
        tests: list[Branch] = []
        never = False
        around, statement = find_surroundings(call, scope)
        for one, inner in zip(around, [*around[1:], statement], strict=False):
            if isinstance(one, ast.If):
                wanted = inner in one.body
                truth = True if is_main_test(one.test) else self.fold_test(one.test, scope)
                if truth is not wanted:
                    text = format_expression(one.test)
                    tests.append((-one.lineno, 0, text) if wanted else (-one.lineno, -1, f"not ({text})"))
                    never = never or truth is not None
            elif isinstance(one, ast.Try) and inner not in [*one.body, *one.orelse, *one.finalbody]:
                tests.append((-one.lineno, 0, "an error is caught"))
            elif hasattr(one, "cases"):
                tests.append((-one.lineno, 0, f"a case of {format_expression(one.subject)}"))  # type: ignore[attr-defined]
        parts = [one for one in ast.walk(statement) if isinstance(one, (ast.IfExp, ast.BoolOp))] if statement is not None else []
        choices = [one for one in parts if any(inner is call for inner in ast.walk(one))]
        tests += [(-call.lineno, 0, format_expression(one.test if isinstance(one, ast.IfExp) else one.values[0])) for one in choices]
        return tuple(tests), never

    def find_calls(self, name: str) -> list[tuple[ast.Call, Scope]]:
        """Return every call of a function of this module, with the scope it stands in."""
        if self._calls is None:
            self._calls = {}
            for call, scope in find_all_calls(self.open_module()):
                self._calls.setdefault(name_callee(call), []).append((call, scope))
        return self._calls.get(name, [])

    def list_runs(self, scope: Scope, seen_from: str = "", depth: int = 0) -> tuple[tuple[Branch, ...], ...] | None:
        """Return the tests that each run of a function stands under; None where something that is not seen may call it.

        They are those up to the function of that name, up to the module without one. A class is called for its ``__init__``. What never
        runs is left out.
        """
        function = scope.node
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or scope.label:
            return ((),) if isinstance(function, ast.Module) else None
        name = function.name
        if name == "__init__" and scope.outer is not None:
            name = scope.outer.node.name  # type: ignore[union-attr]
        calls = self.find_calls(name)
        unique = self._definitions[name] == 1 and (name != "main" or not calls)
        if not calls or not unique or len(calls) > MOST_CALLS or self._mentions[name] != len(calls) or function.decorator_list:
            return None
        found: list[tuple[Branch, ...]] = []
        for call, where in calls:
            tests, never = self.list_tests(call, where)
            if where.node is function or depth >= _DEEPEST:
                return None
            outer = (self.list_runs(where, seen_from, depth + 1) if where.name != seen_from else None) or ((),)
            if not never:
                found += [(*before, *tests) for before in outer]
        return tuple(found[: MOST_CALLS + 1])

    @cached_property
    def _definitions(self) -> Counter[str]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return Counter(node.name for node in ast.walk(self.tree) if isinstance(node, kinds))

    @cached_property
    def _mentions(self) -> Counter[str]:
        """How often each name is read, as such and as an attribute; not where a test asks for ``args.name``, which calls nothing."""
        nodes = list(ast.walk(self.tree))
        tests = [node.test for node in nodes if isinstance(node, (ast.If, ast.While, ast.IfExp))]
        asked = {id(one) for test in tests for one in _iterate_asked(test)}
        named = [node for node in nodes if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in asked]
        return Counter(node.id if isinstance(node, ast.Name) else node.attr for node in named)

    def find_lines_with(self, scope: Scope, name: str) -> list[str]:
        """Return the lines of a scope in which a name stands."""
        if scope.node not in self._words:
            first = getattr(scope.node, "lineno", 1)
            words: dict[str, list[str]] = {}
            for line in self.script.lines[first - 1 : getattr(scope.node, "end_lineno", None)]:
                for word in set(_WORD.findall(line)):
                    words.setdefault(word, []).append(line)
            self._words[scope.node] = words
        return self._words[scope.node].get(name, [])

    @cached_property
    def defined_names(self) -> frozenset[str]:
        """The names of the functions of this file."""
        return frozenset(_DEF.findall(self.script.text))

    @cached_property
    def adding_lines(self) -> list[int]:
        """The lines in which something may be added to the optimizer entries of a configuration."""
        return [number for number, line in enumerate(self.script.lines, 1) if ".add(" in line]

    def mentions(self, word: str) -> bool:
        """Return whether a word stands anywhere in the text, which is looked through once for each."""
        if word not in self._mentioned:
            self._mentioned[word] = word in self.script.text
        return self._mentioned[word]

    def find_attribute_values(self, name: str) -> list[ast.expr]:
        """Return what an attribute of an object is given anywhere in the module, by its text: ``self.dump_config``."""
        if self._attributes is None:
            self._attributes = {}
            for node in ast.walk(self.tree):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        if isinstance(target, ast.Attribute):
                            self._attributes.setdefault(write_source(target), []).append(node.value)
        return self._attributes.get(name, []) if name else []

    def flag_default(self, flag: str) -> Any:
        """Return the default of a command-line flag that this file declares, or None."""
        if self._flags is None:
            self._flags = collect_flag_defaults(self.tree) if any(word in self.script.text for word in ("add_argument", "DEFINE_")) else {}
        found = self._flags.get(flag)
        return self.asked_by.flag_default(flag) if found is None and self.asked_by is not None else found
