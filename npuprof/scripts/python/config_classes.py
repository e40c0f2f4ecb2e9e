"""The classes of the adapter whose objects hold settings: what each takes, and which of them a script means."""

from __future__ import annotations

import ast
from functools import cache

from npuprof import catalog
from npuprof.scripts.python.scopes import MOST_BINDINGS, Scope
from npuprof.scripts.python.terms import find_root, write_source

CLASSES = catalog.load_config_classes()


@cache
def list_object_arguments() -> frozenset[str]:
    """Return the arguments that a preset cannot hold: they take an object that the script makes."""
    taken = {config_class.taken_as for config_class in CLASSES.values() if config_class.argument}
    plain = {name for name in catalog.record_names("estimator") if (record := catalog.find_argument(name)) and record.kind == "object"}
    return frozenset({*taken, *plain, "train_distribute", "eval_distribute"})


@cache
def list_class_arguments(cls: str) -> tuple[str, ...]:
    """Return the names of the arguments a class takes, in the order of its signature."""
    config_class = CLASSES[cls]
    spelled = catalog.options_by_spelling("run_config")
    prefix = f"{config_class.argument}." if config_class.argument else ""
    inner = [name.removeprefix(prefix) for name in spelled if name.startswith(prefix) and not (prefix and config_class.until)]
    inner += catalog.record_names("estimator") if not prefix else ()
    return tuple(dict.fromkeys((*config_class.positional, *(name for name in inner if "." not in name))))


def is_plain_heir(node: ast.ClassDef) -> bool:
    """Return whether objects of a class are made as those of its one base are."""
    own = any(isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and inner.name in ("__init__", "__new__") for inner in node.body)
    return len(node.bases) == 1 and not own and not node.decorator_list and not node.keywords


def find_named_class(function: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the class that an expression names, by its own name or another that it is given in the script."""
    name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    if name not in CLASSES:
        resolved = scope.resolve_name(name) if isinstance(function, ast.Name) and depth < 3 else None
        node = resolved[1][0].node if resolved and len(resolved[1]) == 1 else None
        if isinstance(node, ast.ImportFrom):
            name = resolved[1][0].name if resolved else name
            known = [alias.name for alias in node.names if (alias.asname or alias.name) == name and alias.name in CLASSES]
            return known[0] if known and "npu" in write_source(node).lower() else ""
        if isinstance(node, ast.ClassDef) and resolved and is_plain_heir(node):
            return find_named_class(node.bases[0], resolved[0], depth + 1)
        return find_named_class(node, resolved[0], depth + 1) if resolved and isinstance(node, (ast.Name, ast.Attribute)) else ""
    owner = find_root(function)
    if isinstance(owner, ast.Name) and (resolved := scope.resolve_name(owner.id)):
        for binding in resolved[1][:MOST_BINDINGS]:
            node = binding.node
            if not isinstance(node, (ast.Import, ast.ImportFrom)) or "npu" not in write_source(node).lower():
                return ""
    return name
