"""The adapter's configuration classes: their arguments, and their names in a script."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache

from npuprof import catalog
from npuprof.scripts.python.expressions import find_root, get_last_name, write_source
from npuprof.scripts.python.scopes import MOST_BINDINGS, Binding, Scope

CLASSES = catalog.load_config_classes()


@cache
def list_object_arguments() -> frozenset[str]:
    """Return the arguments that a preset cannot express: they take a Python object."""
    configs = (each.taken_as for each in CLASSES.values() if each.argument)
    objects = (
        name
        for name in catalog.record_names("estimator")
        if (record := catalog.find_argument(name)) and record.kind == "object"
    )
    return frozenset(("train_distribute", "eval_distribute", *configs, *objects))


@cache
def list_class_arguments(cls: str) -> tuple[str, ...]:
    """Return the argument names of a class, in order."""
    config_class = CLASSES[cls]
    spelled = catalog.options_by_spelling("run_config")
    prefix = f"{config_class.argument}."
    others: Iterable[str] = ()
    if not config_class.argument:
        others = (*spelled, *catalog.record_names("estimator"))
    elif not config_class.until:
        others = (name.removeprefix(prefix) for name in spelled if name.startswith(prefix))
    plain = (name for name in others if "." not in name)
    return tuple(dict.fromkeys((*config_class.positional, *plain)))


def find_named_class(function: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the class named by an expression, by its own name or an alias in the script."""
    owner, name = find_root(function), get_last_name(function)
    is_plain = function is owner
    if not (is_plain or name in CLASSES):
        return ""
    home, bindings = scope, list[Binding]()
    if isinstance(owner, ast.Name):
        home, bindings = scope.resolve_name(owner.id) or (scope, [])
    nodes = [binding.node for binding in bindings[:MOST_BINDINGS]]
    # the limit also ends names that stand for each other
    if (
        len(nodes) == 1
        and is_plain
        and depth < 3
        and isinstance(nodes[0], (ast.Name, ast.Attribute))
    ):
        return find_named_class(nodes[0], home, depth + 1)
    # another library, or the script itself, may have a class of that name
    if not all(
        isinstance(node, (ast.Import, ast.ImportFrom)) and "npu" in write_source(node).lower()
        for node in nodes
    ):
        return ""
    if is_plain:
        aliases = [alias for node in nodes for alias in node.names if alias.asname == name]
        name = next((alias.name for alias in aliases), name)
    return name if name in CLASSES else ""
