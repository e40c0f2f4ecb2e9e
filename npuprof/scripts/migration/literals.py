"""Where in a Python script the name and the value of a setting are written: one literal each, or nothing is changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from npuprof import catalog
from npuprof.scripts.migration.places import Change, Places, StuckError, find_new_words
from npuprof.scripts.migration.planning import DueStep
from npuprof.scripts.migration.readers import find_computed_key, list_hidden_uses
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.values.classes import CLASSES

_STRING = re.compile(r"([A-Za-z]{0,2})('''|\"\"\"|'|\")(.*)\2", re.DOTALL)
#: What stands behind a statement, but no remark for npuprof: that would be about the next line.
_REMARK = r"#(?![^\n]*\bnpuprof:)"
_COMMENT = re.compile(rf"[ \t]*({_REMARK}[^\n]*)\n?\Z")
_END_OF_ARGUMENT = re.compile(rf"[ \t]*,?[ \t]*({_REMARK}[^\r\n]*)?\r?\n")
_GIVES = ("CopyFrom", "MergeFrom", "list")
_FIELDS = ("s", "b", "i", "f")


class PythonScript:
    """A Python script whose literals can be changed; ``find_reader`` names a file that may read a name of it. Raises SyntaxError."""

    def __init__(self, text: str, find_reader: Callable[[str], str] = lambda _: "") -> None:
        from npuprof.scripts.reading.source import parse_python

        self._find_reader = find_reader
        self._checked: dict[tuple[str, ast.AST], str] = {}
        self.places = Places(text, python=True)
        self.tree = parse_python(text)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.blocks: dict[ast.stmt, list[ast.stmt]] = {}
        self.at: dict[tuple[int, int], list[ast.AST]] = {}
        self.names: dict[str, list[ast.Name]] = {}
        self._uses: dict[str, int] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            for part in _list_blocks(node):
                self.blocks.update(dict.fromkeys(part, part))
            if isinstance(node, ast.Name):
                self.names.setdefault(node.id, []).append(node)
            if isinstance(node, (ast.expr, ast.stmt, ast.keyword)):
                self.at.setdefault((node.lineno, node.col_offset), []).append(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and self._is_read(node):
                self._uses.setdefault(node.value, node.lineno)

    def find_use(self, name: str) -> int:
        """Return the line in which a name is compared or looked up, or may be, 0 for none: under another name that would go wrong."""
        return self._uses.get(name, 0) or self.computed_key

    @cached_property
    def computed_key(self) -> int:
        """The line in which a key is computed that no importer follows, 0 for none: it may be that of any option."""
        return find_computed_key(self.tree)

    @cached_property
    def _hidden_uses(self) -> dict[str, int]:
        return list_hidden_uses(self.tree)

    def _is_read(self, node: ast.Constant) -> bool:
        parent = self.parents.get(node)
        if isinstance(parent, ast.Compare):
            return True
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            return parent.func.attr in ("get", "pop", "getattr", "HasField", "ClearField")
        if isinstance(parent, ast.Subscript):
            above = self.parents.get(parent)
            kept = isinstance(parent.ctx, ast.Store)
            given = isinstance(above, ast.Attribute) and (
                isinstance(above.ctx, ast.Store) or above.attr in ("CopyFrom", "MergeFrom", "list")
            )
            handed = isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id == "setattr"
            return not (kept or given or handed)
        return False

    def list_changes(self, due: DueStep) -> list[Change]:
        """Return what makes a step. Raises StuckError."""
        node = self._find_node(due.setting)
        if due.step.action == "drop":
            return [self._take_out(node)]
        new_name, new_value = find_new_words(due)
        key, value = self._find_key_and_value(node, due.setting)
        changes = [self._rename(key, due.setting, new_name)] if new_name != due.setting.name else []
        field = _find_new_field(due)
        if field and isinstance(key, ast.Constant):
            changes.append(self._change_field(key, due.setting, field))
        return [*changes, self._rewrite(value, due.setting, new_value, bool(field))]

    def _find_node(self, one: FoundSetting) -> ast.AST:
        """Return the largest node below a statement that begins where a setting stands, or the statement itself."""
        found = self.at.get((one.line, self.places.count_bytes(one.line, one.column)), ())
        nodes = [node for node in found if not isinstance(node, ast.stmt)] or list(found)
        if not nodes:
            raise StuckError("the place where it is written could not be found")
        return nodes[0]

    def _find_statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def _find_key_and_value(self, node: ast.AST, one: FoundSetting) -> tuple[ast.AST, ast.expr]:
        """Return what holds the name of a setting (a constant, keyword or attribute) and the expression of its value. Raises StuckError."""
        last = one.name.rpartition(".")[2]
        spellings = (one.name, one.name.encode(), last)
        if isinstance(node, ast.keyword) and node.arg == last:
            return node, node.value
        statement = self._find_statement(node)
        value = _find_assigned(statement, node)
        if value is not None and isinstance(node, ast.Attribute) and node.attr == last:
            return node, value
        here: ast.AST = node
        while True:
            keys = [inner for inner in _walk_header(here) if isinstance(inner, ast.Constant) and inner.value in spellings]
            if len(keys) == 1:
                return keys[0], value if value is not None else self._find_companion(keys[0], here)
            if keys or here is statement:
                raise StuckError("its name is not written out where it stands" if not keys else "its name stands there more than once")
            here = self.parents[here]

    def _find_companion(self, key: ast.Constant, region: ast.AST) -> ast.expr:
        """Return what stands with a name: the value in a table, the other one of a pair, or all that is given beside it."""
        parent = self.parents[key]
        if isinstance(parent, ast.Dict) and key in parent.keys:
            return parent.values[parent.keys.index(key)]
        if isinstance(parent, (ast.Tuple, ast.List)) and len(parent.elts) == 2:
            return parent.elts[1 - parent.elts.index(key)]
        if isinstance(region, ast.expr):
            return region
        raise StuckError("its value is not written out where it stands")

    def _rename(self, key: ast.AST, one: FoundSetting, name: str) -> Change:
        old, new = one.name.rpartition("."), name.rpartition(".")
        if isinstance(key, ast.Constant):
            self._check_carrier(key, one)
            whole = key.value in (one.name, one.name.encode())
            return self._write_text(key, one.name if whole else old[2], name if whole else new[2])
        self._check_carrier(key, one)
        if old[0] != new[0]:
            raise StuckError(f"it has its place in {new[0] or 'the options themselves'} by then")
        if isinstance(key, ast.keyword):
            start = self.places.find_byte(key.lineno, key.col_offset)
        else:
            assert isinstance(key, ast.Attribute)
            start = self.places.find_byte(key.end_lineno or 0, key.end_col_offset or 0) - len(old[2])
        if self.places.text[start : start + len(old[2])] != old[2]:
            raise StuckError("its name is written in an unusual way")
        return Change(start, start + len(old[2]), new[2])

    def _change_field(self, key: ast.Constant, one: FoundSetting, field: str) -> Change:
        """Return what makes ``.b`` of a parameter map ``.s``."""
        above = self.parents.get(self.parents[key])
        if not isinstance(above, ast.Attribute) or above.attr != one.field or above.attr not in _FIELDS:
            raise StuckError(f"the field it is stored in has to become .{field}")
        end = self.places.find_byte(above.end_lineno or 0, above.end_col_offset or 0)
        return Change(end - 1, end, field)

    def _rewrite(self, value: ast.expr, one: FoundSetting, new: Any, as_bytes: bool) -> Change:
        """Return what writes another value: where one literal gives it, there or in a name that nothing else uses. Raises StuckError."""
        old = one.value if one.written is None else one.written
        value = self._follow_name(value)
        found = [node for node in ast.walk(value) if isinstance(node, ast.Constant) and _is_literal_of(node.value, old)]
        if len(found) != 1:
            raise StuckError("its value is not written as one literal" if not found else "its value stands there more than once")
        [node] = found
        self._check_carrier(node, one)
        if isinstance(node.value, (str, bytes)):
            text = node.value if isinstance(node.value, str) else node.value.decode(errors="replace")
            return self._write_text(node, text, str(new))
        start, end = self._find_span(node)
        return Change(start, end, repr(str(new).encode() if as_bytes else new).replace("'", '"'))

    def _follow_name(self, value: ast.expr) -> ast.expr:
        """Return the expression that a name stands for which is given it once and used for nothing else."""
        names = [node for node in ast.walk(value) if isinstance(node, ast.Name) and isinstance(self.parents[node], (ast.Assign, ast.Call))]
        for uses in (self.names[name.id] for name in names if len(self.names[name.id]) == 2):
            givers = [self.parents[use] for use in uses if isinstance(use.ctx, ast.Store)]
            if len(givers) == 1 and isinstance(givers[0], ast.Assign) and isinstance(givers[0].value, ast.Constant):
                return givers[0].value
        return value

    def _check_carrier(self, node: ast.AST, one: FoundSetting) -> None:
        """Look whether anybody else can read a literal: by the name that it stands behind. Raises StuckError where that may be."""
        here = node
        while not isinstance(here, ast.stmt):
            if isinstance(here, ast.Call) and _name_function(here) in CLASSES:
                return  # the argument of a configuration is its own
            here = self.parents[here]
        function = self._find_function(here)
        if isinstance(here, ast.Return) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [function.name]
        else:
            targets = here.targets if isinstance(here, ast.Assign) else [here.target] if isinstance(here, ast.AnnAssign) else []
            flat = [part for target in targets for part in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])]
            start = (one.line, self.places.count_bytes(one.line, one.column))
            names = [target.id for target in flat if isinstance(target, ast.Name)]
            names += [t.attr for t in flat if isinstance(t, ast.Attribute) and (t.lineno, t.col_offset) != start]
        for name in names:
            known = (name, function or self.tree)
            if known not in self._checked:
                self._checked[known] = self._find_other_use(name, function, here)
            if self._checked[known]:
                raise StuckError(self._checked[known])

    def _find_function(self, node: ast.AST) -> ast.AST | None:
        while node is not self.tree and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            node = self.parents[node]
        return None if node is self.tree else node

    def _find_other_use(self, name: str, around: ast.AST | None, carrier: ast.stmt) -> str:
        """Return who else may read what a name stands for, empty where nobody can."""
        for use in self.names.get(name, ()):
            if isinstance(use.ctx, ast.Load) and not self._is_taken_whole(use) and self._find_statement(use) is not carrier:
                if isinstance(self.parents[use], (ast.Return, ast.Yield)):
                    return f"line {use.lineno} hands {name} on"
                if len(self.names[name]) > 2 or not isinstance(getattr(carrier, "value", None), (ast.Constant, ast.Call)):
                    return f"line {use.lineno} uses {name} for something else"
        local = isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)) and not isinstance(carrier, ast.Return)
        if local and not any(isinstance(one, (ast.Global, ast.Nonlocal)) and name in one.names for one in ast.walk(around or self.tree)):
            return ""
        if line := self._hidden_uses.get("", self._hidden_uses.get(name, 0)):
            return f"line {line} may read {name}, or lists it for others"
        reader = self._find_reader(name)
        return f"{reader} may read {name}, behind which it stands" if reader else ""

    def _is_taken_whole(self, use: ast.Name) -> bool:
        """Return whether a use takes a table as a whole: ``**name``, ``name.items()``, ``for … in name``."""
        parent = self.parents[use]
        if isinstance(parent, ast.keyword):
            return parent.arg is None
        return (isinstance(parent, ast.Attribute) and parent.attr == "items") or (isinstance(parent, ast.For) and parent.iter is use)

    def _write_text(self, node: ast.Constant, old: str, new: str) -> Change:
        start, end = self._find_span(node)
        match = _STRING.fullmatch(self.places.text[start:end])
        if match is None or match[3] != old:
            raise StuckError("it is not written as one plain literal")
        return Change(start + match.start(3), start + match.end(3), new)

    def _take_out(self, node: ast.AST) -> Change:
        """Return what takes a setting out: a statement that has its lines for itself, or an argument. Raises StuckError."""
        if isinstance(node, ast.keyword):
            return self._take_out_argument(node)
        statement = self._find_statement(node)
        simple = isinstance(statement, ast.Assign) and statement.targets == [node]
        block = self.blocks[statement]
        start, end = self._find_span(statement)
        after = self.places.find_next_line(max(start, end - 1))
        rest = self.places.text[end:after]
        comment = _COMMENT.match(rest)
        alone = self.places.is_line_start(start) and (comment is not None or not rest.strip())
        if not (simple and alone and len(block) > 1) or "#" in self.places.text[start:end]:
            raise StuckError("more than the setting would go with it")
        if comment is not None:  # it stays, on a line of its own
            return Change(start, end + comment.start(1), "")
        return Change(self.places.find_line_start(start), after, "")

    def _take_out_argument(self, keyword: ast.keyword) -> Change:
        call = self.parents[keyword]
        assert isinstance(call, ast.Call)
        given = sorted((self._find_span(one) for one in (*call.args, *call.keywords)), key=lambda span: span[0])
        start, end = self._find_span(keyword)
        place = given.index((start, end))
        first, last = (start, given[place + 1][0]) if place + 1 < len(given) else (given[place - 1][1], end) if place else (start, end)
        between = self.places.text[first:start] + self.places.text[end:last]
        if between.strip(" \t\r\n") in ("", ","):
            return Change(first, last, "")
        after = self.places.find_next_line(max(start, end - 1))
        rest = _END_OF_ARGUMENT.fullmatch(self.places.text, end, after)
        if rest is None or not self.places.is_line_start(start) or "#" in self.places.text[start:end]:
            raise StuckError("more than the setting would go with it")
        if rest[1]:  # the comment stays, on a line of its own
            return Change(start, rest.start(1), "")
        return Change(self.places.find_line_start(start), after, "")

    def _find_span(self, node: Any) -> tuple[int, int]:
        return self.places.find_byte(node.lineno, node.col_offset), self.places.find_byte(node.end_lineno, node.end_col_offset)


def _find_new_field(due: DueStep) -> str:
    """Return the field of a parameter map that the value moves to, empty where it stays where it is."""
    option = catalog.find_option(due.key)
    one = due.setting
    return option.field if one.surface == "session" and option is not None and option.field and one.field != option.field else ""


def _name_function(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


def _find_assigned(statement: ast.stmt, node: ast.AST) -> ast.expr | None:
    """Return what a statement assigns to a target, None where that is no target of it."""
    if isinstance(statement, ast.AnnAssign) and statement.target is node:
        return statement.value
    if not isinstance(statement, ast.Assign):
        return None
    for target in statement.targets:
        if target is node:
            return statement.value
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(statement.value, (ast.Tuple, ast.List)) and node in target.elts:
            return statement.value.elts[target.elts.index(node)]
    return None


def _walk_header(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of an expression, or those of a statement without the ones below it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [child for child in ast.iter_child_nodes(one) if not isinstance(child, ast.stmt)]


def _list_blocks(node: ast.AST) -> list[list[ast.stmt]]:
    return [part for name in ("body", "orelse", "finalbody") if isinstance(part := getattr(node, name, None), list)]


def _is_literal_of(written: Any, value: Any) -> bool:
    if isinstance(written, bytes):
        written = written.decode(errors="replace")
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return type(written) is type(value) and bool(written == value)
