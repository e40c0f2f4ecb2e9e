"""Files of the tree that a script may call: which can set something, and which surfaces each is read for."""

from __future__ import annotations

import ast

from npuprof.scripts.python import atc_calls, environ, global_options, parameter_map, run_config
from npuprof.scripts.python.imports import CanSet, Home, Modules
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.syntax import Script
from npuprof.scripts.python.visitor import Surface, Visitor

#: What is read of Python.
SURFACES = (parameter_map.SURFACE, run_config.SURFACE, global_options.SURFACE, environ.SURFACE, atc_calls.SURFACE)


def open_visitor(script: Script, data: bytes, modules: Modules | None, can_set: CanSet) -> Visitor:
    """Return the visitor of a script; with ``modules`` its calls of functions of other files are followed."""
    if modules is None:
        return Visitor(Module(script, None), _choose_surfaces)
    home = modules.open_home(script.path)
    module = Module(script, home)
    visitor = Visitor(module, _choose_surfaces, modules.load, lambda path: bool(modules.list_supplied(path, can_set)))
    imported = modules.list_imported(script.path, data)  # other files may have the options, too
    visitor.shares_options = any(modules.has_options(path) and modules.list_supplied(path, can_set) for path in imported)
    modules.begin(lambda: _find_rebound_constants(home, module.scope))
    return visitor


def _find_rebound_constants(home: Home, scope: Scope) -> set[tuple[str, str]]:
    """Return the names of modules that a script gives other values: ``settings.PRECISION = ...``."""
    found: set[tuple[str, str]] = set()
    for text in scope.list_rebound():
        owner, dot, name = text.rpartition(".")
        if dot and name != "*" and scope.list_binding_kinds(owner.partition(".")[0]) == {"import"}:
            path = home.find_module(ast.parse(owner, mode="eval").body, scope)
            found |= {(path, name)} if path else set()
    return found


def _choose_surfaces(module: Module) -> tuple[Surface, ...]:
    """Return what reads a file: the surfaces whose words it holds, and that of the options where a module that it imports has them."""
    text = module.script.text
    modules = module.home.modules if isinstance(module.home, Home) else None
    shared = modules is not None and any(map(modules.has_options, (module.path, *modules.list_imported(module.path))))
    return tuple(one for one in SURFACES if any(word in text for word in one.words) or (one is global_options.SURFACE and shared))
