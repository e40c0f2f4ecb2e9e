"""Methods that never run because every class that is in use writes them anew."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from npuprof.scripts.reading.rehearsal.idle import Idle
from npuprof.scripts.reading.values.scopes import Function


def find_replaced_methods(tree: ast.Module, entered: Collection[Function], named_elsewhere: Callable[[str], bool]) -> list[Idle]:
    """Return the methods of classes that are only there to be made others of, where those in use have their own.

    ``entered`` are the functions that some call leads to, ``super()`` too.
    """
    classes: dict[str, ast.ClassDef] = {}
    several: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            several |= {node.name} & classes.keys()
            classes[node.name] = node
    if not any(_list_bases(node) & classes.keys() for node in classes.values()):
        return []
    used = _find_used(tree, classes)
    found: list[Idle] = []
    for name, node in classes.items():
        lines = {one: line for one in used if name in (line := _list_line(one, classes)) and one != name}
        if name in used or name in several or not lines or named_elsewhere(name):
            continue
        for method in node.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method not in entered:
                takers = [_find_definer(line, method.name, classes) for line in lines.values()]
                if name not in takers and all(takers):
                    why = f"{takers[0]}.{method.name}() takes the place of {name}.{method.name}(), so this never runs"
                    found.append(Idle(method.lineno, method.end_lineno or method.lineno, method.name, why))
    return found


def _list_bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def _find_used(tree: ast.Module, classes: dict[str, ast.ClassDef]) -> set[str]:
    """Return the classes that are named for something else than to make others of them, or to call their methods."""
    passing = {id(base) for node in classes.values() for base in node.bases}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            passing.add(id(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            passing |= {id(one) for one in node.args}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in passing]
    return {node.id for node in names} & classes.keys()


def _list_line(name: str, classes: dict[str, ast.ClassDef]) -> list[str]:
    """Return a class and those that it is made of, in the order in which attributes are looked for, as far as the file tells."""
    line = [name]
    for one in line:
        for base in classes[one].bases if one in classes else ():
            if isinstance(base, ast.Name) and base.id not in line:
                line.append(base.id)
    return line


def _find_definer(line: list[str], method: str, classes: dict[str, ast.ClassDef]) -> str:
    """Return the first class of a line that has a method."""
    for name in line:
        if name in classes and any(getattr(one, "name", "") == method for one in classes[name].body):
            return name
    return ""
