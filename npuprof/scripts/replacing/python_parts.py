"""Replaceable parts of a Python script: plain statements of one body, and keywords of one call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from operator import attrgetter

from npuprof.model import NpuprofError
from npuprof.scripts.preset_draft import Draft
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.statements import list_lines
from npuprof.scripts.replacing.edits import Cut, Edit, Lines, build_refusal, choose_free_name
from npuprof.scripts.script_records import ScriptSetting, Site

#: The body of a statement.
Body = list[ast.stmt]

#: Statements that may end the code; an import may fail.
_LEAVING = (
    ast.Return,
    ast.Raise,
    ast.Break,
    ast.Continue,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Import,
    ast.ImportFrom,
)
#: A line up to its comment, skipping quoted text.
_COMMENT = re.compile(rb"(?:[^'\"#]|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")*+(#.*)?")
#: Calls that neither open the device nor read a configuration, unless the script redefines the
#: name.
_QUIET = {
    "ConfigProto",
    "abspath",
    "add",
    "as_bytes",
    "as_str",
    "as_text",
    "basename",
    "bool",
    "debug",
    "dirname",
    "endswith",
    "exists",
    "format",
    "get",
    "getcwd",
    "getenv",
    "global_options",
    "info",
    "join",
    "lower",
    "makedirs",
    "mkdir",
    "print",
    "realpath",
    "repr",
    "rmtree",
    "set_verbosity",
    "split",
    "startswith",
    "str",
    "strip",
    "time",
    "upper",
    "warning",
}


class PythonFile:
    """A Python file from which lines are removed."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.lines = Lines(data)
        self.script = Script(path, data)
        assert self.script.tree is not None, "settings were found in it"
        self.tree = self.script.tree
        if data.count(b"\r") != data.count(b"\r\n"):
            raise build_refusal(
                path,
                "lines of the script end in a lone carriage return",
                "Editors count its lines differently.",
            )
        #: The simple statements of each line, with their bodies.
        self.by_line: dict[int, list[tuple[ast.stmt, Body]]] = {}
        for node in ast.walk(self.tree):
            for _, field in ast.iter_fields(node):
                if isinstance(field, list):
                    self._index_body(field)

    def _index_body(self, body: Body) -> None:
        """Record the simple statements of a body by their lines; other lists have none."""
        for node in body:
            if not isinstance(node, ast.stmt) or hasattr(node, "body") or hasattr(node, "cases"):
                continue
            for line in list_lines(node):
                self.by_line.setdefault(line, []).append((node, body))

    def build_refusal(self, setting: ScriptSetting, why: str) -> NpuprofError:
        """Return the error for a setting whose line cannot be removed."""
        what = f"the line that sets {setting.name or 'a computed key'} cannot be taken out"
        return build_refusal(self.path, what, why, setting.line)

    def find_statement(self, line: int) -> tuple[ast.stmt, Body] | None:
        """Return the only simple statement of a line, with its body."""
        if line not in self.by_line:
            return None
        node, body = self.by_line[line][0]
        for number in (line, node.lineno, node.end_lineno or node.lineno):
            if len(self.by_line[number]) > 1:
                return None
        indent = self.lines.find_indent(node.lineno)
        # else it follows the colon of a compound statement
        # the tree of a Python 2 script has expanded tabs
        is_first = node.col_offset in (len(indent), len(indent.expandtabs(8)))
        return (node, body) if is_first else None

    def find_column(self, node: ast.expr | ast.keyword) -> int:
        """Return the column of an expression in the form of settings."""
        return self.script.column(node.lineno, node.col_offset)

    def iterate_comments(self, first: int, last: int) -> Iterator[bytes]:
        """Yield the comments of lines, unchanged. Raises NpuprofError if they are ambiguous."""
        for number, line in enumerate(self.lines.lines[first - 1 : last], first):
            match = _COMMENT.fullmatch(line.rstrip(b"\r"))
            if match is None and b"#" in line:
                raise build_refusal(
                    self.path,
                    "a line to be removed may contain a comment",
                    "The comments are ambiguous.",
                    number,
                )
            if match and match[1]:
                yield match[1]


def plan_assignments(file: PythonFile, draft: Draft, surface: str) -> Cut:
    """Return the replacement of a configuration set by assignments.

    Raises NpuprofError (NP830) unless they are plain statements of one body, or if a statement
    between them may see a difference.
    """
    setting, *_ = settings = sorted(draft.carried, key=attrgetter("line"))
    cut, body = _find_assignments(file, settings)
    first, last = cut[0], cut[-1]
    onto = ast.unparse(first.targets[0]).rpartition(
        ".parameter_map[" if surface == "session" else f".{setting.name}"
    )[0]
    if not re.fullmatch(r"[\w.()[\]'\"-]+", onto) or "..." in onto:
        raise file.build_refusal(
            setting, "The object it is set on has no name that a block could use."
        )
    own = onto.partition(".")[0].partition("[")[0]
    for node in body[body.index(first) : body.index(last)]:
        if node not in cut and (why := _find_obstacle(file, node, own)):
            why = f"Line {node.lineno} is between them: {why}."
            raise build_refusal(
                file.path, f"the lines of {onto} cannot become one block", why, node.lineno
            )
    facts = {"target": "session" if surface == "session" else "global-options", "onto": onto}
    spans = [(node.lineno, node.end_lineno or node.lineno) for node in cut]
    edits = (
        file.lines.build_cut(start, end, file.iterate_comments(start, end)) for start, end in spans
    )
    return file.lines.place_cut(first.lineno, facts, edits)


def _find_assignments(
    file: PythonFile, settings: list[ScriptSetting]
) -> tuple[list[ast.Assign], Body]:
    """Return the assignments of settings, and their body. Raises NpuprofError."""
    found = []
    first: Body = []
    for setting in settings:
        node, body = file.find_statement(setting.line) or (None, [])
        first = first or body
        if (
            not isinstance(node, ast.Assign)
            or len(node.targets) != 1
            or not isinstance(node.targets[0], ast.Attribute)
            or node in found
        ):
            raise file.build_refusal(
                setting, "It is not a plain assignment of one option on a separate line."
            )
        if body is not first:
            raise file.build_refusal(
                setting, f"It does not always run together with line {settings[0].line}."
            )
        found.append(node)
    return found, first


def _find_obstacle(file: PythonFile, node: ast.stmt, own: str) -> str:
    """Return why lines cannot move past a remaining statement, empty if they can.

    They modify ``own``.
    """
    parts = list(ast.walk(node))
    if any(isinstance(part, _LEAVING) for part in parts):
        return "the code may end before the lines further down"
    defined = {
        part.name
        for part in ast.walk(file.tree)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    calls = [ast.unparse(part.func) for part in parts if isinstance(part, ast.Call)]
    functions = {call.rpartition(".")[2] for call in calls}
    if loud := functions - (_QUIET - defined):
        return f"it calls {min(loud)}()"
    changed = {own}  # names of the object, and of those that contain it
    for part in ast.walk(file.tree):
        if isinstance(part, ast.Attribute) and part.attr == "custom_optimizers":
            changed.update(name.id for name in ast.walk(part.value) if isinstance(name, ast.Name))
    stored = {
        id(part)
        for target in parts
        if isinstance(getattr(target, "ctx", None), ast.Store)
        for part in ast.walk(target)
    }
    for part in parts:
        if isinstance(part, ast.Name) and part.id in changed and id(part) not in stored:
            return "it uses the object that the lines change"
    return ""


def plan_arguments(file: PythonFile, draft: Draft, site: Site) -> Cut:
    """Return the replacement of one NPURunConfig's arguments by a table that the block creates.

    Raises NpuprofError (NP830) unless they are literal arguments of the call, and the call is part
    of a statement with its own lines.
    """
    statement, _ = file.find_statement(site.line) or (None, None)
    call = None if statement is None else _find_call(file, statement, site)
    if statement is None or call is None:
        what = "no block can go before the call of NPURunConfig"
        raise build_refusal(file.path, what, "Other code shares its line.", site.line)
    replaced = _find_arguments(file, draft, call)
    table = choose_free_name("npu_arguments", file.script.text)
    facts = {"target": "estimator", "onto": table}
    edits = _cut_arguments(file, call, replaced, f"**{table}".encode())
    return file.lines.place_cut(statement.lineno, facts, edits)


def _find_call(file: PythonFile, statement: ast.stmt, site: Site) -> ast.Call | None:
    """Return the call of a statement that creates an object."""
    position = site.line, site.column
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and (node.lineno, file.find_column(node)) == position:
            return node
    return None


def _find_arguments(file: PythonFile, draft: Draft, call: ast.Call) -> list[ast.keyword]:
    """Return the keywords of a call that are settings.

    Raises NpuprofError if a setting comes from elsewhere.
    """
    missing = {(setting.line, setting.column): setting for setting in draft.carried}
    replaced = []
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        parts = (part for part in ast.walk(keyword) if isinstance(part, (ast.keyword, ast.expr)))
        positions = missing.keys() & {(part.lineno, file.find_column(part)) for part in parts}
        if positions:
            replaced.append(keyword)
            for position in positions:
                del missing[position]
    for setting in missing.values():
        why = "It is given by position, made elsewhere, or given to others as well."
        raise file.build_refusal(setting, why)
    return replaced


def _cut_arguments(
    file: PythonFile, call: ast.Call, replaced: list[ast.keyword], table: bytes
) -> Iterator[Edit]:
    """Yield the edits that remove arguments and insert the table in place of the last one.

    Comments stay.
    """
    lines = file.lines
    if file.script.text.encode() not in lines.data:
        what = "the arguments of NPURunConfig cannot be taken out"
        why = "Its columns are not certain."
        raise build_refusal(file.path, what, why, call.lineno, "save it as UTF-8")
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    starts = sorted((argument.lineno, argument.col_offset) for argument in arguments)
    for keyword in replaced:
        begin = keyword.lineno, keyword.col_offset
        last = keyword is replaced[-1]
        if last:
            to = keyword.end_lineno or 0, keyword.end_col_offset or 0
        else:  # with the comma
            to = starts[starts.index(begin) + 1]
        start, end = lines.find_offset(*begin), lines.find_offset(*to)
        comments = [
            comment
            for comment in file.iterate_comments(keyword.lineno, to[0])
            if comment in lines.data[start:end]
        ]
        indent = lines.find_indent(keyword.lineno) + b"    " * (keyword.lineno == call.lineno)
        text = b"".join(lines.end_line(keyword.lineno, comment) + indent for comment in comments)
        yield Edit(start, end, text + (table if last else b""))
