"""What the parameters of a function stand for in one call of it."""

from __future__ import annotations

import ast

from npuprof.scripts.python.loops import Given, list_written_pairs
from npuprof.scripts.python.scopes import Function, Scope


def collect_parameter_defaults(function: Function) -> dict[str, ast.expr]:
    """Return the defaults of parameters, by their names."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    found = {arg.arg: value for arg, value in zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)}
    return found | {arg.arg: value for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is not None}


def bind_call_arguments(function: Function, inside: Scope, call: ast.Call, where: Scope) -> dict[str, Given] | None:
    """Return what each parameter of a function is given by a call, with the scope to read it in; None where stars hide it."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        names = names[1:]
    named: dict[str, Given] = {name: (value, home) for name, _, value, home in list_keywords(call, where)}
    if "" in named or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    bound: dict[str, Given] = {name: (value, inside.outer or inside) for name, value in collect_parameter_defaults(function).items()}
    bound |= {name: (value, where) for name, value in zip(names, call.args, strict=False)}
    bound |= named
    return {name: given for name, given in bound.items() if inside.list_binding_kinds(name) == {"parameter"}}


def list_keywords(call: ast.Call, scope: Scope) -> list[tuple[str, ast.keyword, ast.expr, Scope]]:
    """Return what a call gives by name: the name, the keyword, the value and the scope to read it in.

    A table behind two stars gives several; without a name what is not written out.
    """
    found: list[tuple[str, ast.keyword, ast.expr, Scope]] = []
    for keyword in call.keywords:
        pairs, where = list_written_pairs(keyword.value, scope) if keyword.arg is None else (None, scope)
        if pairs is None:
            found.append((keyword.arg or "", keyword, keyword.value, scope))
        for key, value in pairs or ():
            found.append((str(key.value) if isinstance(key, ast.Constant) else "", keyword, value, where))
    return found
