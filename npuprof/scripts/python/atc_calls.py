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
from npuprof.scripts.shell_lexer import Part, Word, parse_shell_commands

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
#: Programs that run the next word.
_BEFORE = frozenset(("sudo", "nohup", "time", "exec", "env"))
#: The maximum length of a chain of names.
_DEEPEST = 4


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    if name_callee(call) not in RUNNERS or not call.args:
        return
    arguments = _list_arguments(visitor, call.args[0], scope)
    if arguments:
        site = visitor.new_site(scope, "atc", "atc", call)
        for setting in read_flags(visitor.module.path, arguments, site):
            visitor.add_read(setting)
        return
    # a helper's own scan reports its lines
    if arguments is None and visitor.module is visitor.main and _names_atc(call.args[0], scope, 0):
        what = f"atc is run here in a way that is not followed: {format_expression(call)}"
        visitor.main.script.add_script_problem(
            what, "Its flags are not checked.", "", *visitor.locate(call), severity="info"
        )


def _list_arguments(visitor: Visitor, node: ast.expr, scope: Scope) -> list[Word] | None:
    """Return the arguments of ``atc`` in a call, each with its location.

    Empty for other programs, None if unknown.
    """
    written, home = follow_name(node, scope)
    if isinstance(written, (ast.List, ast.Tuple)) and written.elts:
        program, *arguments = [build_argument(visitor, item, home) for item in written.elts]
        if _ATC.fullmatch(program.text):
            return arguments
        return None if program.open_part else []
    text, reason = visitor.evaluate_expression(node, scope)
    if isinstance(text, str):
        for command in parse_shell_commands(text):
            words = list(dropwhile(lambda word: word.text in _BEFORE, command))
            if words and _ATC.fullmatch(words[0].text):
                return [word.with_position(*visitor.locate(node)) for word in words[1:]]
    return None if reason else []


def build_argument(visitor: Visitor, item: ast.expr, scope: Scope) -> Word:
    """Return an element of a command line as a word, with what is known of it."""
    parts: list[Part] = []
    text = ""
    pieces = [item]
    while pieces:
        piece = pieces.pop()
        value, reason = visitor.evaluate_expression(piece, scope)
        match piece:
            case _ if not reason:
                text += str(value)
            case ast.BinOp(left, ast.Add(), right):
                pieces += right, left
            case ast.JoinedStr(values):
                pieces += reversed(values)
            case ast.FormattedValue(inner, -1, None):
                pieces.append(inner)
            case _:
                parts += text, (format_expression(piece),)
                text = ""
    return Word(*visitor.locate(item), tuple(filter(None, (*parts, text))) or ("",), quoted=True)


def _names_atc(node: ast.AST, scope: Scope, depth: int) -> bool:
    """Return whether an expression contains a text that begins with ``atc``.

    Names in it stand for their values.
    """
    for part in list_nodes(node):
        match part:
            case ast.Constant(str(text)):
                first_word, *_ = text.split() or [""]
                if _ATC.fullmatch(first_word):
                    return True
            case ast.Name(name) if depth < _DEEPEST:
                home, bindings = scope.resolve_name(name) or (scope, [])
                values = [
                    binding.node for binding in bindings if binding.kind in ("assign", "change")
                ]
                if any(_names_atc(value, home, depth + 1) for value in values):
                    return True
    return False


#: Reads calls of ``atc``.
SURFACE = Surface(("atc ", 'atc"', "atc'"), _read_call)
