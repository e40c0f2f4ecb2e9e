"""Assignments to a parameter map, or to the options of TF 2, that a block can stand for: all of one configuration, or none."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from npuprof.scripts.draft import Draft
from npuprof.scripts.reading.found import FoundSetting, Site
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.surfaces.session import BARE_MAP
from npuprof.scripts.reading.values.scopes import Scope, statement_blocks
from npuprof.scripts.reading.values.terms import name_callee, write_source
from npuprof.scripts.replacing.cuts import Edit, Lines, Stand, build_refusal
from npuprof.scripts.replacing.statements import (
    HOMES,
    Standing,
    Statements,
    fills_map_only,
    find_obstacle,
    find_root,
    opens_device,
    sets_only_options,
)


class PythonFile:
    """A Python file that lines are to be taken out of."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.lines = Lines(data)
        self.script = Script(path, data)
        assert self.script.tree is not None, "settings were found in it"
        self.statements = Statements(self.script.tree)
        if data.count(b"\r") != data.count(b"\r\n"):
            raise build_refusal(path, "lines of the script end in a lone carriage return", "Editors count its lines differently.")
        self._comments: dict[int, list[bytes]] | None = None

    def knows_name(self, name: str, line: int, is_used: bool) -> bool:
        """Return whether a name is an imported one at a line; ``is_used`` where lines that go use it, which a star import may bring."""
        scope = Scope(self.statements.tree)
        nodes: list[ast.stmt] = self.statements.tree.body
        while inner := next((node for node in nodes if isinstance(node, HOMES) and node.lineno < line <= (node.end_lineno or 0)), None):
            scope, nodes = Scope(inner, scope), [one.node for one in self.statements.all if one.home is inner]
        found = scope.resolve_name(name)
        if found is None:
            return is_used and re.search(r"^[ \t]*from\b.*\bimport[ \t]*\*", self.script.text, re.MULTILINE) is not None
        home, bindings = found
        before = home.node is not scope.node or any(binding.node.lineno < line for binding in bindings)  # type: ignore[attr-defined]
        return {binding.kind for binding in bindings} == {"import"} and before

    def find_unit(self, one: FoundSetting) -> Standing:
        """Return the statement that makes a setting. Raises NpuprofError where no statement of its own does."""
        found = self.statements.find_simple(one.line)
        if len(found) != 1:
            why = "Several statements share the line." if found else "It stands in the head of another statement."
            raise self.refuse(one, why)
        unit = found[0]
        names = {inner.id for inner in ast.walk(unit.node) if isinstance(inner, ast.Name)}
        for loop in unit.loops:  # the outermost whose turns the statement tells apart
            if names & {inner.id for inner in ast.walk(loop.target) if isinstance(inner, ast.Name)}:
                return next(standing for standing in self.statements.all if standing.node is loop)
        return unit

    def refuse(self, one: FoundSetting, why: str) -> Exception:
        """Return the error for a setting whose line cannot be taken out."""
        return build_refusal(self.path, f"the line that sets {one.name or 'a computed key'} cannot be taken out", why, one.line)

    def check_unit(self, unit: Standing, settings: list[FoundSetting]) -> None:
        """Raise NpuprofError where a statement does more than set options, or does not have its lines for itself."""
        one, node = settings[0], unit.node
        if isinstance(node, ast.For):
            self._check_loop(unit, node, settings)
        elif not sets_only_options(node, settings) and not self._calls_filler(node):
            raise self.refuse(one, "The statement does more than set options.")
        self.check_lines(unit, one)

    def check_lines(self, unit: Standing, one: FoundSetting) -> None:
        """Raise NpuprofError where a statement does not have its lines for itself."""
        node = unit.node
        if not self._begins_line(node):
            raise self.refuse(one, "Other code stands before it in its line.")
        around = {id(inner) for inner in ast.walk(node)}
        for line in {node.lineno, node.end_lineno or node.lineno}:
            if any(id(other.node) not in around for other in self.statements.find_simple(line)):
                raise self.refuse(one, "Several statements share the line.")

    def check_head(self, unit: Standing, line: int) -> None:
        """Raise NpuprofError where a block cannot go before a statement."""
        if not self._begins_line(unit.node) or len(self.statements.find_simple(unit.node.lineno)) > 1:
            raise build_refusal(self.path, "no block can go before the statement", "Other code shares its line.", line)

    def _begins_line(self, node: ast.stmt) -> bool:
        indent = self.lines.find_indent(node.lineno)
        return node.col_offset in (len(indent), len(indent.expandtabs(8)))

    def _check_loop(self, unit: Standing, node: ast.For, settings: list[FoundSetting]) -> None:
        one = settings[0]
        inside = [inner for body in statement_blocks(node) for inner in body]
        named = {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
        if node.orelse or not all(sets_only_options(inner, [found for found in settings if _spans(inner, found)]) for inner in inside):
            raise self.refuse(one, "The loop around it does more than set options.")
        around = unit.home or self.statements.tree
        loop = {id(inner) for inner in ast.walk(node)}
        if any(isinstance(inner, ast.Name) and inner.id in named and id(inner) not in loop for inner in ast.walk(around)):
            raise self.refuse(one, "The variable of the loop around it is used elsewhere.")

    def _calls_filler(self, node: ast.stmt) -> bool:
        """Return whether a statement is a call of a function of the file that fills a parameter map and does no more."""
        call = node.value if isinstance(node, ast.Expr) else None
        function = (
            self.statements.find_function(name_callee(call)) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        )
        return function is not None and fills_map_only(function)

    def build_cut(self, unit: Standing) -> Edit:
        """Return the edit that takes a statement out and leaves its comments."""
        first, last = unit.node.lineno, unit.node.end_lineno or unit.node.lineno
        return self.lines.build_cut(first, last, [comment for line in range(first, last + 1) for comment in self.find_comments(line)])

    def find_comments(self, line: int) -> list[bytes]:
        """Return the comments of a line, as they are written. Raises NpuprofError where they cannot be told."""
        if b"#" not in self.lines.lines[line - 1]:
            return []
        if self._comments is None:
            self._comments = {}
            try:
                encoding = "utf-8"
                for token in tokenize.tokenize(io.BytesIO(self.lines.data).readline):
                    encoding = token.string if token.type == tokenize.ENCODING else encoding
                    if token.type == tokenize.COMMENT:
                        raw = self.lines.lines[token.start[0] - 1].rstrip(b"\r")
                        comment = raw[raw.rindex(token.string.encode(encoding)) :]
                        self._comments.setdefault(token.start[0], []).append(comment)
            except (tokenize.TokenError, SyntaxError, ValueError, UnicodeError):
                raise build_refusal(
                    self.path, "a line to be taken out may hold a comment", "The comments cannot be told apart.", line
                ) from None
        return self._comments.get(line, [])


def _spans(node: ast.stmt, one: FoundSetting) -> bool:
    return node.lineno <= one.line <= (node.end_lineno or node.lineno)


def plan_assignments(file: PythonFile, draft: Draft, site: Site, surface: str) -> Stand:
    """Return the block for one configuration that is filled by assignments. Raises NpuprofError where that cannot be proven right."""
    units: dict[int, tuple[Standing, list[FoundSetting]]] = {}
    for one in draft.carried:
        unit = file.find_unit(one)
        units.setdefault(id(unit.node), (unit, []))[1].append(one)
    for note in (note for note in draft.notes if not note.overruled):
        for unit, settings in units.values():
            if _spans(unit.node, note.found) and file.find_unit(note.found).node is unit.node:
                raise file.refuse(settings[0], f"The statement sets {note.found.name or 'a computed key'} too, which is not in the preset.")
    ordered = sorted(units.values(), key=lambda row: (row[0].node.lineno, row[0].node.col_offset))
    for unit, settings in ordered:
        file.check_unit(unit, settings)
    first, last = ordered[0][0], ordered[-1][0]
    _check_places(file, first, [row[0] for row in ordered], draft)
    onto = site.variable if surface == "session" else _find_options(file, first, ordered[0][1][0])
    if " " in onto or onto in ("", BARE_MAP) or "..." in onto:
        raise file.refuse(ordered[0][1][0], "What it is set on has no name that a block could use.")
    roots = {find_root(onto), *file.statements.list_entry_owners()} if surface == "session" else {"global_options"}
    cut = {id(inner) for row in ordered for inner in ast.walk(row[0].node)}
    for between in file.statements.list_between(first, last.node):
        if id(between.node) in cut:
            continue
        why = find_obstacle(between, roots, file.statements, file.statements.is_caught(first))
        if not why and surface != "session" and opens_device(between.node):
            why = "it may open the device"
        if why:
            what = f"the lines of {onto} cannot become one block"
            raise build_refusal(file.path, what, f"Line {between.node.lineno} stands between them: {why}.", between.node.lineno)
    line = first.node.lineno
    facts = {"target": "session" if surface == "session" else "global-options", "onto": onto}
    edits = tuple(file.build_cut(row[0]) for row in ordered)
    return Stand(file.lines.starts[line - 1], file.lines.find_indent(line), facts, edits, list_left(draft))


def _check_places(file: PythonFile, first: Standing, units: list[Standing], draft: Draft) -> None:
    """Raise NpuprofError where statements do not always run together, or leave nothing behind in their place."""
    gone: dict[tuple[int, str], int] = {}
    for unit in units:
        gone[unit.suite] = gone.get(unit.suite, 0) + 1
        if unit.home is not first.home or unit.control != first.control:
            one = next(found for found in draft.carried if _spans(unit.node, found))
            raise file.refuse(one, f"It does not always run together with line {first.node.lineno}.")
    for suite, count in gone.items():
        if count == file.statements.sizes[suite] and suite != first.suite:
            one = next(found for unit in units if unit.suite == suite for found in draft.carried if _spans(unit.node, found))
            raise file.refuse(one, "Nothing would be left in its place, and Python wants something there.")


def _find_options(file: PythonFile, unit: Standing, one: FoundSetting) -> str:
    """Return the expression that the options of TF 2 have at a statement."""
    node = unit.node
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    for _ in range(one.name.count(".") + 1):
        target = target.value if isinstance(target, ast.Attribute) else None
    if target is not None and not isinstance(target, ast.Tuple):
        return write_source(target)
    for call in ast.walk(file.statements.tree):
        if isinstance(call, ast.Call) and name_callee(call) == "global_options":
            return write_source(call)
    return ""


def list_left(draft: Draft) -> tuple[str, ...]:
    """Return a remark on each hand-written line that stays, with the reason."""
    left = (note for note in draft.notes if not note.overruled)
    return tuple(f"{note.found.file_line}: {note.found.key or 'a computed key'} stays as it is: {note.why}" for note in left)
