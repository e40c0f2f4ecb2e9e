"""Lines and arguments of a Python script that a block can replace: plain statements of one body, and keywords of one call."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cached_property

from npuprof.model import NpuprofError
from npuprof.scripts.draft import Draft
from npuprof.scripts.reading.found import FoundSetting, Site
from npuprof.scripts.reading.source import Script
from npuprof.scripts.replacing.cuts import Cut, Edit, Lines, build_refusal

#: The body that a statement is in.
Body = list[ast.stmt]

_TABLE = "npu_arguments"
_HOMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)
#: Calls that neither open the device nor look at a configuration, unless the script defines a function of that name.
_QUIET = frozenset(
    (
        "ConfigProto", "abspath", "add", "as_bytes", "as_str", "as_text", "basename", "bool", "debug", "dirname", "endswith", "exists",
        "format", "get", "getcwd", "getenv", "global_options", "info", "join", "lower", "makedirs", "mkdir", "print", "realpath", "repr",
        "rmtree", "set_verbosity", "split", "startswith", "str", "strip", "time", "upper", "warning",
    )
)  # fmt: skip


class PythonFile:
    """A Python file that lines are to be taken out of."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.lines = Lines(data)
        self.script = Script(path, data)
        assert self.script.tree is not None, "settings were found in it"
        self.tree = self.script.tree
        if data.count(b"\r") != data.count(b"\r\n"):
            raise build_refusal(path, "lines of the script end in a lone carriage return", "Editors count its lines differently.")
        #: The simple statements of each line, with the body that they are in.
        self.by_line: dict[int, list[tuple[ast.stmt, Body]]] = {}
        for body in _list_bodies(self.tree):
            for node in (node for node in body if not hasattr(node, "body") and not hasattr(node, "cases")):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    self.by_line.setdefault(line, []).append((node, body))

    def refuse(self, setting: FoundSetting, why: str) -> NpuprofError:
        """Return the error for a setting whose line cannot be taken out."""
        return build_refusal(self.path, f"the line that sets {setting.name or 'a computed key'} cannot be taken out", why, setting.line)

    def find_statement(self, line: int) -> tuple[ast.stmt, Body] | None:
        """Return the simple statement that has a line for itself, with its body."""
        here = self.by_line.get(line, [])
        node = here[0][0] if here else None
        if node is None or any(len(self.by_line[number]) > 1 for number in (line, node.lineno, node.end_lineno or node.lineno)):
            return None
        indent = self.lines.find_indent(node.lineno)
        return here[0] if node.col_offset in (len(indent), len(indent.expandtabs(8))) else None

    def find_column(self, node: ast.expr | ast.keyword) -> int:
        """Return the column of an expression as settings have it."""
        return self.script.column(node.lineno, node.col_offset)

    def build_cut(self, node: ast.stmt) -> Edit:
        """Return the edit that takes a statement out and leaves its comments."""
        first, last = node.lineno, node.end_lineno or node.lineno
        return self.lines.build_cut(first, last, self.find_comments(first, last))

    def find_comments(self, first: int, last: int) -> list[bytes]:
        """Return the comments of lines, as they are written. Raises NpuprofError where they cannot be told apart."""
        if not any(b"#" in line for line in self.lines.lines[first - 1 : last]):
            return []
        try:
            return [comment for line in range(first, last + 1) for comment in self._comments.get(line, [])]
        except (tokenize.TokenError, SyntaxError, ValueError, UnicodeError):
            what = "a line to be taken out may hold a comment"
            raise build_refusal(self.path, what, "The comments cannot be told apart.", first) from None

    @cached_property
    def _comments(self) -> dict[int, list[bytes]]:
        found: dict[int, list[bytes]] = {}
        encoding = "utf-8"
        for token in tokenize.tokenize(io.BytesIO(self.lines.data).readline):
            encoding = token.string if token.type == tokenize.ENCODING else encoding
            if token.type == tokenize.COMMENT:
                raw = self.lines.lines[token.start[0] - 1].rstrip(b"\r")
                found.setdefault(token.start[0], []).append(raw[raw.rindex(token.string.encode(encoding)) :])
        return found


def _list_bodies(tree: ast.Module) -> Iterator[Body]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                yield body


def _list_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _list_targets(node: ast.AST) -> list[ast.expr]:
    """Return what an assignment gives values to; nothing for another statement."""
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []


def _name_callee(call: ast.Call) -> str:
    """Return the last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def plan_assignments(file: PythonFile, draft: Draft, site: Site, surface: str) -> Cut:
    """Return the block for one configuration that is set by assignments.

    Raises NpuprofError (NP830) where they are not plain statements of one body, or one that stays between them may see a difference.
    """
    setting, *_ = settings = sorted(draft.carried, key=lambda setting: setting.line)
    left = {note.found.line for note in draft.notes if not note.overruled}
    cut, body = _find_assignments(file, settings, left)
    first, last = cut[0], cut[-1]
    onto = _find_owner(first, body, site) if surface == "session" else ast.unparse(first.targets[0]).rpartition(f".{setting.name}")[0]
    if not re.fullmatch(r"[\w.()[\]'\"-]+", onto) or onto == "parameter_map" or "..." in onto:
        raise file.refuse(setting, "What it is set on has no name that a block could use.")
    own = {onto.partition(".")[0].partition("[")[0]}
    for node in body[body.index(first) : body.index(last)]:
        if node not in cut and (why := _find_obstacle(file, node, own, surface)):
            why = f"Line {node.lineno} stands between them: {why}."
            raise build_refusal(file.path, f"the lines of {onto} cannot become one block", why, node.lineno)
    facts = {"target": "session" if surface == "session" else "global-options", "onto": onto}
    edits = tuple(file.build_cut(node) for node in cut)
    return Cut(file.lines.starts[first.lineno - 1], file.lines.find_indent(first.lineno), facts, edits)


def _find_owner(statement: ast.Assign, body: Body, site: Site) -> str:
    """Return what the entry is called where a statement sets an option in it; the map itself where its name is not in sight there."""
    owner, in_map, _ = ast.unparse(statement.targets[0]).partition(".parameter_map[")
    if in_map:
        return owner
    return site.variable if any(f"{site.variable}." in ast.unparse(other) for other in body) else "parameter_map"


def _find_assignments(file: PythonFile, settings: list[FoundSetting], left: set[int]) -> tuple[list[ast.Assign], Body]:
    """Return the assignments that make settings, and their body. ``left`` are lines of settings that stay. Raises NpuprofError."""
    found: list[ast.Assign] = []
    first: Body = []
    for setting in settings:
        statement = file.find_statement(setting.line)
        if statement is None:
            shared = setting.line in file.by_line
            raise file.refuse(setting, "Several statements share the line." if shared else "It stands in the head of another statement.")
        node, body = statement
        first = first or body
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
            raise file.refuse(setting, "It is no plain assignment of one option.")
        if body is not first:
            raise file.refuse(setting, f"It does not always run together with line {settings[0].line}.")
        if node in found or setting.line in left:
            raise file.refuse(setting, "The statement sets several options.")
        found.append(node)
    return found, first


def _find_obstacle(file: PythonFile, node: ast.stmt, own: set[str], surface: str) -> str:
    """Return why lines cannot move over a statement that stays, empty where they can; ``own`` are the names they work on."""
    parts = list(ast.walk(node))
    if any(isinstance(part, _LEAVING) for part in parts):
        return "the code may end before the lines further down"
    defined = {part.name for part in ast.walk(file.tree) if isinstance(part, _HOMES)}
    loud = {_name_callee(part) for part in parts if isinstance(part, ast.Call)} - (_QUIET - defined)
    if loud:
        return f"it calls {min(loud)}()" if surface == "session" else "it may open the device"
    if any(isinstance(part, (ast.Import, ast.ImportFrom)) for part in parts):
        return "it may fail, and what was set before it would count"
    aliases = _find_aliases(file.tree, own)
    kept = {id(part) for statement in parts for target in _list_targets(statement) for part in ast.walk(target)}
    names = [part for part in parts if isinstance(part, ast.Name)]
    used = any(part.id in aliases and id(part) not in kept for part in names)
    given = any(part.id in own and not isinstance(part.ctx, ast.Load) for part in names)
    return "it uses what the lines work on" if used or given else ""


def _find_aliases(tree: ast.Module, own: set[str]) -> set[str]:
    """Return names, what optimizer entries are added to, and what is assigned something made of one of them."""
    chains = (node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "custom_optimizers")
    found = own.union(*map(_list_names, chains))
    given = [
        node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value and _list_names(node.value) & found
    ]
    return found.union(*(_list_names(target) for node in given for target in _list_targets(node)))


def plan_arguments(file: PythonFile, draft: Draft, site: Site) -> Cut:
    """Return the block for the arguments of one NPURunConfig, which takes them from a table that the block makes.

    Raises NpuprofError (NP830) where they are not written out in the call, or the call is no part of a statement with lines of its own.
    """
    statement, _ = file.find_statement(site.line) or (None, None)
    nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Call)) if statement else iter(())
    call = next((node for node in nodes if (node.lineno, file.find_column(node)) == (site.line, site.column)), None)
    if statement is None or call is None:
        raise build_refusal(file.path, "no block can go before the call of NPURunConfig", "Other code shares its line.", site.line)
    gone = _find_arguments(file, draft, call)
    table = _TABLE
    while re.search(rf"\b{table}\b", file.script.text):
        table += "_"
    line = statement.lineno
    facts = {"target": "estimator", "onto": table}
    edits = tuple(_cut_arguments(file, call, gone, f"**{table}".encode()))
    return Cut(file.lines.starts[line - 1], file.lines.find_indent(line), facts, edits)


def _find_arguments(file: PythonFile, draft: Draft, call: ast.Call) -> list[ast.keyword]:
    """Return the keywords of a call that make settings, and nothing else. Raises NpuprofError where a setting comes from elsewhere."""
    carried = {(setting.line, setting.column): setting for setting in draft.carried}
    left = {(note.found.line, note.found.column) for note in draft.notes if not note.overruled}
    gone: list[ast.keyword] = []
    for keyword in call.keywords:
        parts = (part for part in ast.walk(keyword) if isinstance(part, (ast.keyword, ast.expr)))
        places = {(part.lineno, file.find_column(part)) for part in parts}
        known = places & carried.keys()
        if known and (keyword.arg is None or places & left):
            raise file.refuse(carried[min(known)], f"The preset does not say all of {keyword.arg or 'the table it is in'}.")
        gone += [keyword] if known else []
        carried = {place: setting for place, setting in carried.items() if place not in known}
    for setting in carried.values():
        raise file.refuse(setting, "It is given by position, made elsewhere, or given to others as well.")
    return gone


def _cut_arguments(file: PythonFile, call: ast.Call, gone: list[ast.keyword], table: bytes) -> Iterator[Edit]:
    """Yield the edits that take arguments out of a call and put the table in place of the last of them; comments stay."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    given = sorted(arguments, key=lambda argument: (argument.lineno, argument.col_offset))
    for keyword, after in zip(given, [*given[1:], given[-1]], strict=True):
        if not isinstance(keyword, ast.keyword) or keyword not in gone:
            continue
        start, line = file.lines.find_offset(keyword.lineno, keyword.col_offset), after.lineno
        end = file.lines.find_offset(line, after.col_offset)
        if keyword is gone[-1]:
            line = keyword.end_lineno or keyword.lineno
            end = file.lines.find_offset(line, keyword.end_col_offset or 0)
        inside = file.lines.data[start:end]
        if not inside.startswith((keyword.arg or "").encode()) or file.script.text.encode() not in file.lines.data:
            why = "Its columns are not certain."
            raise build_refusal(file.path, "the arguments of NPURunConfig cannot be taken out", why, keyword.lineno, "save it as UTF-8")
        comments = [comment for comment in file.find_comments(keyword.lineno, line) if comment in inside]
        indent = file.lines.find_indent(keyword.lineno) + b"    " * (keyword.lineno == call.lineno)
        text = b"".join(file.lines.end_line(keyword.lineno, comment) + indent for comment in comments)
        yield Edit(start, end, text + (table if keyword is gone[-1] else b""))
