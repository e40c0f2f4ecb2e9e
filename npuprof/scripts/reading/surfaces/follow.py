"""Calls of functions of other files of the tree: what such a function sets belongs to the script that calls it.

The function is read with the arguments of the call, as if its lines stood there; functions that it calls are followed on, so far
as they are of the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from itertools import islice

from npuprof.scripts.reading.found import Branch, Followed
from npuprof.scripts.reading.modules import Home, Module, Modules
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.surfaces import global_options
from npuprof.scripts.reading.surfaces.hot import SURFACES
from npuprof.scripts.reading.surfaces.methods import Entered, find_function, find_method
from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.arguments import bind_call_arguments
from npuprof.scripts.reading.values.lineages import get_first_parameter
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import name_callee

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.scripts.reading.surfaces.walk import Handler

    Mentions = Callable[[bytes], bool]

#: So many functions are entered one from within the other; so many that set something are followed for one script, of so many entered.
_DEEPEST = 6
_MOST_FOLLOWED = 200
_MOST_ENTERED = 5_000


def may_follow(path: str, data: bytes, modules: Modules, mentions: Mentions) -> bool:
    """Return whether a script names a function of its tree that can set something, without parsing the script."""
    return any(name in data for name in _list_supplied_names(path, data, modules, mentions))


def _list_supplied_names(path: str, data: bytes, modules: Modules, mentions: Mentions) -> set[bytes]:
    """Return the names that a text imports from modules of its tree which can set something, without parsing these."""
    names: set[bytes] = set()
    for imported in modules.list_imported(path, data):
        if modules.supplies(imported, mentions):
            names |= modules.list_defined(imported)
    return names


def open_walk(script: Script, data: bytes, handlers: tuple[Handler, ...], modules: Modules, mentions: Mentions) -> Walk:
    """Return the walk over a script whose calls are followed."""
    home = modules.open_home(script.path)
    supplying = [path for path in modules.list_imported(script.path, data) if modules.supplies(path, mentions)]
    if supplying:
        handlers = (*handlers, handle_statement)
    shares_options = any(_has_options(modules, path) for path in supplying)
    if shares_options and global_options.handle_statement not in handlers:
        handlers = (*handlers, global_options.handle_statement)
    walk = Walk(script, handlers, home)
    walk.mentions_setting = mentions
    if shares_options:
        walk.facts["options handed"] = True  # other files have them too
    modules.rebound = _find_rebound_constants(home, walk)
    return walk


def _find_rebound_constants(home: Home, walk: Walk) -> set[tuple[str, str]]:
    """Return the names of modules that a script gives other values: ``settings.PRECISION = ...``."""
    scope = walk.open_module()
    found: set[tuple[str, str]] = set()
    for text in scope.rebound:
        owner, dot, name = text.rpartition(".")
        if dot and name != "*" and scope.list_binding_kinds(owner.partition(".")[0]) == {"import"}:
            path = home.find_module(ast.parse(owner, mode="eval").body, scope)
            found |= {(path, name)} if path else set()
    return found


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Follow the calls of one statement."""
    for expression in expressions:
        if isinstance(expression, (ast.Constant, ast.Name)):
            continue
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and (entered := _find_entered(walk, node, statement, scope)):
                _follow_call(walk, node, entered, scope, branches)


def _find_entered(walk: Walk, call: ast.Call, statement: ast.stmt, scope: Scope) -> Entered | None:
    """Return the function of another file that a call enters, from within such a function one of its own file too."""
    home = scope.home
    if not isinstance(home, Home):
        return None
    entered = find_function(call, scope) or find_method(call, statement, scope)
    if entered is None or (entered.scope.home is home and walk.caller is None) or not isinstance(entered.scope.home, Home):
        return None
    path = entered.scope.home.path
    module = home.modules.load(path) if home.modules.supplies(path, walk.mentions_setting) else None
    return entered._replace(module=module) if module is not None and entered.function not in module.idle else None


def _follow_call(walk: Walk, call: ast.Call, entered: Entered, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read what a call sets, and add it to what the walk has found."""
    module, function = entered.module, entered.function
    assert module is not None
    mark = module.path, function.lineno
    if mark in walk.stack or len(walk.stack) >= _DEEPEST or walk.entered >= _MOST_ENTERED:
        walk.skips = True
        return
    if walk.follows >= _MOST_FOLLOWED:
        if walk.caller is None:
            walk.add_fact("unfollowed", (call.lineno, name_callee(call)))
        walk.skips = True
        return
    walk.entered += 1
    before = len(walk.sites)
    outer = module.scope.with_label(f"{scope.name}@{call.lineno}.{call.col_offset}", _list_own_rebound(module))
    if isinstance(entered.scope.node, ast.ClassDef):
        outer = Scope(entered.scope.node, outer)
    inside = Scope(function, outer)
    bound = bind_call_arguments(function, inside, entered.call, scope) or {}
    if entered.owner is not None:
        bound[get_first_parameter(function)] = entered.owner
    called = Walk(module.script, _choose_handlers(module), module.home)
    called.stack = (*walk.stack, mark)
    called.walk_called(function, inside.with_bound(bound) if bound else inside, branches, walk)
    place = call.lineno, walk.script.column(call.lineno, call.col_offset)
    for name, site in list(islice(walk.sites.items(), before, None)):
        walk.sites[name] = site._replace(line=place[0], column=place[1], made_by=(*site.made_by, function.name))
    walk.found += [one._replace(call=place) for one in called.found]
    if not called.found and not called.skips and len(walk.sites) == before:
        module.idle.add(function)
    walk.follows += bool(called.found)
    if any(not one.commented for one in called.found):
        walk.functions.setdefault(mark, Followed(module.path, function.lineno, function.end_lineno or function.lineno, function.name))


def _list_own_rebound(module: Module) -> Iterable[str]:
    return (name for path, name in module.home.modules.rebound if path == module.path)


def _choose_handlers(module: Module) -> tuple[Handler, ...]:
    text = module.script.text
    chosen = [surface for surface in SURFACES if any(word in text for word in surface.HOT)]
    if global_options not in chosen and _has_options(module.home.modules, module.path):
        chosen.append(global_options)
    return (*(surface.handle_statement for surface in chosen), handle_statement)


def _has_options(modules: Modules, path: str) -> bool:
    """Return whether a module, or one that it imports, names the options of TensorFlow 2."""
    data = modules.read(path)
    return b"global_options" in data or any(b"global_options" in modules.read(other) for other in modules.list_imported(path, data))
