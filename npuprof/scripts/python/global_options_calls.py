"""TensorFlow 2: ``npu.global_options().name = value``, through aliases, attributes, parameters and
functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import cast

from npuprof import catalog
from npuprof.catalog.attribute_values import list_attribute_groups, read_attribute_value
from npuprof.scripts.python.builtin_calls import resolve_function_name
from npuprof.scripts.python.expressions import (
    format_expression,
    is_handed_on,
    name_callee,
    write_source,
)
from npuprof.scripts.python.returned_values import find_returned_value
from npuprof.scripts.python.run_config_calls import convert_option_value
from npuprof.scripts.python.scopes import Resolved, Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import UNSET, LocatedRecord, Site

#: The options of the process, as one configuration.
OWNER = "<process>:global_options"
#: A plain name assigned to the options.
_NAMED = re.compile(r"(?<![\w.])(\w+)[ \t]*=[ \t]*[\w.]*global_options\(\)")
#: The maximum length of a chain of names.
_DEEPEST = 10


class ReplacedGroup(LocatedRecord):
    """An option group that a script assigns as a whole: its place and path."""

    path: str


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    """``setattr(npu.global_options(), name, value)`` is not followed."""
    if (
        name_callee(call) == "setattr"
        and call.args
        and _find_path(visitor, call.args[0], scope) is not None
    ):
        _note_options(visitor, call)
        why = f"depends on {format_expression(call)}"
        visitor.add_setting(
            call, "global_options", "", "", reason=why, scope=OWNER, function=scope.name
        )


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    path = _find_path(visitor, target, scope) if isinstance(target, ast.Attribute) else None
    if not path or _find_path(visitor, value, scope) is not None:
        return
    if path in list_attribute_groups():
        visitor.add_record(ReplacedGroup(visitor.module.path, *visitor.place(target), path))
        return
    _note_options(visitor, target)
    option = catalog.options_by_spelling("global_options").get(path)
    given = visitor.read_value(
        value,
        scope,
        lambda got: (
            (None, UNSET)
            if got is None
            else convert_option_value(None, read_attribute_value(path, got))
        ),
    )
    visitor.add_setting(
        target, "global_options", option or path, path, given, scope=OWNER, function=scope.name
    )


def _note_options(visitor: Visitor, node: ast.expr) -> None:
    """Record the options of the process: they are all in the source unless other code
    has them too.
    """
    if OWNER in visitor.sites:
        return
    text = visitor.module.script.text
    names = dict.fromkeys(
        ("npu.global_options()", "npu_device.global_options()", *_NAMED.findall(text))
    )
    is_kept = _NAMED.sub("", text)  # an assignment to a plain name does not share them
    closed = not visitor.shares_options and not any(is_handed_on(name, is_kept) for name in names)
    visitor.sites[OWNER] = Site(
        OWNER, "global_options", *visitor.place(node), "global_options()", closed
    )


def _find_path(visitor: Visitor, node: ast.expr, scope: Scope, depth: int = 0) -> str | None:
    """Return the dotted path of an expression below the options, empty for the options themselves,
    None for others.
    """
    if depth > _DEEPEST:
        return None
    match node:
        case ast.NamedExpr(_, value):
            return _find_path(visitor, value, scope, depth)
        case ast.Attribute(owner, name) if (
            before := _find_path(visitor, owner, scope, depth + 1)
        ) is not None:
            return f"{before}.{name}" if before else name
        case ast.Name() | ast.Attribute():
            found = scope.resolve(node)
            return (
                _find_path_of_name(visitor, node, found, depth)
                if found
                else _find_path_anywhere(visitor, write_source(node), depth)
            )
        case ast.Call():
            if is_options_function(node, scope):
                return "" if not node.args and not node.keywords else None
            returned = find_returned_value(node, scope)
            return _find_path(visitor, *returned, depth + 1) if returned is not None else None
    return None


def _find_path_anywhere(visitor: Visitor, text: str, depth: int) -> str | None:
    """Return the path of an object attribute, or a name in an expression, from its single value in
    the file.
    """
    return _join_paths(
        _find_path(visitor, value, visitor.module.scope, depth + 1)
        for value in visitor.module.index.attributes.get(text, ())
    )


def _find_path_of_name(visitor: Visitor, node: ast.expr, found: Resolved, depth: int) -> str | None:
    """Return the path of a name: from a call's argument, or from all its values, including
    parameters without arguments.
    """
    home, bindings = found
    if not bindings:
        return _find_path(visitor, *home.bound[cast("ast.Name", node).id], depth + 1)
    given = [binding for binding in bindings if binding.kind != "parameter"]
    return _join_paths(
        _find_path(visitor, cast("ast.expr", one.node), home, depth + 1)
        if one.kind == "assign"
        else None
        for one in given
    )


def _join_paths(paths: Iterator[str | None]) -> str | None:
    """Return the path of all values, None if they differ; values after the first that is none of
    the options are not looked at: generated code assigns thousands.
    """
    joined = None
    for path in paths:
        if path is None or joined not in (None, path):
            return None
        joined = path
    return joined


def is_options_function(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call is one of ``global_options``, under its own or an imported name."""
    return (
        name_callee(call) == "global_options"
        or resolve_function_name(call.func, scope).rpartition(".")[2] == "global_options"
    )


#: Reads the options of TensorFlow 2.
SURFACE = Surface(("global_options",), _read_call, _read_assignment)
