"""Calls of ``atc`` from Python: ``subprocess.run(["atc", ...])`` and ``os.system("atc ...")``."""

from __future__ import annotations

import ast
import re
from itertools import dropwhile

from npuprof.scripts.atc_flags import read_flags
from npuprof.scripts.python.expressions import format_expression, list_nodes, name_callee
from npuprof.scripts.python.loops import follow_name
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.shell_lexer import Word, parse_shell_commands

_ATC = re.compile(r"(?:[^\s;&|]*/)?atc")
RUNNERS = frozenset(
    (
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "system",
        "popen",
        "getoutput",
        "getstatusoutput",
    )
)
_BEFORE = frozenset(("sudo", "nohup", "time", "exec", "env"))
#: The maximum length of a chain of names.
_DEEPEST = 4


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    if name_callee(call) not in RUNNERS or not call.args:
        return
    words = _list_words(visitor, call.args[0], scope)
    if words:
        for setting in read_flags(
            visitor.module.path, words, visitor.new_site(scope, "atc", "atc", call)
        ):
            visitor.add_read(setting)
    elif words is None and visitor.module is visitor.main and _names_atc(call.args[0], scope, 0):
        what = f"atc is run here in a way that is not followed: {format_expression(call)}"
        visitor.main.script.add_script_problem(
            what, "Its flags are not checked.", "", *visitor.place(call), severity="info"
        )


def _list_words(visitor: Visitor, node: ast.expr, scope: Scope) -> list[Word] | None:
    """Return the arguments of ``atc`` in a call, each with its place.

    Empty for other programs, None if unknown.
    """
    written, where = follow_name(node, scope)
    items = written.elts if isinstance(written, (ast.List, ast.Tuple)) else []
    if items:
        words = [_make_word(visitor, item, where) for item in items]
        return (
            words[1:] if _ATC.fullmatch(words[0].text) else [] if not words[0].open_part else None
        )
    text, reason = visitor.evaluate_expression(node, scope)
    line, column = visitor.place(node)
    for command in parse_shell_commands(text) if isinstance(text, str) else ():
        words = list(dropwhile(lambda word: word.text in _BEFORE, command))
        if words and _ATC.fullmatch(words[0].text):
            return [word.with_position(line, column) for word in words[1:]]
    return None if reason else []


def _make_word(visitor: Visitor, item: ast.expr, scope: Scope) -> Word:
    """Return an element as a word.

    Of an f-string such as ``f"--output={name}"``, the literal start is known.
    """
    value, reason = visitor.evaluate_expression(item, scope)
    if not reason:
        return Word(*visitor.place(item), (str(value),), quoted=True)
    first: ast.expr = item
    while isinstance(first, (ast.BinOp, ast.JoinedStr)):
        first = first.left if isinstance(first, ast.BinOp) else first.values[0]
    begin = (
        first.value
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and first is not item
        else ""
    )
    return Word(
        *visitor.place(item),
        tuple(part for part in (begin, (format_expression(item),)) if part),
        quoted=True,
    )


def _names_atc(node: ast.AST, scope: Scope, depth: int) -> bool:
    """Return whether an expression, or the values of its names, contain a text that begins with
    ``atc``.
    """
    for part in list_nodes(node):
        if (
            isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and _ATC.fullmatch((part.value.split() or [""])[0])
        ):
            return True
        resolved = (
            scope.resolve_name(part.id) if isinstance(part, ast.Name) and depth < _DEEPEST else None
        )
        if resolved and any(
            one.kind in ("assign", "change") and _names_atc(one.node, resolved[0], depth + 1)
            for one in resolved[1]
        ):
            return True
    return False


#: Reads calls of ``atc``.
SURFACE = Surface(("atc ", 'atc"', "atc'"), _read_call)
