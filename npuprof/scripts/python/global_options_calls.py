"""TensorFlow 2: ``npu.global_options().name = value``.

The options are followed through aliases, attributes, parameters and functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, cast

from npuprof import catalog
from npuprof.catalog.attribute_values import list_attribute_groups, read_attribute_value
from npuprof.scripts.python.builtin_calls import resolve_function_name
from npuprof.scripts.python.expressions import (
    format_expression,
    is_passed_on,
    name_callee,
    write_source,
)
from npuprof.scripts.python.returned_values import find_returned_value
from npuprof.scripts.python.run_config_calls import convert_option_value
from npuprof.scripts.python.scopes import Resolved, Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import UNSET, Converted, LocatedRecord, Site
from npuprof.scripts.steps import count_steps

#: The options of the process, as one configuration.
OWNER = "<process>:global_options"
#: A plain name assigned to the options.
_NAMED = re.compile(r"(?<![\w.])(\w+)[ \t]*=[ \t]*[\w.]*global_options\(\)")
#: The maximum length of a chain of names.
_DEEPEST = 10


class ReplacedGroup(LocatedRecord):
    """An option group that a script assigns as a whole, by its path."""

    path: str


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    """``setattr(npu.global_options(), name, value)`` is not followed."""
    if name_callee(call) != "setattr" or not call.args:
        return
    if _find_path(visitor, call.args[0], scope) is not None:
        _note_options(visitor, call)
        why = f"depends on {format_expression(call)}"
        visitor.add_setting(
            call, "global_options", "", "", reason=why, scope=OWNER, function=scope.name
        )


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    path = _find_path(visitor, target, scope) if isinstance(target, ast.Attribute) else None
    # a second name for the options or one of their groups sets nothing
    if not path or _find_path(visitor, value, scope) is not None:
        return
    if path in list_attribute_groups():
        visitor.add_record(ReplacedGroup(visitor.module.path, *visitor.locate(target), path))
        return
    _note_options(visitor, target)
    option = catalog.options_by_spelling("global_options").get(path)

    def convert(got: Any) -> Converted:
        if got is None:
            return None, UNSET
        return convert_option_value(None, read_attribute_value(path, got))

    read = visitor.read_value(value, scope, convert)
    visitor.add_setting(
        target, "global_options", option or path, path, read, scope=OWNER, function=scope.name
    )


def _note_options(visitor: Visitor, node: ast.expr) -> None:
    """Record the options of the process.

    They are all in the source unless other code has them too.
    """
    if OWNER in visitor.sites:
        return
    text = visitor.module.script.text
    names = dict.fromkeys(
        ("npu.global_options()", "npu_device.global_options()", *_NAMED.findall(text))
    )
    other_code = _NAMED.sub("", text)  # an assignment to a plain name does not share them
    is_shared = visitor.shares_options or any(is_passed_on(name, other_code) for name in names)
    visitor.sites[OWNER] = Site(
        OWNER,
        "global_options",
        *visitor.locate(node),
        "global_options()",
        closed=not is_shared,
    )


def _find_path(visitor: Visitor, node: ast.expr, scope: Scope, depth: int = 0) -> str | None:
    """Return the dotted path of an expression below the options, None for others.

    Empty for the options themselves.
    """
    count_steps(2)
    # names may be defined by each other
    if depth > _DEEPEST:
        return None
    match node:
        case ast.NamedExpr(_, value):
            return _find_path(visitor, value, scope, depth)
        case ast.Call():
            if is_options_function(node, scope):
                return "" if not node.args and not node.keywords else None
            returned = find_returned_value(node, scope)
            return _find_path(visitor, *returned, depth + 1) if returned is not None else None
        case ast.Attribute(owner, name):
            outer_path = _find_path(visitor, owner, scope, depth + 1)
            if outer_path is not None:
                return f"{outer_path}.{name}" if outer_path else name
        case ast.Name():
            pass
        case _:
            return None
    resolved = scope.resolve(node)
    if resolved is not None:
        return _find_path_of_name(visitor, node, resolved, depth)
    # an object's attribute, or a name in an expression: its only value in the file decides
    values = visitor.module.index.attributes.get(write_source(node), ())
    return _join_paths(
        _find_path(visitor, value, visitor.module.scope, depth + 1) for value in values
    )


def _find_path_of_name(
    visitor: Visitor, node: ast.expr, resolved: Resolved, depth: int
) -> str | None:
    """Return the path of a name, from a call's argument or from all its values.

    Parameters without arguments have no value.
    """
    home, bindings = resolved
    if not bindings:
        value, caller_scope = home.bound[cast("ast.Name", node).id]
        return _find_path(visitor, value, caller_scope, depth + 1)
    given = [binding for binding in bindings if binding.kind != "parameter"]
    return _join_paths(
        _find_path(visitor, binding.node, home, depth + 1) if binding.kind == "assign" else None
        for binding in given
    )


def _join_paths(paths: Iterable[str | None]) -> str | None:
    """Return the path that all values have, None if they differ or one has none.

    Values after the first without a path are not read: generated code assigns thousands.
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
