"""Arguments of an NPURunConfig that a block can stand for: the call takes them from a table that the block makes."""

from __future__ import annotations

import ast
import re

from npuprof.scripts.draft import Draft
from npuprof.scripts.reading.found import Site
from npuprof.scripts.reading.values.terms import name_callee
from npuprof.scripts.replacing.cuts import Edit, Stand, build_refusal
from npuprof.scripts.replacing.python import PythonFile, list_left
from npuprof.scripts.replacing.statements import Standing

_TABLE = "npu_arguments"
_COMMENT = re.compile(rb"#.*")
#: What may stand before a closing parenthesis, and that.
_CLOSING = re.compile(rb"(?:\s|\\\r?\n|#.*)*\)")


def plan_arguments(file: PythonFile, draft: Draft, site: Site) -> Stand:
    """Return the block for the arguments of one call. Raises NpuprofError (NP830) where that cannot be proven right."""
    call, statement = _find_call(file, site)
    try:
        file.lines.data.decode()
    except UnicodeDecodeError:
        why = "Its columns cannot be told for certain."
        raise build_refusal(file.path, "the script is not UTF-8", why, site.line, "save it as UTF-8") from None
    carried = {(one.line, one.column) for one in draft.carried}
    left = {(note.found.line, note.found.column): note.found for note in draft.notes if not note.overruled}
    gone: list[ast.keyword] = []
    cuts: list[Edit] = []
    for keyword in call.keywords:
        held = _find_held_call(file, keyword, statement)
        inside = [place for node in (keyword, held[1].node if held else None) if node is not None for place in _list_places(file, node)]
        known, unknown = [at for at in inside if at in carried], [at for at in inside if at in left]
        if not known:
            continue
        if unknown:
            one = left[unknown[0]]
            raise file.refuse(one, f"It stands in {keyword.arg or 'a table'} beside what the preset says.")
        if keyword.arg is None:
            one = next(found for found in draft.carried if (found.line, found.column) in known)
            raise file.refuse(one, "It comes from a table that is handed on with two stars.")
        gone.append(keyword)
        if held:
            file.check_lines(held[1], next(found for found in draft.carried if (found.line, found.column) in known))
            cuts.append(file.build_cut(held[1]))
        carried -= set(known)
    for one in draft.carried:
        if (one.line, one.column) in carried:
            raise file.refuse(one, "It is given by position, made elsewhere, or given to others as well.")
    table = _TABLE
    while re.search(rf"\b{table}\b", file.script.text):
        table += "_"
    line = statement.node.lineno
    edits = (*cuts, *_rewrite_call(file, call, gone, table))
    return Stand(file.lines.starts[line - 1], file.lines.find_indent(line), {"target": "estimator", "onto": table}, edits, list_left(draft))


def _find_call(file: PythonFile, site: Site) -> tuple[ast.Call, Standing]:
    for one in file.statements.find_simple(site.line):
        for node in ast.walk(one.node):
            if isinstance(node, ast.Call) and node.lineno == site.line and file.script.column(node.lineno, node.col_offset) == site.column:
                parts = [
                    inner
                    for inner in ast.walk(one.node)
                    if isinstance(inner, (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.IfExp, ast.BoolOp))
                ]
                if any(node is inner for part in parts for inner in ast.walk(part)):
                    raise build_refusal(
                        file.path, "the call of NPURunConfig does not always run", "It stands in a part of an expression.", site.line
                    )
                file.check_head(one, site.line)
                return node, one
    raise build_refusal(file.path, "the call of NPURunConfig stands in the head of another statement", "", site.line)


def _find_held_call(file: PythonFile, keyword: ast.keyword, statement: Standing) -> tuple[str, Standing] | None:
    """Return the one statement that makes the object of an argument, where a name that is used for nothing else holds it."""
    if not isinstance(keyword.value, ast.Name):
        return None
    name = keyword.value.id
    uses = [node for node in ast.walk(statement.home or file.statements.tree) if isinstance(node, ast.Name) and node.id == name]
    if len(uses) != 2:
        return None
    for one in file.statements.all:
        node = one.node
        alone = isinstance(node, ast.Assign) and len(node.targets) == 1 and any(node.targets[0] is use for use in uses)
        if alone and one.home is statement.home and one.control == statement.control and isinstance(node, ast.Assign):
            made = isinstance(node.value, ast.Call) and name_callee(node.value) not in ("dict",)
            return (name, one) if made else None
    return None


def _list_places(file: PythonFile, node: ast.AST) -> list[tuple[int, int]]:
    return [
        (inner.lineno, file.script.column(inner.lineno, inner.col_offset))
        for inner in ast.walk(node)
        if isinstance(inner, (ast.keyword, ast.expr))
    ]


def _rewrite_call(file: PythonFile, call: ast.Call, gone: list[ast.keyword], table: str) -> list[Edit]:
    """Return the edits that take arguments out of a call and hand the table on behind those that stay; comments stay where they were."""
    given: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=lambda one: (one.lineno, one.col_offset))
    data = file.lines.data
    spans = [_find_span(file, one) for one in given]
    last = len(given) - 1
    edits: list[Edit] = []
    handed = f"**{table}".encode()
    for number, one in enumerate(given):
        if one not in gone:
            continue
        start, end = spans[number]
        inside = _list_inner_comments(file, start, end)
        if number == last:
            edits.append(Edit(start, end, inside + handed))
            continue
        between = data[end : spans[number + 1][0]]
        comments = between[between.index(b",") + 1 :].lstrip(b" \t") if b"#" in between else b""
        if b"#" in between[: between.index(b",")]:
            raise build_refusal(file.path, "a comment stands before a comma", "It would be lost.", one.lineno)
        edits.append(Edit(start, spans[number + 1][0], inside + comments))
    if given[last] not in gone:
        start, end = spans[last]
        line = given[last].lineno
        own = line != call.lineno and not file.lines.lines[line - 1][: given[last].col_offset].strip()
        before = b"," + _end_line(file, line) + file.lines.find_indent(line) if own else b", "
        edits.append(Edit(end, end, before + handed))
    return edits


def _find_span(file: PythonFile, one: ast.expr | ast.keyword) -> tuple[int, int]:
    """Return the bytes of an argument, with the parentheses that stand around its value."""
    start = file.lines.find_offset(one.lineno, one.col_offset)
    if not isinstance(one, ast.keyword):
        return start, file.lines.find_offset(one.end_lineno or one.lineno, one.end_col_offset or 0)
    value = one.value
    end = file.lines.find_offset(value.end_lineno or value.lineno, value.end_col_offset or 0)
    before = file.lines.data[start : file.lines.find_offset(value.lineno, value.col_offset)]
    for _ in range(_COMMENT.sub(b"", before).count(b"(")):
        closing = _CLOSING.match(file.lines.data, end)
        assert closing is not None, "the file has been parsed"
        end = closing.end()
    return start, end


def _list_inner_comments(file: PythonFile, start: int, end: int) -> bytes:
    """Return the comments inside some bytes as lines of their own, with the blanks of the next line at the end."""
    first, last = file.lines.find_line(start), file.lines.find_line(end)
    found = [comment for line in range(first, last) for comment in file.find_comments(line)]
    indent = file.lines.find_indent(first)
    if file.lines.data[file.lines.starts[first - 1] : start].strip():
        indent += b"    "
    return b"".join(comment + _end_line(file, first) + indent for comment in found)


def _end_line(file: PythonFile, line: int) -> bytes:
    return b"\r\n" if file.lines.lines[line - 1].endswith(b"\r") else b"\n"
