"""The adapter's configuration classes: their arguments, and their names in a script."""

from __future__ import annotations

import ast
from functools import cache

from npuprof import catalog
from npuprof.scripts.python.expressions import find_root, get_last_name, write_source
from npuprof.scripts.python.scopes import MOST_BINDINGS, Scope

CLASSES = catalog.load_config_classes()


@cache
def list_object_arguments() -> frozenset[str]:
    """Return the arguments that a preset cannot express: they take a Python object."""
    taken = {config_class.taken_as for config_class in CLASSES.values() if config_class.argument}
    plain = {
        name
        for name in catalog.record_names("estimator")
        if (record := catalog.find_argument(name)) and record.kind == "object"
    }
    return frozenset({*taken, *plain, "train_distribute", "eval_distribute"})


@cache
def list_class_arguments(cls: str) -> tuple[str, ...]:
    """Return the argument names of a class, in order."""
    config_class = CLASSES[cls]
    spelled = catalog.options_by_spelling("run_config")
    prefix = f"{config_class.argument}." if config_class.argument else ""
    inner = [
        name.removeprefix(prefix)
        for name in spelled
        if name.startswith(prefix) and not (prefix and config_class.until)
    ]
    inner += catalog.record_names("estimator") if not prefix else ()
    return tuple(
        dict.fromkeys((*config_class.positional, *(name for name in inner if "." not in name)))
    )


def find_named_class(function: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the class named by an expression, by its own name or an alias in the script."""
    owner = find_root(function)
    if function is not owner and get_last_name(function) not in CLASSES:
        return ""
    resolved = scope.resolve_name(owner.id) if isinstance(owner, ast.Name) else None
    nodes = [binding.node for binding in resolved[1][:MOST_BINDINGS]] if resolved else []
    if (
        len(nodes) == 1
        and function is owner
        and isinstance(nodes[0], (ast.Name, ast.Attribute))
        and resolved
        and depth < 3
    ):
        return find_named_class(nodes[0], resolved[0], depth + 1)
    if any(
        not isinstance(node, (ast.Import, ast.ImportFrom))
        or "npu" not in write_source(node).lower()
        for node in nodes
    ):
        return ""
    name = get_last_name(function)
    aliases = (alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    imported = (
        next((alias.name for alias in aliases if alias.asname == name), name)
        if function is owner
        else name
    )
    return imported if imported in CLASSES else ""
