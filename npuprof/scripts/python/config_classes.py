"""The adapter's configuration classes: their arguments, and their names in a script."""

from __future__ import annotations

import ast
from functools import cache

from npuprof import catalog
from npuprof.scripts.python.expressions import find_root, get_last_name, write_source
from npuprof.scripts.python.scopes import MOST_BINDINGS, Binding, Scope

CLASSES = catalog.load_config_classes()


@cache
def list_object_arguments() -> frozenset[str]:
    """Return the arguments that a preset cannot express: they take a Python object."""
    names = {"train_distribute", "eval_distribute"}
    for config_class in CLASSES.values():
        if config_class.argument:
            names.add(config_class.taken_as)
    for name in catalog.record_names("estimator"):
        record = catalog.find_argument(name)
        if record and record.kind == "object":
            names.add(name)
    return frozenset(names)


@cache
def list_class_arguments(cls: str) -> tuple[str, ...]:
    """Return the argument names of a class, in order."""
    config_class = CLASSES[cls]
    names = list(config_class.positional)
    spelled = catalog.options_by_spelling("run_config")
    prefix = f"{config_class.argument}." if config_class.argument else ""
    if not prefix:
        names += [name for name in spelled if "." not in name]
        names += [name for name in catalog.record_names("estimator") if "." not in name]
    elif not config_class.until:
        inner = [name.removeprefix(prefix) for name in spelled if name.startswith(prefix)]
        names += [name for name in inner if "." not in name]
    return tuple(dict.fromkeys(names))


def find_named_class(function: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the class named by an expression, by its own name or an alias in the script."""
    owner = find_root(function)
    if function is not owner and get_last_name(function) not in CLASSES:
        return ""
    home, bindings = scope, list[Binding]()
    if isinstance(owner, ast.Name):
        home, bindings = scope.resolve_name(owner.id) or (scope, [])
    nodes = [binding.node for binding in bindings[:MOST_BINDINGS]]
    # the limit also ends names that stand for each other
    if len(nodes) == 1 and function is owner and depth < 3:
        only = nodes[0]
        if isinstance(only, (ast.Name, ast.Attribute)):
            return find_named_class(only, home, depth + 1)
    # another library, or the script itself, may have a class of that name
    if not all(
        isinstance(node, (ast.Import, ast.ImportFrom)) and "npu" in write_source(node).lower()
        for node in nodes
    ):
        return ""
    name = get_last_name(function)
    if function is owner:
        name = _find_imported_name(name, nodes)
    return name if name in CLASSES else ""


def _find_imported_name(name: str, imports: list[ast.AST]) -> str:
    """Return the name of a class in the module that it is imported from."""
    for node in imports:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.asname == name:
                    return alias.name
    return name
